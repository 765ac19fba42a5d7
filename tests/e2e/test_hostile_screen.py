"""No command lets a terminal obey what stands on a tape, in a setting, an argument or an answer."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tape.text import escape_json_controls, show_controls
from tests import warm
from tests.e2e.conftest import BIN, Place
from tests.e2e.hostile import EVIL, commands, fill
from tests.e2e.terminal import ENTER, Terminal

ODD = EVIL.replace("\n", " ")
"""In an argument, where a newline would be one of the user's own."""
OURS = re.compile(r"\x1b\[(?:0|1|2|3[0-7])m|\r\x1b\[K|\r\n")
"""What we may tell a terminal: a colour or a weight, the end of a line, a progress line gone."""
CALL = json.dumps({"path": EVIL})

CASES = {
    "tape new": ["--title EVIL", "--title EVIL --json", "EVIL"],
    "tape append": ["ID EVIL", "nothing-EVIL", "ID --durability EVIL"],
    "tape ls": ["", "--all", "--all --json", "--all --sort EVIL", "-n EVIL", "--project EVIL"],
    "tape status": ["ID", "ID:b", "ID --json", "EVIL"],
    "tape show": ["ID", "ID@good", "ID@good --raw", "ID --json", "ID:b", "EVIL", "ID@EVIL"],
    "tape log": [
        "ID",
        "ID:b --graph",
        "ID --oneline",
        "ID --json",
        "ID --type EVIL",
        "ID --graph",
        "-p ID",
    ],
    "tape cat": ["ID", "ID:b", "ID --md", "ID --json"],
    "tape tail": ["ID -n 40", "ID:b", "ID --json"],
    "tape fork": ["ID --name EVIL", "ID@EVIL", "ID --new --name EVIL"],
    "tape branches": ["ID", "ID --json"],
    "tape switch": ["ID:EVIL", "ID:b"],
    "tape rename": ["ID EVIL", "ID EVIL --json"],
    "tape label": ["ID", "ID@good EVIL", "ID --json"],
    "tape anchors": ["ID:b", "ID:b --json"],
    "tape context": ["ID", "ID:b", "ID --json"],
    "tape diff": ["ID:main ID:b", "ID:main ID:b --json", "EVIL EVIL", "--files ID:main ID:b"],
    "tape merge": [
        *("ID:b --into EVIL", "ID:b --pick EVIL", "ID:EVIL", "ID:main --into b", "ID:b --undo"),
        *("ID:b --summary EVIL --pick ID@good", "ID:b --json", "ID --undo --json"),
    ],
    "tape hold": ["", "EVIL", "ID --why EVIL"],
    "tape hook": ["install --print", "install --print --for EVIL", "install --json", "run", "EVIL"],
    "tape files": [
        *("ID", "ID -p", "ID --json", "ID:main ID:b", "ID@good ID:b -p", "EVIL", "EVIL EVIL"),
        *("--at ID EVIL", "--at ID f.txt", "--at EVIL EVIL", "--at ID"),
    ],
    "tape replay": ["ID --speed 100000", "ID --check", "ID --json", "ID --speed EVIL"],
    "tape search": ["zebra", "zebra --json", "EVIL", "zebra --model EVIL", "zebra --type EVIL"],
    "tape stats": ["ID", *(f"--by {by}" for by in ("tape", "branch", "model", "day")), "ID --json"],
    "tape blame": [
        *("f.txt", "f.txt --ranges", "f.txt --prompt", "f.txt --json", "EVIL", "--notes EVIL"),
    ],
    "tape export": ["ID", "ID --to md", "ID:b --to anthropic", "ID --to EVIL", "ID -o EVIL/x"],
    "tape mcp": ["--http EVIL"],
    "tape import": ["EVIL", "evil.jsonl", "EVIL --from EVIL"],
    "tape doctor": ["--remote EVIL"],
    "tape serve": ["--port EVIL"],
    "tape remote add": ["EVIL EVIL", "team EVIL"],
    "tape remote audit": ["", "EVIL --json"],
    "tape remote compact": ["", "EVIL --json"],
    "tape remote default": ["EVIL"],
    "tape remote ls": ["", "--json"],
    "tape remote rm": ["EVIL"],
    "tape remote service": ["", "EVIL --json"],
    "tape remote status": ["", "EVIL"],
    "tape remote verify": ["", "EVIL --json"],
    "tape push": ["--all --yes", "EVIL", "--to EVIL", "--project EVIL"],
    "tape unpush": ["EVIL", "ID --why EVIL", "--before EVIL"],
    "tape pull": ["", "EVIL", "--from EVIL"],
    "tape clone": ["EVIL", "EVIL --name EVIL"],
    "tape unite": ["EVIL", "EVIL EVIL", "EVIL --json"],
    "tape machine": ["", "--json", "EVIL"],
    "tape archive": ["ID --dry-run", "EVIL", "--older EVIL", "ID", "ID --json"],
    "tape unarchive": ["EVIL", "ID", "--all --json"],
    "tape rm": ["ID --dry-run", "ID --dry-run --json", "EVIL -y"],
    "tape restore": ["", "--json", "EVIL"],
    "tape mv": ["ID EVIL", "ID EVIL --json"],
    "tape detach": ["ID --dry-run", "EVIL -y"],
    "tape redact": ["ID@good --why EVIL --dry-run", "ID@good --why EVIL --dry-run --json"],
    "tape gc": ["--dry-run", "--trash --dry-run --json", "EVIL"],
    "tape reindex": ["", "--json", "EVIL"],
    "tape completion": ["bash", "EVIL"],
    "tape verify": ["ID", "--all", "--all --json", "EVIL", "--jobs EVIL"],
    "tape fsck": ["ID", "ID --json", "EVIL"],
    "gong chat": [
        *("-p EVIL -m SCRIPT", "-p EVIL -m SCRIPT --output-format json", "-p x -m EVIL/EVIL"),
        *("-p EVIL -m SCRIPT --output-format stream-json", "-p x -m FAILING", "-p x --tools EVIL"),
        *("--session EVIL", "--output-format EVIL", "-c --compact -p x -m SCRIPT"),
    ],
    "gong compact": ["ID:b -m offline/rules --hard", "ID --undo", "EVIL", "ID -m EVIL/EVIL"],
    "gong context": ["ID:b -m offline/rules", "ID -m EVIL", "ID:b -m offline/rules --json"],
    "gong handoff": ["ID:b -m offline/rules --focus EVIL", "ID -o EVIL/x", "EVIL"],
    "gong merge": ["ID:b -m offline/rules --pick ID@good", "ID:b --into EVIL", "EVIL --json"],
    "gong work add": ["zebra --todo EVIL --note EVIL", "EVIL --note x"],
    "gong work done": ["zebra EVIL", "zebra 1", "EVIL 1"],
    "gong work handoff": ["zebra", "zebra --to EVIL", "zebra -o EVIL/x", "EVIL"],
    "gong work list": ["", "--json"],
    "gong work new": ["EVIL --goal EVIL", "EVIL --json"],
    "gong work show": ["zebra", "zebra --json", "EVIL"],
    "gong cost": [
        *(f"ID --by {by}" for by in ("call", "turn", "branch", "tape", "provider", "day")),
        *("--by provider --all", "--by tape --json --all", "EVIL", "--by EVIL"),
    ],
    "gong undo": ["--session ID --dry-run", "EVIL", "1 --session EVIL --json", "--overwrite EVIL"],
    "gong redo": ["--session ID --dry-run --json", "--session EVIL"],
    "gong rewind": ["ID@good --dry-run", "EVIL", "ID:b^1 --dry-run --json --overwrite EVIL"],
    "gong doctor": ["", "ID", "--json", "EVIL"],
    "gong init": ["--dry-run"],
    "gong completion": ["bash"],
    "gong models": ["", "--json", "EVIL"],
    "gong env check": ["EVIL"],
    "gong env list": ["", "--json"],
    "gong models refresh": ["--from EVIL"],
    "gong models show": ["EVIL", "evil/model", "evil/model --json"],
    "gong auth list": ["", "--json"],
    "gong auth login": ["EVIL"],
    "gong auth logout": ["EVIL"],
    "gong auth status": ["", "--json"],
    "gong config get": ["EVIL", "model"],
    "gong config list": ["", "--json"],
    "gong config path": [""],
    "gong config set": ["EVIL EVIL", "max_turns EVIL"],
    "gong sessions list": ["", "--json"],
    "gong sessions rm": ["EVIL"],
    "gong sessions show": ["ID", "EVIL"],
    "gong version": ["", "--json"],
    "gong agents list": ["", "--json"],
    "gong mcp add": ["EVIL -- true", "EVIL --url EVIL"],
    "gong mcp list": ["", "--json"],
    "gong mcp test": ["EVIL", "EVIL --json"],
    "gong mcp login": ["EVIL"],
    "gong mcp logout": ["EVIL"],
    "gong mcp remove": ["EVIL"],
    "gong review": ["--no-model", "EVIL --no-model", "--pr EVIL", "--no-model --ignore EVIL"],
    "gong eval run": [
        *("EVIL", "evil-tasks -m EVIL", "evil-tasks --agent solution", "evil-tasks --run EVIL"),
        *("evil-tasks --agent spoil --json", "evil-tasks --task EVIL", "evil-tasks --in EVIL"),
    ],
    "gong eval check": ["ID", "ID --json", "EVIL", "EVIL --json", "ID --root EVIL", "evil.jsonl"],
    "gong eval compare": ["EVIL EVIL", "evil-tasks evil-tasks --json"],
    "gong eval list": ["EVIL", "EVIL --json", "evil-tasks", "evil-tasks --json"],
    "gong workflow start": ["EVIL", "--plan EVIL --yes", "EVIL --yes -m EVIL"],
    "gong workflow list": ["", "--json", "--store EVIL"],
    "gong workflow show": ["EVIL", "EVIL --json"],
    "gong workflow graph": ["EVIL"],
    "gong workflow cancel": ["EVIL"],
    "gong workflow resume": ["EVIL"],
    "gong workflow retry": ["EVIL EVIL"],
    "gong workflow fork": ["EVIL EVIL"],
    "gong workflow work": ["--queue EVIL"],
    "gong acp": ["-m EVIL --store EVIL EVIL"],
    "gong rpc": ["--schema", "-m EVIL --schema"],
    "gong serve": ["--host EVIL", "--port EVIL"],
    "gong hooks list": ["", "--json"],
    "gong hooks test": ["EVIL", "PreToolUse --tool EVIL --args EVIL", "Stop"],
    "gong plugin list": ["", "--json"],
    "gong plugin add": ["EVIL --yes", "EVIL"],
    "gong plugin remove": ["EVIL"],
    "gong plugin new": ["EVIL", "good --description EVIL"],
    "gong skills list": ["", "--json"],
    "gong skills show": ["EVIL", "commit"],
    "gong skills new": ["EVIL", "good --description EVIL"],
    "gong skills check": ["", "--json", "EVIL"],
    "gong permissions add": ["EVIL", "EVIL EVIL"],
    "gong permissions check": ["--jsonl", "--jsonl --allow EVIL"],
    "gong permissions list": ["", "--json"],
    "gong permissions rm": ["EVIL"],
    "gong trust": ["", "--json", "--yes"],
    "gong tool": ["list", "EVIL", "read CALL", "read EVIL", "bash BASH"],
    "tape": ["", "EVIL", "--EVIL", "--help", "--version", "checkout EVIL", "tag EVIL ID"],
    "gong": ["EVIL", "--EVIL", "--help", "--version"],
}
"""The arguments of each command; ID is the hostile tape, EVIL the hostile text."""


def test_every_command_is_tried():
    assert set(commands()) == CASES.keys() - {"tape", "gong", "gong models"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("hostile") / "home")
    tape = fill(place.home)
    config = place.home / ".config" / "gong"
    config.mkdir(parents=True)
    name = json.dumps(EVIL, ensure_ascii=True).replace("\\u007f", "\\u007F")
    (config / "config.toml").write_text(
        f'[providers.evil]\nlabel = {name}\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9"\n'
    )
    (place.folder / "f.txt").write_text(EVIL)
    (place.folder / "evil.jsonl").write_text(json.dumps({"type": EVIL, "data": {}}))
    for task, text in (("one", f"[task]\ndescription = {name}\n"), ("two", f"{name} = 1 x")):
        folder = place.folder / "evil-tasks" / task
        (folder / "tests").mkdir(parents=True)
        (folder / "task.toml").write_text(text)
        (folder / "instruction.md").write_text(EVIL)
        (folder / "tests/test.sh").write_text("echo 1")
    answers = [{"text": EVIL, "thinking": EVIL}]
    calls = [{"tool_calls": [{"name": "read", "args": {"path": EVIL}}, {"name": EVIL, "args": {}}]}]
    place.words = {
        "ID": tape,
        "EVIL": ODD,
        "CALL": CALL,
        "BASH": json.dumps({"command": "cat f.txt"}),
        "SCRIPT": place.script(*calls, *answers, *answers),
        "FAILING": place.script(
            {"error": {"class": "InvalidRequest", "message": EVIL}}, name="failing.json"
        ),
    }
    place.env |= {"PAGER": "", "GIT_AUTHOR_NAME": ODD, "GONG_EVIL": ODD, "TERM": "xterm-256color"}
    place.run("gong", "work", "new", ODD, "--goal", EVIL, "--background", EVIL)
    place.run("gong", "work", "add", "zebra", "--todo", EVIL, "--note", EVIL)
    return place


def argv(place, command, line):
    words = [*command.split(), *shlex.split(line)]
    pattern = re.compile("|".join(place.words))
    return [pattern.sub(lambda found: place.words[found[0]], word) for word in words]


def on_terminal(place, words):
    """Run a command on a terminal; return all bytes that reached it, and the exit code."""
    leader, follower = pty.openpty()
    with Path(os.devnull).open() as nothing, os.fdopen(follower, "wb", buffering=0):
        child = warm.start(
            [BIN / words[0], *words[1:]],
            cwd=place.folder,
            env=place.env,
            streams=(nothing.fileno(), follower, follower),
        )
    seen = b""
    while True:
        try:
            more = os.read(leader, 65_536)
        except OSError:  # nobody holds the other end any more
            more = b""
        if not more:
            os.close(leader)
            return seen, child.wait(60)
        seen += more


@pytest.mark.parametrize(
    ("command", "line"), [(name, line) for name, lines in CASES.items() for line in lines]
)
def test_a_terminal_obeys_nothing_foreign(hostile, command, line):
    words = argv(hostile, command, line)
    seen, code = on_terminal(hostile, words)
    text = OURS.sub("\n", seen.decode())
    assert "\x1b[45;8m" not in text
    assert show_controls(text) == text
    assert "Traceback" not in text
    assert code in {0, 1, 2, 3, 4, 5, 6, 7, 8}
    if "--json" in words and code == 0:
        json.loads("".join(row for row in text.split("\n") if not row.startswith("tape: ")))


LISTS = [
    *("tape ls --all", "tape log ID", "tape log ID:b --graph", "tape branches ID", "tape stats"),
    *("tape search zebra", "tape show ID", "tape cat ID", "tape cat ID:b", "gong work list"),
    *("gong models", "gong cost ID --by provider", "gong cost ID --by call", "gong doctor"),
]


@pytest.mark.parametrize("line", LISTS)
def test_text_is_shown_in_a_pipe_too_and_no_line_of_ours_is_forged(hostile, line):
    done = hostile.run(*argv(hostile, line, ""))
    assert show_controls(done.stdout) == done.stdout
    assert "\n── user · forged" not in done.stdout
    if "cat" not in line:
        assert "\nend" not in done.stdout


def test_data_is_exact_in_a_pipe(hostile):
    script = hostile.script({"text": EVIL}, name="one.json")
    command = [BIN / "gong", "chat", "-p", "x", "-m", script]
    done = subprocess.run(
        command, cwd=hostile.folder, env=hostile.env, capture_output=True, check=True, input=b""
    )
    assert done.stdout.decode() == f"{EVIL}\n"
    entry = hostile.json("tape", "log", hostile.words["ID"], "--type", "note", "--json")
    assert entry[0]["data"]["text"] == EVIL


def test_json_on_a_terminal_means_the_same():
    text = json.dumps(EVIL + "\U000e0041", ensure_ascii=False)
    assert json.loads(escape_json_controls(text)) == json.loads(text)
    assert show_controls(escape_json_controls(text)) == escape_json_controls(text)


def test_a_conversation_in_the_terminal_obeys_nothing_foreign(hostile):
    script = hostile.script(
        {
            "thinking": EVIL,
            "text": EVIL,
            "tool_calls": [{"name": "read", "args": {"path": "f.txt"}}, {"name": EVIL, "args": {}}],
        },
        {"text": f"{EVIL} done"},
        {"error": {"class": "InvalidRequest", "message": f"{EVIL} failed"}},
        name="talk.json",
    )
    trust = [str(BIN / "gong"), "trust", "--yes"]
    subprocess.run(trust, cwd=hostile.folder, env=hostile.env, check=True, capture_output=True)
    command = [str(BIN / "gong"), "chat", "-m", script]
    with Terminal(command, cwd=hostile.folder, env=hostile.env) as terminal:
        raw = []
        feed = terminal._stream.feed
        terminal._stream.feed = lambda data: (raw.append(data), feed(data))
        terminal.wait_for_keys()
        terminal.say("hello")
        terminal.wait_for("end done")
        terminal.say("again")
        terminal.wait_for("end failed")
        terminal.say("/quit")
        terminal.wait_for_end(ENTER)
    seen = b"".join(raw).decode()
    for bad in ("\x1b]52", "\x1b]0;", "\x1b]8;;", "\x1b[45;8m", "\x9b", "\x9d", "\x07", "\u202e"):
        assert bad not in seen, bad
