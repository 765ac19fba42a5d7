"""`tape import` of other agents' sessions: what is found, said and added, and files that grow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tape.formats.sessions.lines import ClaudeFile, CodexFile, call, text


@pytest.fixture
def claude_file():
    file = ClaudeFile()
    file.say("u1", None, "list the zebras")
    file.answer("a1", "u1", call("t1"), stop="tool_use")
    file.result("r1", "a1", "t1", "zebra.py")
    file.answer("a2", "r1", text("One zebra."), stop="end_turn")
    return file


@pytest.fixture
def home(tape, monkeypatch, claude_file):
    """A home with a session of Claude Code and one of Codex."""
    home = Path(tape.env["HOME"])
    place = home / ".claude/projects/-src-app"
    place.mkdir(parents=True)
    (place / f"{claude_file.session}.jsonl").write_bytes(claude_file.data)
    codex = CodexFile()
    codex.message("user", "count the otters")
    codex.message("assistant", "Two otters.")
    place = home / ".codex/sessions/2026/05/01"
    place.mkdir(parents=True)
    (place / "rollout-2026-05-01T10-00-00-x.jsonl").write_bytes(codex.data)
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def test_auto_finds_imports_and_adds_nothing_twice(tape, home):
    done = tape("import", "auto")
    assert "Claude Code: 1 session in " in done.text
    assert "Codex: 1 session in " in done.text
    assert "added 9 entries in 2 tapes" in done.text
    assert tape("import", "auto").text.splitlines()[-1] == "nothing new"
    assert tape("import", "auto", "--json").json == {"tapes": [], "failed": []}
    assert {one["title"] for one in tape("ls", "--all", "--json").json} == {
        *("list the zebras", "count the otters"),
    }
    assert "zebra.py" in tape("search", "zebra").text


def test_unknown_kinds_of_lines_are_reported_once(tape, tmp_path, claude_file):
    for kind in ("attachment", "attachment", "next-thing"):
        claude_file.add(kind, f"x{len(claude_file.lines)}", "a2")
    file = tmp_path / f"{claude_file.session}.jsonl"
    file.write_bytes(claude_file.data)
    said = "3 lines kept whole, for no model to see: attachment 2, next_thing 1"
    assert f"claude: {said}" in tape("import", str(file)).err
    claude_file.say("u2", "a2", "more")
    file.write_bytes(claude_file.data)
    assert "kept whole" not in tape("import", str(file)).err
    (found,) = tape("import", str(file), "--json").json["tapes"]
    assert found["unknown_kinds"] == {"attachment": 2, "next_thing": 1}


def test_one_agent_one_project_and_what_is_new(tape, home):
    (found,) = tape("import", "auto", "--from", "codex", "--json").json["tapes"]
    assert (found["tool"], found["added"], found["damaged"]) == ("codex", 4, 0)
    assert tape("import", "auto", "--project", "/src/none", "--json").json["tapes"] == []
    (found,) = tape("import", "auto", "--project", "/src", "--json").json["tapes"]
    assert found["tool"] == "claude"
    file = home / ".claude/old.jsonl"
    file.write_bytes(b"")
    assert tape("import", str(home), "--since", "2099-01-01", "--json").json["tapes"] == []


def test_a_session_that_grew_is_continued_in_its_tape(tape, home, claude_file):
    first = tape("import", "auto", "--from", "claude", "--json").json["tapes"][0]
    claude_file.say("u2", "a2", "and the lions?")
    file = home / f".claude/projects/-src-app/{claude_file.session}.jsonl"
    file.write_bytes(claude_file.data)
    again = tape("import", "auto", "--from", "claude", "--json").json["tapes"][0]
    assert (again["id"], again["added"]) == (first["id"], 1)
    log = tape("log", f"claude:{claude_file.session}", "--json").json
    assert [entry["type"] for entry in log] == [
        *("start", "user", "assistant", "tool.result", "assistant", "user"),
    ]
    assert log[0]["data"]["imported"]["tool"] == "claude"
    assert log[0]["data"]["imported"]["session"] == claude_file.session


def test_a_reference_of_a_session_that_is_not_here(tape, home):
    done = tape("log", "codex:nothing", code=3)
    assert "codex:nothing has not been imported: `tape import auto` does that" in done.err


def test_one_file_and_standard_input(tape, tmp_path, claude_file):
    file = tmp_path / "any-name.jsonl"
    file.write_bytes(claude_file.data)
    done = tape("import", str(file), "--json").json
    assert (done["added"], done["branches"], done["skipped"]) == (5, 1, 0)
    assert done["tapes"][0]["id"] == done["id"]
    again = tape("import", "-", "--json", stdin=claude_file.data).json
    assert (again["id"], again["added"]) == (done["id"], 0)


def test_a_file_that_is_no_session_costs_only_itself(tape, home):
    (home / ".codex/sessions/2026/05/01/rollout-bad.jsonl").write_bytes(b"\0not json\n")
    done = tape("import", "auto", "--json", code=1).json
    assert len(done["tapes"]) == 2
    (failed,) = done["failed"]
    assert failed["source"].endswith("rollout-bad.jsonl")
    assert "is not a session that is known" in failed["why"]


def test_options_for_many_sessions_need_many(tape, tmp_path, claude_file):
    file = tmp_path / "one.jsonl"
    file.write_bytes(claude_file.data)
    done = tape("import", str(file), "--watch", code=2)
    assert "go with `auto` or a FOLDER" in done.err
    assert "is for a FILE" in tape("import", "auto", "--from", "anthropic", code=2).err


def test_watching_imports_what_is_written_within_seconds(tmp_path, home, claude_file):
    """A live session is followed, and a file that is torn for a moment is no error."""
    store = tmp_path / "store"
    command = [sys.executable, "-m", "tape", "--store", str(store), "import", "auto", "--watch"]
    file = home / f".claude/projects/-src-app/{claude_file.session}.jsonl"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=os.environ | {"HOME": str(home)}, text=True
    ) as watching:
        assert watching.stdout is not None
        for line in watching.stdout:
            if line.startswith("watching"):
                break
        claude_file.say("u2", "a2", "and the lions?")
        file.write_bytes(claude_file.data[:-20])
        time.sleep(0.1)
        file.write_bytes(claude_file.data)
        line = next(one for one in watching.stdout if "entry added" in one)
        watching.send_signal(signal.SIGINT)
    assert "1 entry added" in line
    log = [*command[:5], "log", f"claude:{claude_file.session}", "-1", "--json"]
    last = subprocess.run(log, capture_output=True, check=True, text=True).stdout
    assert "and the lions?" in last


def test_a_session_goes_back_to_its_agent(tape, home, claude_file):
    tape("import", "auto", "--from", "claude")
    name = f"claude:{claude_file.session}"
    assert "pass --yes" in tape("export", name, "--to", "codex", "--install", code=2).err
    done = tape("export", name, "--to", "codex", "--install", "--yes")
    (installed,) = (home / ".codex/sessions").glob("*/*/*/rollout-*T10-00-00-[!x]*.jsonl")
    assert str(installed) in done.text
    (again,) = tape("import", str(installed), "--json").json["tapes"]
    assert (again["tool"], again["title"]) == ("codex", "list the zebras")
    assert "--install goes with" in tape("export", name, "--install", code=2).err


def test_a_folder_gets_a_document_for_each_branch(tape, home, claude_file, tmp_path):
    tape("import", "auto", "--from", "claude")
    name, folder = f"claude:{claude_file.session}", tmp_path / "documents"
    folder.mkdir()
    done = tape("export", name, "--to", "atif", "-o", str(folder))
    written = sorted(folder.iterdir())
    assert sorted(done.text.split()) == [str(path) for path in written]
    branches = {row["branch"] for row in tape("branches", name, "--json").json}
    assert {path.stem for path in written} == branches
    assert "--force" in tape("export", name, "--to", "atif", "-o", str(folder), code=1).err
    said = tape("export", f"{name}:main", "--to", "atif", "-o", str(folder), code=2).err
    assert "name the tape" in said
    (again,) = tape("import", str(written[0]), "--json").json["tapes"]
    assert (again["tool"], again["damaged"]) == ("atif", 0)
