"""Repository, person and machine of tapes: chosen by, summed by, and found from other checkouts."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.tape.cli.conftest import Command, line, words

APP = "example.org/team/app"
ANSWER = {"provider": "p", "model": "m", "usage": {"input": 3, "output": 4, "total": 7}}
COST = {"currency": "USD", "amount": 0.5}


@pytest.fixture
def checkouts(tape, tmp_path):
    """Commands in several folders on one store, by name; each records one tape of that title."""

    def begin(name, url=None, person="Ada Byron <ada@example.org>", machine="desk"):
        there = Command(tape.store.parent, tmp_path / name)
        there.env |= {"TAPE_PERSON": person}
        if not there.work.exists():
            subprocess.run(["git", "init", "-q", there.work], check=True)
        if url is not None:
            remote = ["git", "-C", there.work, "remote", "add", "origin", url]
            subprocess.run(remote, check=True)
        tape("machine", machine)
        made = there("new", "--title", name).text.strip()
        said = line("user", content=words(f"hello from {name}"))
        answer = line("assistant", content=words("fine"), cost=COST, **ANSWER)
        there("append", made, stdin=said + answer)
        return there

    return {
        "here": begin("here", "git@example.org:team/app.git"),
        "there": begin("there", "https://u:secret@example.org/team/app", machine="lap"),
        "other": begin("other", "https://example.org/team/app-server", "Bob <bob@b.org>"),
        "local": begin("local"),
        "odd": begin("odd", "ext::sh -c x", person="off"),
    }


def titles(command, *options, verb="ls"):
    return {row["title"] for row in command(verb, "--json", *options, code=None).json}


FILTERS = [
    ((), {"here", "there", "other", "local", "odd"}),
    (("--repository", "team/app"), {"here", "there", "other"}),
    (("--repository", "APP-server"), {"other"}),
    (("--repository", "ssh://git@example.org:22/team/app-server.git"), {"other"}),
    (("--repository", "git@example.org:team/app-server"), {"other"}),
    (("--repository", "."), {"here", "there"}),
    (("--repository", "../local"), {"local"}),
    (("--repository", "../odd"), {"odd"}),
    (("--person", "ada"), {"here", "there", "local"}),
    (("--person", "BOB@b"), {"other"}),
    (("--machine", "lap"), {"there"}),
    (("--machine", "desk", "--person", "byron", "--repository", "."), {"here"}),
    (("--person", "nobody"), set()),
]


@pytest.mark.parametrize(("options", "meant"), FILTERS)
def test_lists_search_and_sums_take_the_same_filters(checkouts, options, meant):
    here = checkouts["here"]
    assert titles(here, *options) == meant
    assert titles(here, "hello", *options, verb="search") == meant
    rows = here("stats", "--by", "tape", "--json", *options).json
    assert {row["title"] for row in rows} == meant
    for index in here.store.glob("index.db*"):
        index.unlink()
    assert titles(here, *options) == meant


def test_an_empty_name_is_refused(tape):
    for name in ("repository", "person", "machine"):
        said = tape.refused("ls", f"--{name}", " ", code=2)
        assert said == f"--{name} needs a name, or a part of one"


def test_rows_name_what_their_tapes_say(checkouts):
    here = checkouts["here"]
    names = ("repository", "person", "machine")
    ada = "Ada Byron <ada@example.org>"
    (listed,) = here("ls", "--json", "--machine", "lap").json
    (found,) = here("search", "hello", "--json", "--machine", "lap").json
    for row in (listed, found):
        assert [row[name] for name in names] == [APP, ada, "lap"]
        assert row["cwd"] == str(checkouts["there"].work)
    (odd,) = here("ls", "--json", "--repository", "../odd").json
    assert [odd[name] for name in names] == [None, None, "desk"]


def test_costs_are_summed_by_repository_person_and_machine(checkouts):
    def sums(by, *options):
        rows = checkouts["here"]("stats", "--by", by, "--json", *options).json
        return {row[by]: row["cost"] for row in rows}

    assert sums("machine") == {"desk": 2.0, "lap": 0.5}
    assert sums("repository") == {APP: 1.0, f"{APP}-server": 0.5, None: 1.0}
    ada = "Ada Byron <ada@example.org>"
    assert sums("person", "--repository", ".") == {ada: 1.0}


def test_a_list_begins_with_the_tapes_of_this_repository_in_any_checkout(checkouts):
    """They are shown with their folder."""
    rows = checkouts["here"]("ls").text.split("\n")[1:]
    assert [row.split()[3] for row in rows[:2]] == ["there", "here"]
    assert [row.split()[2].endswith("there") for row in rows[:2]] == [True, False]
    assert rows[1].split()[2] == "."
    assert titles(checkouts["here"], "--here") == {"here", "there"}
    assert titles(checkouts["local"], "--here") == {"local"}
    assert titles(checkouts["odd"], "--here") == {"odd"}


def test_an_index_of_before_learns_the_facts(checkouts):
    """An older index is read anew in place, not refused."""
    import sqlite3

    here = checkouts["here"]
    before = here("ls", "--json").json
    here("reindex")
    assert here("ls", "--json").json == before
    with sqlite3.connect(here.store / "index.db") as db:
        for name in ("repository", "person", "machine"):
            db.execute(f"DROP INDEX tapes_{name}")
        db.execute("DROP VIEW sessions")
        for table in ("tapes", "phases"):
            for name in ("repository", "person", "machine"):
                db.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        db.execute("CREATE VIEW sessions AS SELECT 1")
        db.execute("DELETE FROM _sqlite_migrations WHERE name = 'm010_facts_that_travel'")
        db.execute("PRAGMA user_version = 9")
    db.close()
    assert json.dumps(here("ls", "--json").json) == json.dumps(before)
    assert list(here.store.glob("index.db.*")) == []


def test_a_new_checkout_continues_what_another_one_recorded(checkouts, tape, tmp_path):
    """Not what a repository without a remote, or with an odd one, recorded."""

    def show(name, url=None):
        there = Command(tape.store.parent, tmp_path / name)
        subprocess.run(["git", "init", "-q", there.work], check=True)
        if url is not None:
            subprocess.run(["git", "-C", there.work, "remote", "add", "o", url], check=True)
        ran = there("show", "--json", code=None)
        return ran.json["title"] if ran.code == 0 else ran.err

    assert show("fresh", "ssh://me@example.org/team/app.git") == "there"
    for url in (None, "ext::sh -c x", "https://example.org/team/else"):
        assert "no tape for" in show(f"none-{url and len(url)}", url)
    linked = Command(tape.store.parent, tmp_path / "linked")
    git = ["git", "-C", checkouts["other"].work, "-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", linked.work], check=True)
    assert linked("show", "--json").json["title"] == "other"
    assert linked("show").text.count(str(checkouts["other"].work)) == 1


def test_a_markdown_page_names_the_facts_that_are_known(checkouts):
    page = checkouts["there"]("export", "--to", "md").text
    facts = f"- Repository: `{APP}`\n- Person: `Ada Byron <ada@example.org>`\n- Machine: `lap`\n"
    assert facts in page
    bare = checkouts["odd"]("export", "--to", "md").text
    assert "- Repository" not in bare
    assert "- Person" not in bare
