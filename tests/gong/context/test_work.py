"""Work contexts on disk: nothing is lost, whoever else writes or has written them."""

import json
import subprocess
import sys

import pytest

from gong.context.handoff import MAX_REQUEST_CHARS, HistorySummary, render_handoff
from gong.context.work import (
    WorkAdditions,
    WorkContext,
    WorkStore,
    add_to_work,
    build_work_handoff,
    complete_task,
)
from tape.errors import Ambiguous, Damaged, NotFound
from tape.model.entries import Anchor, Assistant, Cost, Summary, Text, Usage
from tests.tape.making import beginning, say, store_in

NOW, LATER = "2026-11-22T05:00:00.000000Z", "2026-11-22T06:00:00.000000Z"


@pytest.fixture
def works(tmp_path):
    return WorkStore(tmp_path / "config/gong")


def test_a_piece_of_work_is_one_private_file_of_json(works):
    """M167"""
    made = works.create("Login", "People log in", "Flask", NOW)
    file = works.file(made.id)
    assert json.loads(file.read_text()) == {
        "id": made.id,
        "title": "Login",
        "goal": "People log in",
        "background": "Flask",
        "completed": [],
        "pending": [],
        "key_files": [],
        "notes": [],
        "decisions": [],
        "token_usage_by_provider": {},
        "tapes": [],
        "created": NOW,
        "updated": NOW,
    }
    assert (file.stat().st_mode & 0o777, works.path.stat().st_mode & 0o777) == (0o600, 0o700)
    assert works.all() == [made]


def test_what_was_added_stays_and_nothing_is_there_twice(works):
    """M167"""
    made = works.create("Login", "", "", NOW)
    more = WorkAdditions(["a", "b"], ["n"], ["f.py"], ["d"], ["7" * 32])
    for _ in range(2):
        works.change(made.id, lambda one: add_to_work(one, more), LATER)
    works.change(made.id, lambda one: complete_task(one, "2"), LATER)
    expected = WorkContext(
        made.id,
        "Login",
        completed=("b",),
        pending=("a",),
        key_files=("f.py",),
        notes=("n",),
        decisions=("d",),
        tapes=("7" * 32,),
        created=NOW,
        updated=LATER,
    )
    assert WorkStore(works.path.parent).all() == [expected]


def test_fields_of_a_later_version_are_kept(works):
    """M167"""
    made = works.create("Login", "", "", NOW)
    file = works.file(made.id)
    file.write_text(json.dumps({**json.loads(file.read_text()), "owner": {"name": "Ada"}}))
    works.change(made.id, lambda one: add_to_work(one, WorkAdditions(["a"])), LATER)
    kept = json.loads(file.read_text())
    assert (kept["owner"], kept["pending"]) == ({"name": "Ada"}, ["a"])


def test_a_copied_file_is_a_piece_of_work_of_its_own(works):
    made = works.create("Login", "", "", NOW)
    copy = works.file("0" * 8)
    copy.write_bytes(works.file(made.id).read_bytes())
    works.change("0" * 8, lambda one: add_to_work(one, WorkAdditions(["a"])), LATER)
    assert {one.id: one.pending for one in works.all()} == {made.id: (), "0" * 8: ("a",)}


def test_one_is_found_by_its_id_or_by_words(works):
    one = works.create("OAuth login", "", "", NOW)
    two = works.create("Login page", "", "", LATER)
    three = works.create("Login", "", "", LATER)
    assert works.find(one.id[:6]) == one
    assert works.find("page LOGIN") == two
    assert works.find("login") == three, "a whole title goes before words of others"
    with pytest.raises(Ambiguous) as many:
        works.find("log")
    assert (many.value.exit_code, len(many.value.hits)) == (3, 3)
    for wrong in ("printer", "", " "):
        with pytest.raises(NotFound, match="gong work list"):
            works.find(wrong)


def test_things_to_do_are_found_by_number_or_words():
    work = WorkContext("1" * 8, "x", pending=("write tests", "write docs", "2"))
    assert complete_task(work, "2").completed == ("write docs",)
    assert complete_task(work, "TESTS").pending == ("write docs", "2")
    with pytest.raises(Ambiguous):
        complete_task(work, "write")
    for wrong in ("4", "0", "", "deploy"):
        with pytest.raises(NotFound, match="gong work show"):
            complete_task(work, wrong)


def test_a_damaged_file_is_named_and_left_alone(works):
    made = works.create("Login", "", "", NOW)
    works.file(made.id).write_text("{")
    with pytest.raises(Damaged, match=made.id):
        works.all()
    with pytest.raises(Damaged, match=made.id):
        works.change(made.id, lambda one: one, LATER)
    assert works.file(made.id).read_text() == "{"


WRITER = """
import sys
from pathlib import Path
from gong.context.work import WorkAdditions, WorkStore, add_to_work
works, name = WorkStore(Path(sys.argv[1])), sys.argv[2]
for n in range(40):
    works.change(sys.argv[3], lambda one: add_to_work(one, WorkAdditions([f"{name}{n}"])), "x")
"""


def test_two_processes_lose_nothing_of_each_other(works):
    """M167"""
    made = works.create("Login", "", "", NOW)
    argv = [sys.executable, "-c", WRITER, str(works.path.parent)]
    both = [subprocess.Popen([*argv, name, made.id]) for name in "ab"]
    assert [one.wait(30) for one in both] == [0, 0]
    assert sorted(works.find(made.id).pending) == sorted(f"{x}{n}" for x in "ab" for n in range(40))
    left = {file.name for file in works.path.iterdir()}
    assert left == {f"{made.id}.json", "lock"}


def answer(provider, tokens, amount):
    usage = Usage(total=tokens)
    return Assistant((Text(text="ok"),), provider, "", "", "m", usage=usage, cost=amount)


def test_a_handoff_gathers_from_all_tapes_and_counts_shared_entries_once(tmp_path, works):
    """M168: tokens and cost for each provider, over tapes that share a past."""
    store = store_in(tmp_path / "store")
    with store.create(beginning()) as tape:
        with tape.writer() as writer:
            writer.append(say("build a parser"))
            writer.append(answer("a", 100, Cost("USD", 0.5)))
            writer.append(say("y" * (MAX_REQUEST_CHARS + 7)))
            writer.anchor(
                Anchor(
                    kind="compaction",
                    summary=Summary(goal="a parser", done=("the lexer",), next_steps=("docs",)),
                )
            )
        with store.create(beginning(), (tape, tape.head())) as child:
            with child.writer() as writer:
                writer.append(say("and a printer"))
                writer.append(answer("b", 7, None))
            told = HistorySummary()
            for one in (tape, child):
                told.take(one, one.head())
        made = works.create("Parser", "", "", NOW)
        made = works.change(
            made.id,
            lambda one: add_to_work(one, WorkAdditions(["docs"], tapes=[tape.id, child.id])),
            LATER,
        )
        handoff = build_work_handoff(made, told, cwd="/src", created=LATER)
        shown = render_handoff(handoff)
    assert (handoff.goal, handoff.done, handoff.todo) == ("a parser", ("the lexer",), ("docs",))
    assert [one[:20] for one in handoff.requests] == ["build a parser", "y" * 20, "and a printer"]
    assert "[7 characters more: tape show" in handoff.requests[1]
    assert (handoff.tape, handoff.others, handoff.from_model) == (child.id, (tape.id,), "b/m")
    assert "- a: 100 tokens ($0.500)\n- b: 7 tokens (unknown)\n- Total: 107 tokens ($0.500+)" in (
        shown
    )
    assert f"gong chat --session {child.id[:8]} -m MODEL" in shown
