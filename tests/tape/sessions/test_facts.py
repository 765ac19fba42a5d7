"""Repository, person and machine of imported sessions: what the source says, else the folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tape.formats.sessions import copilot, grok
from tape.stores.session_log import Item, SessionLog
from tests.tape.cli.conftest import Command
from tests.tape.formats.sessions.lines import ClaudeFile, CodexFile

APP = "example.org/team/app"
ANN = "Ann <ann@example.org>"


def git(folder, *words):
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


@pytest.fixture
def app(tmp_path):
    """A checkout with a folder in it."""
    app = tmp_path / "app"
    (app / "sub").mkdir(parents=True)
    git(app, "init", "-q", "-b", "main")
    git(app, "remote", "add", "origin", "https://me:pw@example.org/team/app.git")
    git(app, "config", "user.name", "Ann")
    git(app, "config", "user.email", "ann@example.org")
    return app


@pytest.fixture
def tape(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    return Command(home, work)


def make_claude(*places):
    """Return the session of Claude Code that says one thing in each folder."""
    file = ClaudeFile()
    for n, cwd in enumerate(places):
        file.say(f"u{n}", f"u{n - 1}" if n else None, f"say {n}", cwd=str(cwd))
    return file


def bring(tape, data, name="session.jsonl"):
    """Import a file and return the row of its tape."""
    file = tape.work / name
    file.write_bytes(data)
    done = tape("import", file, "--json").json
    (row,) = (row for row in tape("ls", "--all", "--json").json if row["id"] == done["id"])
    return row


def facts_of(row):
    return row["project"], row["repository"], row["person"], row["machine"]


def test_a_folder_that_is_here_says_what_the_source_does_not(tape, app):
    """Which machine it was nobody says."""
    row = bring(tape, make_claude(app / "sub").data)
    assert facts_of(row) == (str(app), APP, ANN, None)
    assert row["cwd"] == str(app / "sub")


def test_of_a_folder_that_is_not_here_only_the_source_tells(tape, tmp_path):
    row = bring(tape, make_claude(tmp_path / "gone").data)
    assert facts_of(row) == (None, None, None, None)
    git_of = {"repository_url": "git@example.org:team/other.git", "branch": "main"}
    row = bring(tape, CodexFile(cwd=str(tmp_path / "gone"), git=git_of).data, "codex.jsonl")
    assert facts_of(row) == (None, "example.org/team/other", None, None)
    row = bring(tape, CodexFile(session="s-2", cwd="app", git=git_of).data, "relative.jsonl")
    assert facts_of(row)[0] is None


def test_what_the_source_says_comes_before_what_is_there_now(tape, app):
    git_of = {"repository_url": "git@example.org:team/fork.git"}
    data = CodexFile(cwd=str(app), git=git_of).data
    assert facts_of(bring(tape, data)) == (str(app), "example.org/team/fork", ANN, None)


def test_an_import_names_no_person_where_that_is_off(tape, app):
    tape.env["TAPE_PERSON"] = "off"
    assert facts_of(bring(tape, make_claude(app).data)) == (str(app), APP, None, None)
    chat = json.dumps([{"role": "user", "content": "hi"}]).encode()
    (app / "chat.json").write_bytes(chat)
    here = Command(tape.store.parent, app)
    here.env["TAPE_PERSON"] = "off"
    made = here("import", "chat.json", "--from", "openai-chat", "--json").json
    (row,) = (row for row in here("ls", "--json").json if row["id"] == made["id"])
    assert facts_of(row)[:3] == (str(app), APP, None)
    here.env["TAPE_PERSON"] = "Bo <bo@example.org>"
    assert (
        bring(here, CodexFile(cwd=str(app)).data, "codex.jsonl")["person"]
        == here.env["TAPE_PERSON"]
    )


def test_a_session_that_goes_to_another_folder_keeps_its_repository(tape, app, tmp_path):
    """And is found again with its remark about the folder, also when it has no remote any more."""
    file = make_claude(app, app / "sub", app)
    row = bring(tape, file.data)
    assert (row["cwd"], *facts_of(row)[:3]) == (str(app), str(app), APP, ANN)
    git(app, "remote", "remove", "origin")
    again = tape("import", tape.work / "session.jsonl", "--json").json
    assert again["added"] == 0
    file.say("u3", "u2", "more", cwd=str(tmp_path / "elsewhere"))
    (tape.work / "session.jsonl").write_bytes(file.data)
    assert tape("import", tape.work / "session.jsonl", "--json").json["added"] == 2
    (row,) = tape("ls", "--all", "--json").json
    assert (row["cwd"], *facts_of(row)[:3]) == (str(tmp_path / "elsewhere"), None, None, ANN)


def test_an_array_belongs_to_the_folder_it_is_imported_in(tape, app):
    (app / "chat.json").write_text('[{"role": "user", "content": "hi"}]')
    here = Command(tape.store.parent, app / "sub")
    here("import", "../chat.json", "--from", "openai-chat")
    (row,) = here("ls", "--here", "--json").json
    assert facts_of(row) == (str(app), APP, ANN, None)


def test_documents_of_ours_carry_the_facts(tape, app, tmp_path):
    here = Command(tape.store.parent, app)
    here("machine", "desk")
    made = here("new").text.strip()
    here("append", made, stdin=b'{"type":"user","data":{"content":[{"type":"text","text":"x"}]}}\n')
    for form in ("atif", "otlp", "codex"):
        data = here("export", made, "--to", form, *(["--content"] * (form == "otlp"))).out
        other = tmp_path / f"{form}-home"
        (other / "work").mkdir(parents=True)
        elsewhere = Command(other, other / "work")
        app.rename(tmp_path / "away")  # the document alone says it
        row = bring(elsewhere, data, f"out-{form}.json")
        (tmp_path / "away").rename(app)
        said = (None, None) if form == "codex" else (ANN, "desk")
        assert facts_of(row)[1:] == (APP, *said)


def test_copilot_and_grok_name_their_repository():
    place = {"cwd": "/src/app/sub", "gitRoot": "/src/app", "branch": "main", "headCommit": "abc"}
    place |= {"repository": "team/app", "repositoryHost": "Example.org"}
    start = {"type": "session.start", "data": {"sessionId": "s", "context": place}}
    session = copilot.read_session(lambda: [json.dumps(start).encode()], "x")
    assert (session.repository, session.project) == (APP, "/src/app")
    assert session.git.commit == "abc"
    del place["repositoryHost"]
    assert copilot.read_session(lambda: [json.dumps(start).encode()], "x").repository is None
    summary = {"info": {"id": "s", "cwd": "/src/app/sub"}, "git_root_dir": "/src/app"}
    session = grok.read_session(lambda: [json.dumps(summary).encode()], "x")
    assert session.project == "/src/app"


def test_a_session_of_an_sdk_knows_where_it_works(tape, app, monkeypatch):
    monkeypatch.chdir(app / "sub")
    monkeypatch.delenv("TAPE_PERSON", raising=False)
    tape("machine", "desk")
    SessionLog(tape.store, "openai-agents", "1").append([Item("x")])
    (row,) = tape("ls", "--all", "--json").json
    assert facts_of(row) == (str(app), APP, ANN, "desk")
    monkeypatch.setenv("TAPE_PERSON", "off")
    log = SessionLog(Path(tape.store), "openai-agents", "2")
    log.append([Item("x")])
    rows = {row["id"]: row for row in tape("ls", "--all", "--json").json}
    assert facts_of(rows[log.tape_id]) == (str(app), APP, None, "desk")
