"""Sessions that go on in another folder, and folders of repositories."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from contextlib import closing

import pytest

from gong.cli.options import load_settings
from gong.host import answer_prompt, open_session
from tape import open_store
from tape.model.entries import Anchor, Meta, Start, User

RULES = ("-m", "offline/rules")


def read_places(home):
    """Return the folder and project of each start and meta of the only tape, prompts as None."""
    with open_store(home / ".tape") as (store, _):
        (row,) = store.folders()
        with store.open_folder(row) as tape:
            return [
                None if isinstance(entry.data, User) else (entry.data.cwd, entry.data.project)
                for entry in tape.entries(tape.head())
                if isinstance(entry.data, Start | Meta | User)
            ]


@pytest.fixture
def repository(home):
    """A repository with a folder in it."""
    (home / "repo/src").mkdir(parents=True)
    (home / "other").mkdir()
    subprocess.run(["git", "init", "-q", home / "repo"], check=True)
    return home / "repo"


def test_a_session_that_continues_in_another_folder_warns_first(gong, home, repository):
    root, src, other = str(repository), str(repository / "src"), str(home / "other")
    gong(*RULES, "-p", "list .", cwd=root)
    (listed,) = json.loads(gong("tape", "ls", "--all", "--json").stdout)
    assert listed["project"] == root

    went = gong(*RULES, "-c", "-p", "list .", cwd=src)  # found by its repository
    assert f"this session worked in {root}; it continues in {src}" in went.stderr
    (other_file := home / "other/there.txt").write_text("x\n")
    went = gong(*RULES, "--cwd", "other", "--session", listed["id"], "-p", "list .")
    assert f"this session worked in {src}; it continues in {other}" in went.stderr
    assert other_file.name in went.stdout
    assert "continues in" not in gong(*RULES, "-c", "-p", "list .", cwd=other).stderr

    places = [(root, root), None, (src, root), None, (other, None), None, None]
    assert read_places(home) == places
    (with_index,) = json.loads(gong("tape", "ls", "--all", "--json").stdout)
    assert (with_index["cwd"], with_index["project"]) == (other, None)
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        (home / ".tape" / name).unlink(missing_ok=True)
    assert json.loads(gong("tape", "ls", "--all", "--json").stdout) == [with_index]


def test_looking_at_a_session_does_not_move_it(gong, home, repository):
    gong(*RULES, "-p", "list ." + " and what is there" * 400, cwd=repository)
    (listed,) = json.loads(gong("tape", "ls", "--all", "--json").stdout)
    gong("compact", listed["id"], "--hard", *RULES, cwd=home / "other")
    assert read_places(home) == [(str(repository), str(repository)), None]
    with open_store(home / ".tape") as (store, _), store.open(listed["id"]) as tape:
        (anchor,) = [e.data for e in tape.entries(tape.head()) if isinstance(e.data, Anchor)]
    assert anchor.state.cwd == str(repository)


def test_a_session_of_the_library_moves_too_and_on_its_new_branch(home, repository, env):

    async def carry():
        settings = load_settings(str(repository))
        given = {"model": "offline/rules", "store": home / ".tape", "settings": settings}
        async with open_session(repository, **given, environ=env) as session:
            await answer_prompt(session, "list .")
            ref = session.recorder.tape.id
        async with open_session(home / "other", **given, environ=env, ref=ref) as session:
            session.fork("try")
            await answer_prompt(session, "list .")

    asyncio.run(carry())
    root = str(repository)
    assert read_places(home) == [(root, root), None, (str(home / "other"), None), None]


def test_cwd_must_be_a_folder(gong, home):
    (home / "file").write_text("")
    assert "file" in gong("--cwd", "file", "-p", "hi", code=2).stderr
    assert "missing" in gong("--cwd", "missing", "-p", "hi", code=2).stderr


def test_readers_resolve_paths_against_the_folder_in_force(gong, home):
    """One session writes files of the same name in three folders."""
    places, ref = [home / name for name in ("one", "two", "three")], None
    for place in places:
        place.mkdir()
        past = [] if ref is None else ["--session", ref]
        gong(*RULES, *past, "--yolo", "-p", f"write {place.name} to a.txt", cwd=place)
        assert (place / "a.txt").exists()
        (listed,) = json.loads(gong("tape", "ls", "--all", "--json").stdout)
        ref = listed["id"]
    paths = {str(place / "a.txt") for place in places}
    changed = json.loads(gong("tape", "files", ref, "--json").stdout)
    entries = {str(places[-1] / one["path"]): one["entry"] for one in changed}
    assert entries.keys() == paths
    assert len(set(entries.values())) == len(places)
    for place in places:
        (line,) = json.loads(gong("tape", "blame", str(place / "a.txt"), "--json").stdout)
        assert line["prompt"] == f"write {place.name} to a.txt"
    with closing(sqlite3.connect(home / ".tape/index.db")) as db:
        found = {path for (path,) in db.execute("SELECT path FROM file_changes")}
    assert found == paths
    for place in places:
        entry = entries[str(place / "a.txt")]
        assert f"+{place.name}" in gong("tape", "show", f"{ref}@{entry}").stdout
        hits = json.loads(gong("tape", "search", f"write {place.name} to a.txt", "--json").stdout)
        assert place.name in hits[0]["snippet"]
    log = gong("tape", "cat", ref).stdout
    assert all(f"continued in {place}" in log for place in places[1:])
    gong(*RULES, "--session", ref, "--yolo", "-p", "run seq 1 2000", cwd=places[-1])
    gong("compact", ref, "--hard", *RULES, cwd=places[-1])
    anchor = json.loads(gong("tape", "anchors", ref, "--json").stdout)[-1]
    shown = json.loads(gong("tape", "show", f"{ref}@{anchor['entry']}", "--json").stdout)
    named = shown["data"]["summary"]["files_changed"]
    assert named == [str(places[0] / "a.txt"), str(places[1] / "a.txt"), "a.txt"]
    page = gong("handoff", ref, "--to", "offline/rules", cwd=places[0]).stdout
    assert "- a.txt" in page
    assert all(f"- {place / 'a.txt'}" in page for place in places[1:])


def commit(folder):
    who = ("-c", "user.name=A", "-c", "user.email=a@b.example")
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(
        ["git", "-C", folder, *who, "commit", "-q", "--allow-empty", "-m", folder], check=True
    )


def test_after_mv_of_a_repository_the_sessions_of_before_are_named(gong, home):
    (home / "old/src").mkdir(parents=True)
    (home / "else/old").mkdir(parents=True)
    commit(home / "old")
    commit(home / "else/old")
    for _ in range(2):
        gong(*RULES, "-p", "list .", cwd=home / "old/src")
    (home / "old").rename(home / "new place")
    here = home / "new place"
    newest = json.loads(gong("tape", "ls", "--json").stdout)[0]["id"]

    asked = gong(*RULES, "-c", "-p", "list .", cwd=here, code=3)
    command = f"tape mv {newest[:8]} '{here}/src'"
    (error,) = asked.stderr.strip().split("\n")
    begins = "gong: no session in this folder yet: start one with gong chat. "
    hint = f"tape: {error.removeprefix(begins)}"
    assert f"2 tapes worked in {home}/old, which is gone; this repository was at " in hint
    assert hint.endswith(
        f" too: if it is the same project, `{command}` says so for the newest of them"
    )
    assert error.startswith(begins)
    listed = gong("tape", "ls", cwd=here)
    assert hint.partition(": ")[2] in listed.stderr
    assert listed.stdout.count("list .") == 2

    # Another repository, though of the same name, was never at that commit.
    assert "is gone" not in gong("tape", "ls", cwd=home / "else/old").stderr
    assert gong("tape", "ls", "--json", cwd=here).stderr == ""

    gong("tape", "mv", newest[:8], f"{here}/src")
    assert "is gone" not in gong("tape", "ls", cwd=here).stderr
    assert "continues in" in gong(*RULES, "-c", "-p", "list .", cwd=here).stderr


def test_without_commits_only_a_folder_of_the_same_name_is_named(gong, home):
    (home / "a/notes").mkdir(parents=True)
    (home / "b/notes").mkdir(parents=True)
    gong(*RULES, "-p", "list .", cwd=home / "a/notes")
    assert gong("tape", "ls", cwd=home / "b/notes").stderr == "", "it is still there"
    (home / "a/notes").rename(home / "a/other")
    assert gong("tape", "ls", cwd=home / "a/other").stderr == ""
    shown = gong("tape", "ls", "--here", cwd=home / "b/notes").stderr
    assert f"a tape worked in {home}/a/notes, which is gone; this folder has the same name" in shown
    assert f"`tape mv {json.loads(gong('tape', 'ls', '--json').stdout)[0]['id'][:8]} " in shown
