"""`tape blame --notes` on a real repository."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from tests.tape.cli.conftest import line, words


@pytest.fixture
def git(tape):
    def run(*args, code=0):
        done = subprocess.run(
            ["git", *args], cwd=tape.work, env=tape.env, capture_output=True, check=False
        )
        assert done.returncode == code, done
        return done.stdout.decode()

    run("init", "-q", "-b", "main")
    run("config", "user.name", "Ann")
    run("config", "user.email", "ann@example.com")
    return run


def call(number, name, **args):
    block = {"type": "tool_call", "id": f"c_{number}", "name": name, "args": args}
    return line("assistant", content=[block], provider="offline", model="rules") + line(
        "tool.result", call_id=f"c_{number}", name=name, content=words("ok")
    )


@pytest.fixture
def committed(tape, git):
    """A commit of a file: two lines of a write, one of an edit, one by hand; another by hand."""
    identity = tape("new").text.strip()
    said = line("user", content=words("the secret prompt"))
    said += call(1, "write", path="src/a b.py", content="import os\nprint('hi')\n")
    said += call(2, "edit", path="src/a b.py", old_string="'hi'", new_string="'hello'")
    tape("append", identity, stdin=said)
    (tape.work / "src").mkdir()
    (tape.work / "src" / "a b.py").write_text("import os\nprint('hello')\nby_hand = 1\n")
    (tape.work / "own.py").write_text("mine = 1\n")
    time.sleep(1.1)  # a commit's time has whole seconds
    git("add", "-A")
    git("commit", "-qm", "First")
    return identity


def read_note(git, ref):
    return git("notes", f"--ref={ref}", "show", "HEAD")


def test_a_commit_gets_the_log_of_git_ai_and_a_trace(tape, git, committed):
    head = git("rev-parse", "HEAD").strip()
    ran = tape("blame", "--notes", "HEAD", "--json").json
    assert (ran["commit"], ran["added"]) == (head, 4)
    assert [(one["path"], one["lines"]) for one in ran["noted"]] == [
        ("src/a b.py", [1]),
        ("src/a b.py", [2]),
    ]
    said, _, about = read_note(git, "refs/notes/ai").partition("\n---\n")
    path, first, second = said.split("\n")
    assert path == '"src/a b.py"'
    assert re.fullmatch(r"  s_[0-9a-f]{14}::t_[0-9a-f]{14} 1", first)
    assert re.fullmatch(r"  s_[0-9a-f]{14}::t_[0-9a-f]{14} 2", second)
    told = json.loads(about)
    assert (told["schema_version"], told["base_commit_sha"]) == ("authorship/3.0.0", head)
    (session,) = told["sessions"].values()
    assert session["agent_id"] == {"tool": "tape", "id": committed, "model": "offline/rules"}
    assert session["human_author"] == "Ann <ann@example.com>"
    trace = json.loads(read_note(git, "refs/notes/agent-trace"))
    assert trace["vcs"] == {"type": "git", "revision": head}
    (file,) = trace["files"]
    assert file["path"] == "src/a b.py"
    entries = [one["url"].rpartition("@")[2] for one in file["conversations"]]
    assert [one["ranges"] for one in file["conversations"]] == [
        [{"start_line": 1, "end_line": 1}],
        [{"start_line": 2, "end_line": 2}],
    ]
    assert "hello" in tape("show", f"{committed}@{entries[1]}").text
    assert "secret" not in read_note(git, "refs/notes/ai") + json.dumps(trace)


def test_notes_again_are_the_same_and_only_new_lines_count(tape, git, committed):
    tape("blame", "--notes", "HEAD")
    before = read_note(git, "refs/notes/ai"), read_note(git, "refs/notes/agent-trace")
    assert "2 of 4 new lines in 1 file" in tape("blame", "--notes", "HEAD").text
    assert (read_note(git, "refs/notes/ai"), read_note(git, "refs/notes/agent-trace")) == before
    (tape.work / "src" / "a b.py").write_text("import os\nprint('hello')\nby_hand = 2\n")
    git("commit", "-qam", "Second")
    assert "nothing was written" in tape("blame", "--notes", "HEAD").text
    git("notes", "--ref=ai", "show", "HEAD", code=1)


def test_a_note_of_another_program_stays(tape, git, committed):
    git("notes", "--ref=ai", "add", "-m", "src/x.py\n  abcd 1\n---\n{}", "HEAD")
    ran = tape("blame", "--notes", "HEAD", code=2)
    assert "a note of another program in refs/notes/ai" in ran.err
    git("notes", "--ref=agent-trace", "show", "HEAD", code=1)


def test_what_is_no_commit_is_refused(tape, git, committed):
    assert tape("blame", "--notes", "nowhere", code=3).err.startswith("tape: git rev-parse: ")
    assert tape("blame", "--notes", "--help", code=3).err.startswith("tape: git rev-parse: ")
    assert tape("blame", "a.py", "--notes", "HEAD", code=2).err.startswith("tape: --notes is about")
    assert "Missing argument" in tape("blame", code=2).err
