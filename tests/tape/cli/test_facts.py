"""What tapes say of repository, person, machine and agent: chosen by, summed by, and found by."""

from __future__ import annotations

import json
import subprocess

import msgspec
import pytest

from tape.cli.listing import format_tapes
from tape.index.library import list_tapes, open_store
from tape.index.tape_sync import name_agent
from tape.model.entries import Assistant, Text, User
from tape.store.store import Beginning
from tests.tape.cli.conftest import Command, line, words
from tests.tape.cli.test_completion import offered

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


@pytest.mark.parametrize(
    ("by", "agent"),
    [
        ("gong/1.2", "gong"),
        ("gong", "gong"),
        ("tape/0.1 (import from claude)", "claude"),
        ("tape/0.1 (store of langchain)", "langchain"),
        ("my program/3 (beta)", "my program"),
        ("/", None),
        ("", None),
        ("\ud800/1", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_the_agent_is_who_made_the_session(by, agent):
    assert name_agent(by) == agent


@pytest.fixture
def sessions(tape, tmp_path):
    """A tape made here, one of gong, and an import of Codex: what `by` says of each."""
    with open_store(tape.store) as (store, _):
        for program in ("gong/1.2", "tape/1 (import from codex)"):
            beginning = Beginning(str(tape.work), program, program.rpartition(" ")[2])
            with store.create(beginning) as made, made.writer() as writer:
                writer.append(User((Text("hello"),)))
                answer = msgspec.json.encode({"content": [], **ANSWER, "cost": COST})
                writer.append(msgspec.json.decode(answer, type=Assistant))
    said = line("user", content=words("hello")) + line("assistant", content=[], **ANSWER)
    tape("append", tape("new", "--title", "own").text.strip(), stdin=said)


def test_lists_search_and_sums_are_narrowed_by_agent(tape, sessions):
    """The option may be repeated, and takes whole names in any case."""

    def agents(*command):
        return {row["agent"] for row in tape(*command, "--json", code=None).json}

    for options, meant in (
        ((), {"codex", "gong", "tape"}),
        (("--agent", "codex"), {"codex"}),
        (("--agent", "GONG", "--agent", "codex"), {"codex", "gong"}),
        (("--agent", "cod"), set()),
    ):
        assert agents("ls", *options) == meant
        assert agents("search", "hello", *options) == meant
        assert agents("stats", "--by", "agent", *options) == meant
    told = tape("ls", "--agent", "cod").err
    assert told == "tape: no tape to list by cod; `tape stats --by agent` lists the agents\n"
    for index in tape.store.glob("index.db*"):
        index.unlink()
    (tape.store / "index.db").mkdir()  # no index can be made: tapes are read
    assert agents("ls", "--agent", "codex") == {"codex"}
    assert tape.refused("ls", "--agent", " ", code=2) == "--agent needs a name"


def test_the_agent_is_shown_and_completed(tape, sessions):
    rows = [row.split() for row in tape("ls").text.rstrip().split("\n")]
    assert [row[4] for row in rows] == ["AGENT", "tape", "codex", "gong"]
    hits = [hit for hit in tape("search", "hello").text.split("\n") if "@" in hit]
    assert {hit.split()[3] for hit in hits} == {"codex", "gong", "tape"}
    for command in ("ls --agent ", "search --agent ", "stats x --agent "):
        assert offered(tape, f"tape {command}") == ["codex", "gong", "tape"]
        assert offered(tape, f"tape {command}Co") == ["codex"]


@pytest.mark.parametrize("columns", [44, 80, 100, 200])
def test_a_list_fits_the_terminal(tape, sessions, columns):
    """Branches and entries give way before the cost and the agent."""
    with open_store(tape.store) as opened:
        rows = [
            row._replace(title="A long title that gives way " * 9) for row in list_tapes(*opened)
        ]
        lines = [*format_tapes(rows, tape.store.stat().st_mtime_ns // 1000, columns)]
    assert max(map(len, lines)) <= columns
    assert {"ID", "AGE", "TITLE"} <= {*lines[0].split()}
    assert (columns < 80) == ("AGENT" not in lines[0]) == ("COST" not in lines[0])


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


@pytest.mark.parametrize(
    ("step", "before", "added"),
    [
        ("m010_facts_that_travel", 9, ("repository", "person", "machine")),
        ("m011_agents", 10, ("agent",)),
    ],
)
def test_an_index_of_before_learns_the_facts(checkouts, step, before, added):
    """An older index is read anew in place, not refused."""
    import sqlite3

    here = checkouts["here"]
    listed = here("ls", "--json").json
    here("reindex")
    assert here("ls", "--json").json == listed
    with sqlite3.connect(here.store / "index.db") as db:
        db.execute("DROP VIEW sessions")
        for name in added:
            db.execute(f"DROP INDEX tapes_{name}")
            for table in ("tapes", "phases")[: 1 if added == ("agent",) else 2]:
                db.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        db.execute("CREATE VIEW sessions AS SELECT 1")
        db.execute("DELETE FROM _sqlite_migrations WHERE name = ?", [step])
        db.execute(f"PRAGMA user_version = {before}")
    db.close()
    assert json.dumps(here("ls", "--json").json) == json.dumps(listed)
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


def test_a_page_of_html_names_the_facts_that_are_known(checkouts):
    page = checkouts["there"]("export", "--to", "html").text
    person = "Ada Byron &lt;ada@example.org&gt;"
    facts = f"<span>{APP}</span> <span>{person}</span> <span>on lap</span>"
    assert f"<p>{facts}</p>" in page
    assert "<span>on desk</span>" not in checkouts["odd"]("export", "--to", "html").text


def test_a_tape_shows_the_facts_that_are_newest(checkouts):
    """In its JSON, and in the first lines of an export, which are its entries."""
    names = ("repository", "person", "machine")
    there = checkouts["there"]
    shown = there("show", "--json").json
    assert [shown[name] for name in names] == [APP, "Ada Byron <ada@example.org>", "lap"]
    started = next(
        entry["data"]
        for entry in map(json.loads, there("export").text.split("\n")[:-1])
        if entry.get("type") == "start"
    )
    assert [started[name] for name in names] == [shown[name] for name in names]
    there("mv", str(checkouts["other"].work))
    (row,) = there("ls", "--json", "--machine", "lap").json
    shown = there("show", row["id"], "--json").json
    assert [shown[name] for name in names] == [row[name] for name in names]
    assert shown["repository"] == f"{APP}-server"
    odd = checkouts["odd"]("show", "--json").json
    assert [odd[name] for name in names] == [None, None, "desk"]
