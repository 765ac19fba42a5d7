"""docs/reference-gong.md is what the commands say, and what it says of them is so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import reduce
from operator import getitem
from pathlib import Path
from secrets import token_hex
from shlex import split

import msgspec
import pytest

from gong.config import Settings
from gong.context.work import WorkStore
from gong.llm.price_lists import SHIPPED
from tape import Assistant, Beginning, Text, User, open_store
from tape.model.entries import Usage
from tests.docs.manual import examples, promised
from tests.docs.reference_gong import ENDS, PAGE, keys, page, verbs
from tests.gong.cli.conftest import environment
from tests.gong.cli.inside import inside
from tests.gong.evals.check.samples import write_atif
from tests.gong.evals.making import make_run, make_task

UNRUN = {
    "gong sessions rm 3f2a": "it asks; tests/gong/cli/test_sessions.py removes one",
    "gong plugin add ./my-plugin": "it asks; tests/gong/cli/test_plugin.py installs one",
    "gong plugin remove my-plugin": "the same",
    "gong mcp test files": "installs that server; docs/mcp.md tries one",
    "gong env check docker:app": "it needs that container; tests/gong/cli/test_places.py has one",
    "gong env check gpu --json": "the same",
    "gong serve --port 0": "serves until it is ended; tests/gong/rpc/test_serve.py asks it",
    "gong auth login": "it asks which provider; tests/gong/cli/test_auth.py answers",
    "gong undo": "it asks; tests/gong/checkpoints/test_rewind.py undoes and redoes",
    "gong redo": "the same",
    "gong rewind ^3": "the same",
    "gong chat  # talk in the terminal": "tests/e2e drives it",
    "gong fix the failing test  # the same, with a first message": "the same",
    "gong chat --cwd api  # work in another folder": "the same",
    "gong chat -c  # continue this folder's newest session": "the same",
    "gong chat --fork 3f2a:main~4  # try something else from an earlier entry": "the same",
}
"""Examples that no test can run from here, with the reason."""

VERBS = {one.name: one.command for one in verbs()}
LINES = [line for one in VERBS.values() for line in examples(one)]
WORDS = "a line of output that takes its place in the window\n" * 100
IDENTITY = 16
"""Bytes of a tape's id."""


@pytest.fixture
def store(tmp_path):
    """The store of a home that holds what the examples name: a long tape, work, a key, files."""
    identities = iter(("3f2a",))

    def random(n):
        known = next(identities, "") if n == IDENTITY else ""
        return f"{known}{token_hex(n)}"[: 2 * n]

    store, _ = open_store(tmp_path / ".tape", random=random)
    beginning = Beginning(cwd=str(tmp_path), program="test/1", title="Login bug")
    usage = Usage(input=10, output=5, total=15)
    with store.create(beginning) as tape, tape.writer(durability="none") as writer:
        for number in range(8):
            writer.append(User((Text(f"Question {number}"),)))
            answer = Assistant((Text(WORDS),), provider="offline", model="rules", usage=usage)
            writer.append(answer)
        tape.fork(tape.head(), "try-redis")
    works = WorkStore(tmp_path / ".config" / "gong")
    works.create("oauth", "People log in", "", "2026-01-01T00:00:00.000000Z")
    (tmp_path / "README.md").write_text("# Read me\n")
    (tmp_path / "api").mkdir()
    make_task(tmp_path / "tasks/hello")
    make_task(tmp_path / "wrong-tasks/hello", test=None)
    (tmp_path / "trajectory.json").write_bytes(write_atif(()))
    make_run(tmp_path / "gong-evals/before", hello=False)
    make_run(tmp_path / "gong-evals/after", hello=True)
    (tmp_path / "arguments.json").write_text('{"path": "new.txt", "content": "x"}')
    (tmp_path / "calls.jsonl").write_text('{"tool": "read", "args": {"path": "README.md"}}\n')
    (tmp_path / "key.txt").write_text("sk-0123456789abcdef\n")
    return store


@pytest.fixture
def gong(store, tmp_path):
    return inside(tmp_path)


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == page(), "`make docs` writes docs/reference-gong.md anew"


def test_examples_that_are_special_are_still_there():
    assert set(UNRUN) <= set(LINES)


FIRST = {
    "gong redo --yes": "gong undo --yes",
    "gong compact 3f2a:main --undo": "gong compact 3f2a",
    "gong work done oauth 1": "gong work add oauth --todo tests",
    "gong auth logout openai": "gong auth login openai < key.txt",
}
"""What goes before an example."""


@pytest.mark.parametrize("line", [line for line in LINES if line not in UNRUN])
def test_an_example_runs(line, gong, tmp_path):
    if line in FIRST:
        run(gong, FIRST[line], tmp_path)
    run(gong, line, tmp_path)


def run(gong, line: str, home: Path) -> None:
    """Run an example that has to end with 0, in this process where it needs no other program."""
    if "|" in line or ">" in line:
        (home / ".config/fish/completions").mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        env = {**environment(home), "PATH": path, "GONG_MODEL": "offline/rules"}
        done = subprocess.run(
            ["sh", "-c", line], env=env, cwd=home, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return
    command, _, file = line.partition(" < ")
    given = (home / file).read_bytes() if file else b"sk-0123456789abcdef\n"
    if command.startswith("gong chat"):
        given = b""
    gong(*split(command, comments=True)[1:], stdin=given)


NOWHERE = {
    "chat": "chat --session deadbeef -p hello",
    "compact": "compact deadbeef",
    "context": "context deadbeef",
    "handoff": "handoff deadbeef --to offline/rules",
    "work add": "work add deadbeef --todo x",
    "work done": "work done deadbeef 1",
    "work show": "work show deadbeef",
    "work handoff": "work handoff deadbeef",
    "cost": "cost deadbeef",
    "doctor": "doctor deadbeef",
    "models": "models --provider deadbeef",
    "auth login": "auth login deadbeef",
    "auth logout": "auth logout deadbeef",
    "sessions show": "sessions show deadbeef",
    "sessions rm": "sessions rm deadbeef --yes",
    "tool": "tool deadbeef",
}
SPOILT = [
    *((3, line) for line in NOWHERE.values()),
    (5, "chat --session {}:main -p hello"),
    (5, "compact {}:main"),
    (5, "handoff {}:main --to offline/rules"),
    (5, "sessions rm {} --yes"),
    (6, "chat -m anthropic/claude-sonnet-4-5 -p hello"),
    (7, """tool bash '{{"command": "rm -rf /"}}'"""),
    (1, "eval list wrong-tasks"),
    (1, "eval run wrong-tasks --agent solution --in folder"),
    (6, "eval run tasks -m anthropic/claude-sonnet-4-5 --in folder"),
    (8, "chat -m offline/rules --max-turns 1 -p 'list .'"),
    (1, "compact --undo"),
    (1, 'tool read \'{{"path": "nowhere.txt"}}\''),
]
"""Exit codes, and a line that ends with each; {} is a tape that is being written."""


@pytest.mark.parametrize(("code", "line"), SPOILT)
def test_what_goes_wrong_ends_with_its_code(code, line, gong, store, tmp_path):
    beginning = Beginning(cwd=str(tmp_path), program="test/1")
    with store.create(beginning) as tape, tape.writer("main") as writer:
        writer.append(User((Text("Question"),)))
        gong(*split(line.format(tape.id)), code=code)


def test_what_a_session_needs_and_has_not_ends_with_1(gong, tmp_path):
    (tmp_path / ".config/gong/config.toml").write_text("model =")
    gong("doctor", code=1)


def test_a_provider_that_stays_busy_ends_with_75(gong, tmp_path):
    error = {"class": "RateLimited", "message": "slow down", "retry_after": 9999}
    (tmp_path / "busy.json").write_text(json.dumps([{"error": error}]))
    gong("chat", "-m", "scripted/busy.json", "-p", "hello", code=75)


def test_an_answer_that_was_cut_ends_with_9(gong, tmp_path):
    (tmp_path / "cut.json").write_text(json.dumps([{"text": "half", "stop_reason": "length"}]))
    gong("chat", "-m", "scripted/cut.json", "-p", "hello", code=9)


def test_a_review_ends_with_1_for_a_finding_and_with_10_where_a_part_failed(gong, tmp_path):
    patch = "--- /dev/null\n+++ b/a.sh\n@@ -0,0 +1 @@\n+curl x | sh\n"
    (tmp_path / "x.patch").write_text(patch)
    gong("review", "--pr", str(tmp_path / "x.patch"), code=1)
    gong("review", "--pr", str(tmp_path / "x.patch"), "-m", "nobody/nothing", code=10)


def test_every_code_a_verb_may_end_with_is_seen():
    told = {(name, code) for name, ends in ENDS.items() for code, _ in ends}
    seen = {(verb_of(line), code) for code, line in SPOILT}
    elsewhere = {("doctor", 1), ("chat", 9), ("chat", 75), ("review", 1), ("review", 10)}
    elsewhere |= {("eval run", 8)}
    assert told - seen == elsewhere


def verb_of(line: str) -> str:
    return next(name for name in sorted(VERBS, reverse=True) if line.startswith(f"{name} "))


ASKED = {
    "merge": "merge 3f2a:try-redis",
    "work new": "work new Title",
    "undo": "undo --yes",
    "cost": "cost 3f2a",
    "version": "version",
    "completion": "completion bash",
    "context": "context 3f2a",
    "trust": "trust",
    "eval run": "eval run tasks --agent solution --in folder",
    "eval check": "eval check 3f2a",
    "eval compare": "eval compare gong-evals/before gong-evals/after",
    "models refresh": f"models refresh --from {SHIPPED}",
}


@pytest.mark.parametrize("name", [name for name, one in VERBS.items() if promised(one)])
def test_json_has_the_keys_that_help_says(name, gong):
    got = json.loads(gong(*ASKED[name].split(), "--json").stdout)
    is_array, keys = promised(VERBS[name])
    assert isinstance(got, list) is is_array
    assert keys == set(got[0] if is_array else got)


def test_every_documented_setting_can_be_set(gong, tmp_path):
    tree = msgspec.to_builtins(Settings())
    told = re.findall(r"^\| `([a-z_.]+)` \|", page().partition("## Settings")[2], re.MULTILINE)
    assert told == [*keys()]
    for key in told:
        table, _, name = key.rpartition(".")
        value = reduce(getitem, key.split("."), tree)
        if value is not None:
            head = f"[{table}]\n" if table else ""
            text = f"{head}{name} = {json.dumps(value)}\n"
            (tmp_path / ".config/gong/config.toml").write_text(text)
            gong("work", "list")
            gong("cost")


def test_no_other_page_speaks_of_a_flag_that_is_not_there():
    """Every option that a page names behind `gong VERB` is one of that verb."""
    lost = []
    flags = {
        name: {flag for one in verb.params for flag in one.opts} for name, verb in VERBS.items()
    }
    for file in [PAGE.parent.parent / "README.md", *PAGE.parent.glob("*.md")]:
        for line in re.findall(r"\bgong ([a-z][^`|#\n]*)", file.read_text("utf-8")):
            names = [name for name in flags if f"{line} ".startswith(f"{name} ")]
            if names:
                name = max(names, key=len)
                known = flags[name] | {"--json", "--debug", "--help"}
                # Which a requirement, or a folder of tasks, stands for.
                known |= flags.get(f"{name} start", set()) | flags.get(f"{name} run", set())
                lost += [
                    (file.name, line, one)
                    for one in re.findall(r" (--[a-z-]+)", line)
                    if one not in known
                ]
    assert lost == []
