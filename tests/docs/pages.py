"""Read the pages people follow, run what they show, and compare.

The convention, in fenced blocks:

- `console`: lines `$ command`, each followed by the output it must have (standard output and error
  as a terminal mixes them). A line `> more` continues the command above it. In the output a line
  `...` stands for any lines, `…` within a line for any characters; a last line `[exit 3]` for the
  exit code, which is otherwise 0. All blocks of a page run in one shell, in order, in an empty
  folder of an empty home.
- `file NAME`: at this place of the page the file is written into the folder it is named from.
- `sh`, `bash`, `shell`: not run. Each line must stand in `UNRUN`, with the reason.
- `sh example`: lines from the help of verbs, on ids made up; `test_reference.py` runs them.
- Any other language, or none: no line may look like a command of ours.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shlex import quote

from tests import warm

_DRILL = "tests/docs/test_team.py runs it, against real servers"
_SERVERS = "needs the servers of a compose file; tests/tape/remote pushes to such"
UNRUN = {
    "tape remote add team postgresql://tape@127.0.0.1/tapes": _SERVERS,
    "tape search --remote team 'connection refused'": "tests/tape/remote/test_catalogue.py does",
    "tape remote add bucket "
    "'s3://tapes/team?endpoint=http://127.0.0.1:9000&region=us-east-1'": _SERVERS,
    "tape push --all --yes --to team": _SERVERS,
    "tape push --all --yes --to bucket": _SERVERS,
    "pg_dump --format=custom --file=tapes.dump tapes": _DRILL,
    "createdb restored": _DRILL,
    "pg_restore --dbname=restored tapes.dump": _DRILL,
    "tape --store from-dump clone postgresql:///restored": _DRILL,
    "tape --store from-dump verify --all": _DRILL,
    "tape --store from-dump remote verify": _DRILL,
    "rclone sync bucket:tapes/team copy": _DRILL,
    "tape --store from-copy clone ./copy": _DRILL,
    "tape --store from-copy verify --all": _DRILL,
    "tape --store from-copy remote verify": _DRILL,
    "make chat": "opens a conversation in the terminal; tests/e2e drives gong chat",
    "make test": "runs the suite this test is part of",
    "make check": "runs in CI beside the suite",
    "pip install .": "installs; tests/test_packaging.py builds what it would",
    "claude mcp add tape -- tape mcp": "sets another program up",
    "codex mcp add tape -- tape mcp": "sets another program up",
    "tape serve --open": "serves until it is ended: tests/tape/serve asks it",
    **dict.fromkeys(
        (
            "tape serve --port 8000 --name tapes.example.org \\",
            "--login-header X-Forwarded-Email --login-from 127.0.0.1 \\",
            "--team-header X-Forwarded-Groups --teams teams.toml",
        ),
        "serves until it is ended: tests/tape/serve/test_logins.py asks it",
    ),
    **dict.fromkeys(
        (
            "gong eval tasks -m anthropic/claude-sonnet-5",
            "gong eval tasks -m openai/gpt-5 -k 5 -j 4 --max-cost 3",
            "gong eval tasks --agent solution",
            "gong eval tasks -m openai/gpt-5 --junit junit.xml --page evals.html --fail-under 80",
            "gong eval check 81d0",
            "gong eval check trajectory.json --root /app --max-cost 0.50 --max-turns 40",
            "gong eval check ~/.claude/projects ~/.codex/sessions --json",
            (
                "gong eval compare gong-evals/tasks-openai-gpt-5"
                " gong-evals/tasks-anthropic-claude-sonnet-5"
            ),
        ),
        "needs models; tests/gong/evals runs such with a scripted one",
    ),
    "gong chat": "opens a conversation in the terminal; tests/e2e drives it",
}
"""Commands that pages show and no test can run from here, with the reason."""

EXAMPLE = "sh example"
SHELLS = {"sh", "bash", "shell", "zsh"}
FENCE = re.compile(r"^( *)(`{3,}|~{3,})[ \t]*([^`]*?)[ \t]*$")
COMMAND = re.compile(r"^\s*(\$\s+)?(\w+=\S*\s+)*(tape|gong|make)\s+[\w@:.\"'-]")
INDENTED = re.compile(r"^(\t| {4})")
EXIT = re.compile(r"^\[exit (\d+)\]$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `info` is what stands behind its fence, `line` where its text begins."""

    info: str
    line: int
    text: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a page shows it, with the output and exit code the page promises."""

    line: int
    text: str
    output: tuple[str, ...]
    code: int


@dataclass(frozen=True, slots=True)
class File:
    """A file that a page tells its reader to write."""

    line: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command really did; `code` is None when the shell ended before or in it."""

    output: str
    code: int | None


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page; a fence that is never closed is a ValueError."""
    found: list[Block] = []
    opened: tuple[str, str, str, int] | None = None
    text: list[str] = []
    for number, line in enumerate(page.split("\n"), 1):
        fence = FENCE.match(line)
        if opened is None:
            if fence:
                opened, text = (*fence.groups(), number + 1), []
        elif fence and not fence[3] and fence[2].startswith(opened[1]):
            found.append(Block(opened[2], opened[3], tuple(text)))
            opened = None
        else:
            indent = len(opened[0])
            text.append(line[indent:] if not line[:indent].strip() else line)
    if opened:
        raise ValueError(f"line {opened[3] - 1}: this block is never closed")
    return found


def steps(page: str) -> list[Command | File]:
    """Return what a reader of the page does, in order."""
    done: list[Command | File] = []
    for block in blocks(page):
        kind, _, name = block.info.partition(" ")
        if kind == "console":
            done += _commands(block)
        elif kind == "file":
            done.append(File(block.line, name, "".join(f"{line}\n" for line in block.text)))
    return done


def _commands(block: Block) -> list[Command]:
    starts = [at for at, line in enumerate(block.text) if line.startswith("$ ")]
    if block.text and (not starts or starts[0] > 0):
        raise ValueError(f"line {block.line}: a console block begins with `$ command`")
    parts = pairwise([*starts, len(block.text)])
    return [_command(block.line + at, block.text[at:end]) for at, end in parts]


def _command(line: int, text: tuple[str, ...]) -> Command:
    more = 1
    while more < len(text) and text[more].startswith("> "):
        more += 1
    output = list(text[more:])
    while output and not output[-1].strip():
        output.pop()
    exits = EXIT.match(output[-1]) if output else None
    if exits:
        output.pop()
    command = "\n".join(part[2:] for part in text[:more])
    return Command(line, command, tuple(output), int(exits[1]) if exits else 0)


def unrun(page: str) -> list[str]:
    """Return what looks like a command and is neither run nor known as one that cannot be."""
    found = []
    inside: set[int] = set()
    for block in blocks(page):
        inside.update(range(block.line - 1, block.line + len(block.text) + 1))
        language = block.info.split(" ")[0]
        if language in {"console", "file"} or block.info == EXAMPLE:
            continue
        for number, line in enumerate(block.text, block.line):
            shown = re.sub(r"^\$ ", "", re.sub(r"(^|\s+)#.*", "", line).strip())
            if shown in UNRUN or not ((shown and language in SHELLS) or COMMAND.match(line)):
                continue
            found.append(f"line {number}: {line.strip()}")
    for number, line in enumerate(page.split("\n"), 1):
        if number not in inside and INDENTED.match(line) and COMMAND.match(line):
            found.append(f"line {number}: {line.strip()}")
    return found


def follow(todo: list[Command | File], home: Path, seconds: float = 100) -> list[Ran | None]:
    """Do the steps in one shell, in `home/demo`, and return what each command did; None for a file.

    The environment is made from nothing, so no key and no setting of ours leaks in. A page that
    takes longer than `seconds` is stopped with everything it started.
    """
    demo, results = home / "demo", home.parent / "results"
    for folder in (demo, results):
        folder.mkdir(parents=True)
    script = "\n".join(_script(number, step, results) for number, step in enumerate(todo))
    env = {
        "PATH": os.pathsep.join(
            [str(warm.find_commands()), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    shell = subprocess.Popen(
        ["sh", "-c", script],
        cwd=demo,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        shell.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    return [
        _ran(number, results) if isinstance(step, Command) else None
        for number, step in enumerate(todo)
    ]


def _script(number: int, step: Command | File, results: Path) -> str:
    text = results / f"{number}.text"
    text.write_text(f"{step.text}\n" if isinstance(step, Command) else step.text, "utf-8")
    if isinstance(step, File):
        name = quote(step.name)
        return f'mkdir -p "$(dirname {name})" && cp {quote(str(text))} {name}'
    output, code = (quote(str(results / f"{number}.{kind}")) for kind in ("output", "code"))
    return f"{{ . {quote(str(text))}\n}} >{output} 2>&1 </dev/null; echo $? >{code}"


def _ran(number: int, results: Path) -> Ran:
    output, code = results / f"{number}.output", results / f"{number}.code"
    return Ran(
        output.read_text("utf-8", "replace") if output.exists() else "",
        int(code.read_text()) if code.exists() else None,
    )


def complaint(page: str, shown: Command, ran: Ran) -> str | None:
    """Return how a command's doing differs from what the page shows; None when it does not."""
    got = ran.output.rstrip("\n ")
    if ran.code == shown.code and _pattern(shown.output).fullmatch(f"{got}\n" if got else ""):
        return None
    code = "the shell ended in it or before it" if ran.code is None else f"exit {ran.code}"
    return "\n".join(
        [
            f"{page}:{shown.line}: $ {shown.text}",
            f"--- the page shows (exit {shown.code})",
            *shown.output,
            f"--- it printed ({code})",
            got,
        ]
    )


def _pattern(output: tuple[str, ...]) -> re.Pattern[str]:
    parts = []
    for line in output:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ \t]*\n")
    return re.compile("".join(parts))


def complaints(name: str, page: str, home: Path) -> list[str]:
    """Follow a page in a throw-away home and return everything it shows that is not so."""
    todo = steps(page)
    found = [f"{name}: nothing runs this: {line}" for line in unrun(page)]
    for step, ran in zip(todo, follow(todo, home), strict=True):
        if isinstance(step, Command) and ran is not None:
            found.append(complaint(name, step, ran) or "")
    return [text for text in found if text]
