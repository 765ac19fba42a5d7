"""Sessions that go on in another folder, and folders of repositories."""

from __future__ import annotations

import asyncio
import json
import subprocess

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


def test_a_session_that_goes_on_elsewhere_says_so_first(gong, home, repository):
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
