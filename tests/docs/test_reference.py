"""docs/reference.md is what the commands say, and what it says of them is so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from secrets import token_hex
from shlex import split

import click
import pytest
from msgspec import Raw

from tape import (
    Assistant,
    Beginning,
    Store,
    Text,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
    open_store,
)
from tape.cli.group import COMMANDS, run_command
from tape.cli.group import tape as group
from tape.model.entries import ChangedFile
from tests.docs import reference_gong
from tests.docs.manual import examples, promised
from tests.docs.pages import EXAMPLE, blocks
from tests.docs.reference import ENDS, PAGE, page

UNRUN = {
    "tape tail -f 3f2a": "goes on until interrupted; tests/tape/cli/test_tail.py follows",
    "tape tail -f --json | jq .type": "the same",
    "tape export 3f2a --no-redact | ssh host tape import -": "wants another machine",
    "tape serve --open": "serves until it is ended: tests/tape/serve asks it",
    "tape serve --port 8000": "serves until it is ended: tests/tape/serve asks it",
    "tape serve --store s3://tapes/team --pull-every 60": "needs that remote: tests/tape/serve",
    "tape serve --write": "serves until it is ended: tests/tape/serve asks it",
    "tape serve --login-header X-User --login-from 127.0.0.1 --name tapes.example.org": (
        "serves until it is ended: tests/tape/serve/test_logins.py asks it"
    ),
    "tape mcp --write": ("serves until its input ends: tests/tape/tools/test_mcp_server.py"),
    "tape mcp --http 8000": "the same",
    "tape unite /mnt/laptop/.tape": "needs a copy; tests/tape/unite has many",
    "tape unite ~/.tape /mnt/laptop/.tape": "the same",
    "tape remote add team /mnt/team/tapes": "needs a remote; tests/tape/cli/test_remote.py has one",
    "tape remote rm team": "the same",
    "tape push": "the same",
    "tape push 3f2a --to team": "the same",
    "tape push --all --dry-run": "the same",
    "tape push --since 7d": "the same",
    "tape unpush 3f2a --why 'pushed by mistake'": "the same",
    "tape unpush --before 1y --why 'kept for a year' --dry-run": "the same",
    "tape hold 3f2a --why 'an audit'": "the same",
    "tape hold 3f2a --release": "the same",
    "tape hold": "the same",
    "tape doctor --remote": "the same",
    "tape doctor --remote team": "the same",
    "tape pull": "the same",
    "tape pull 3f2a --from team": "the same",
    "tape clone /mnt/team/tapes": "the same",
    "tape --store ~/team clone /mnt/team/tapes": "the same",
    "tape merge --undo": "needs a merge; tests/tape/cli/test_merge.py undoes one",
}
"""Examples that no test can run from here, with the reason."""

ASKS = {"tape rm 3f2a", 'tape redact 3f2a@9c1b --why "a password"'}
"""Examples that ask, and end with 2 where nobody is there to answer."""
FINDS_NOTHING = {
    "tape search login page",
    "tape search '\"connection refused\" -redis' --since 1w",
    "tape search src/auth/login.py:42 --type tool.result --project .",
    "tape search 'timeout OR deadline*' -n 5 --json",
}
"""Searches for what is not on the tapes here: they end with 1."""
GONE = {"tape import session.jsonl", "tape restore", "tape restore 3f2a"}
"""Examples of a tape that was exported and removed."""

SHELL = re.compile(r"[|<>$]|\s~/")
IDENTITY = 16
"""Bytes of a tape's id."""
BRANCHES = ("try-redis", "fork-1")


def prepare(demo: Path, branches: tuple[str, ...]) -> Store:
    """Make the files, tapes, entries and branches that the examples name; return the store."""
    (demo / "src").mkdir(parents=True)
    (demo.parent / ".config/fish/completions").mkdir(parents=True)
    code = "".join(f"line = {n}\n" for n in range(80))
    (demo / "src" / "auth.py").write_text(code)
    for name in ("entries.jsonl", "notes.jsonl"):
        (demo / name).write_text('{"type":"note","data":{"text":"hi"}}\n' * 2)
    identities = iter(("9c1b", "3f2a"))

    def random(n: int) -> str:
        known = next(identities, "") if n == IDENTITY else ""
        return f"{known}{token_hex(n)}"[: 2 * n]

    store, _ = open_store(demo.parent / ".tape", random=random)
    for title in ("Redis", "Login bug"):
        record(store, Beginning(cwd=str(demo), program="test/1", title=title), branches, code)
    return store


def record(store: Store, beginning: Beginning, branches: tuple[str, ...], code: str) -> None:
    """Make a tape with an answer that writes src/auth.py, labels and branches."""
    args = Raw(json.dumps({"path": "src/auth.py", "content": code}).encode())
    call = ToolCall("c_00000001_0", "write", args)
    with store.create(beginning) as tape, tape.writer(durability="none") as writer:
        asked = writer.append(User((Text("Question 1"),)))
        writer.append(Assistant((call,), provider="mine", model="m1", stop_reason="tool_calls"))
        writer.append(ToolStart(call.id, call.name, replay="unsafe"))
        saved = tape.blobs.put(code.encode())
        change = ChangedFile(
            "src/auth.py", "created", after=saved.hash, mode="100644", after_blob=saved
        )
        writer.append(ToolResult(call.id, call.name, (Text("Written."),), files=(change,)))
        said = writer.append(Assistant((Text("Login."),), provider="mine", model="m1"))
        for name, entry in {"9c1b": asked, "77de": said, "good": said}.items():
            tape.label(name, entry.id)
        for name in branches:
            tape.fork(tape.head(), name)


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """This process in a folder of a home of its own."""
    demo = tmp_path / "home" / "demo"
    monkeypatch.setenv("HOME", str(demo.parent))
    monkeypatch.delenv("TAPE_HOME", raising=False)
    demo.mkdir(parents=True)
    monkeypatch.chdir(demo)
    return demo


@pytest.fixture
def store(demo):
    return prepare(demo, BRANCHES)


def verb(name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


LINES = [line for name in COMMANDS for line in examples(verb(name))]


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == page(), "`make docs` writes docs/reference.md anew"


def test_examples_that_are_special_are_still_there():
    assert set(UNRUN) | ASKS | FINDS_NOTHING | GONE <= set(LINES)


def test_no_page_shows_other_lines_as_examples():
    pages = [PAGE.parent.parent / "README.md", *PAGE.parent.rglob("*.md")]
    found = [block for path in pages for block in blocks(path.read_text("utf-8"))]
    shown = [line for block in found if block.info == EXAMPLE for line in block.text]
    others = [line for one in reference_gong.verbs() for line in examples(one.command)]
    assert sorted(shown) == sorted([*LINES, *others])


@pytest.mark.parametrize("line", [line for line in LINES if line not in UNRUN])
def test_an_example_runs(line, demo):
    prepare(demo, () if line.startswith("tape fork") else BRANCHES)
    if line in GONE:
        run_command(["export", "3f2a", "-o", "session.jsonl"])
        run_command(["rm", "3f2a", "--yes"])
    code = 2 if line in ASKS else int(line in FINDS_NOTHING)
    assert code_of(line, demo.parent) == code


def code_of(line: str, home: Path) -> int:
    """Run a line and return its exit code: in this process where it needs no shell."""
    if not SHELL.search(line):
        return run_command(split(line)[1:])
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
    }
    words = ["sh", "-c", line.replace("/backup", "backup")]
    return subprocess.run(words, env=env, stdin=subprocess.DEVNULL, check=False).returncode


NOWHERE = {
    "switch": ["deadbeef:main"],
    "redact": ["deadbeef@9c1b"],
    "rename": ["deadbeef", "Title"],
    "mv": ["deadbeef", "."],
    "blame": ["entries.jsonl"],
}


@pytest.mark.parametrize("name", [name for name, ends in ENDS.items() if 3 in dict(ends)])
@pytest.mark.usefixtures("store")
def test_what_is_not_there_ends_with_3(name):
    assert run_command([name, *NOWHERE.get(name, ["deadbeef"])]) == 3


WRITES = {"append": "{}:main", "rm": "{} --yes", "mv": "{} .", "detach": "{} --yes"}


@pytest.mark.parametrize("name", [name for name, ends in ENDS.items() if 5 in dict(ends)])
def test_what_is_being_written_ends_with_5(name, store):
    origin = store.open("3f2a")
    beginning = Beginning(cwd="/", program="test/1")
    with store.create(beginning, origin=(origin, origin.head())) as tape, tape.writer("main"):
        assert run_command([name, *WRITES[name].format(tape.id).split()]) == 5


@pytest.mark.parametrize("name", [name for name, ends in ENDS.items() if 4 in dict(ends)])
def test_damage_ends_with_4(name, store, demo):
    assert run_command(["export", "3f2a", "-o", "session.jsonl"]) == 0
    entries = store.tapes / store.open("3f2a").folder.name / "phases/0001-main-start/entries.jsonl"
    for file in (entries, demo / "session.jsonl"):
        file.write_bytes(file.read_bytes().replace(b"Question 1", b"Question 7"))
    words = {"import": ["session.jsonl"], "replay": ["3f2a", "--check"]}
    assert run_command([name, *words.get(name, ["3f2a"])]) == 4


ASKED = {
    "push": ["3f2a", "--yes"],
    "unpush": ["3f2a", "--yes"],
    "hold": ["3f2a"],
    "merge": ["3f2a:try-redis"],
    "log": ["3f2a", "--graph"],
    "search": ["login"],
    "blame": ["src/auth.py"],
    "import": ["entries.jsonl"],
    "hook": ["install", "--print"],
    "rename": ["3f2a", "Title"],
    "mv": ["3f2a", "."],
    "label": ["3f2a", "new"],
    "switch": ["3f2a:try-redis"],
    "diff": ["3f2a:main", ":try-redis"],
    "rm": ["3f2a", "--yes"],
    "detach": ["3f2a", "--yes"],
    "redact": ["3f2a@9c1b", "--yes", "--why", "x"],
    "gc": ["--yes"],
    "completion": ["bash"],
    "restore": ["9c1b"],
    "unite": ["laptop"],
}
SHAPES = [name for name in COMMANDS if promised(verb(name))]


def prepare_remote(name):
    """Add a remote, with a tape to pull, for the commands that need one."""
    if name not in ("remote", "push", "pull", "unpush", "hold"):
        return
    Path("team").mkdir()
    if name == "pull":
        made = ["--store", "laptop"]
        run_command(["new", *made])
        run_command(["remote", "add", "team", "team", "--mode", "manual", *made])
        run_command(["push", "--all", "--yes", *made])
    run_command(["remote", "add", "team", "team", "--mode", "manual"])
    if name in ("unpush", "hold"):
        run_command(["push", "--all", "--yes"])


@pytest.mark.parametrize("name", SHAPES)
def test_json_has_the_keys_that_help_says(name, store, capsysbinary):
    shutil.copytree(store.path, "laptop") if name == "unite" else None
    run_command(["rm", "9c1b", "--yes"]) if name == "restore" else None
    prepare_remote(name)
    capsysbinary.readouterr()
    words = ASKED.get(name, ["3f2a"] if "[REF]" in usage(name) else [])
    assert run_command([name, *words, "--json"]) == 0
    got = json.loads(capsysbinary.readouterr().out)
    is_array, keys = promised(verb(name))
    assert isinstance(got, list) is is_array
    found = set(got[0] if is_array else got)
    found |= {f"{key[:-1]}?" for key in keys if key.endswith("?")} - found
    found -= {key[:-1] for key in keys if key.endswith("?")}
    assert keys - {"…"} == (found & keys if "…" in keys else found)


def usage(name: str) -> str:
    return " ".join(
        verb(name).collect_usage_pieces(
            click.Context(verb(name), help_option_names=["-h", "--help"])
        )
    )
