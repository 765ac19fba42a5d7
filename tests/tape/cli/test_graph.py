"""`tape log --graph`: all branches as git draws them."""

from __future__ import annotations

import re

import pytest

from tape.model.entries import Anchor
from tape.text import measure_width
from tests.e2e.terminal import Terminal
from tests.tape import making
from tests.tape.cli.conftest import BIN


@pytest.fixture
def forked(tape):
    """A tape with two branches, a rewind, an anchor and a label: its id."""
    ticks = iter(range(10**6))
    store = making.store_in(tape.store, lambda: making.DAY + 1_000_000 * next(ticks))
    with store.create(making.beginning("forked")) as made:
        one, _ = making.write(made, "one", "two")
        base = making.at(made, one.id)
        made.fork(base, "b")
        with made.writer("b") as writer:
            writer.append(making.answer("c_1"))
            writer.append(making.result("c_1"))
            writer.anchor(Anchor(kind="compaction", summary="what was"))
            writer.append(making.say("试试 redis " * 30))
        with made.writer("main") as writer:
            writer.rewind(base, "rewind")
            writer.append(making.say("three"))
        made.label("good", one.id)
        return made.id


def without_ids(text):
    return [re.sub(r"\b[0-9a-f]{8}\b", "ID", row) for row in text.split("\n")[:-1]]


DRAWN = """\
* ID (* main)  user         three
* ID  branch       main from ID (continued)
| * ID (b)  user         试试 redis 试试 redis 试试 redis 试试 redis 试试 redis 试试 redis 试…
| # ID  anchor       compaction on b: what was
| * ID  tool.result  bash: done
| * ID  assistant    → bash
| * ID  branch       b from ID (continued)
|/
| o ID (undone)  user         two
|/
* ID (label: good)  user         one
* ID  start        test/1 in /src"""


def test_every_branch_is_drawn_newest_first(tape, forked):
    rows = tape("log", forked, "--graph").text
    assert without_ids(rows) == DRAWN.split("\n")
    assert max(measure_width(row) for row in rows.split("\n")) <= 100
    assert tape("log", forked, "--graph", "--oneline").text == rows
    assert tape("log", f"{forked}:b", "--graph").text == rows


def test_a_folded_drawing_counts_what_it_leaves_out(tape, forked):
    rows = without_ids(tape("log", forked, "--graph", "--fold").text)
    assert rows[4:6] == ["| : 2 more: 1 tool.result, 1 assistant", DRAWN.split("\n")[6]]
    assert [row[:6] for row in rows[:4]] == [row[:6] for row in DRAWN.split("\n")[:4]]


def test_a_drawing_can_be_narrowed_but_never_loses_a_name(tape, forked):
    assert tape("log", forked, "--graph", "-n", "2").text.count("\n") == 2
    assert tape("log", forked, "--graph", "-n", "0").text == ""
    rows = without_ids(tape("log", forked, "--graph", "--type", "anchor").text)
    assert [row.split("ID", 1)[1].split()[0] for row in rows if "ID" in row] == [
        *("(*", "(b)", "anchor", "(label:")
    ]


def test_json_is_the_tree_itself(tape, forked):
    tree = tape("log", forked, "--graph", "--json").json
    assert list(tree) == ["tape", "current", "branches", "phases", "labels", "damage"]
    assert list(tree["branches"][0]) == ["branch", "phase", "entry", "n", "time", "pinned"]
    assert list(tree["phases"][0]) == [
        *("tape", "phase", "branch", "base", "first", "last", "entries", "undone")
    ]
    phases = {one["phase"]: one for one in tree["phases"]}
    assert [(name, one["entries"], one["undone"]) for name, one in phases.items()] == [
        ("0001-main-start", 3, 1),
        ("0002-b", 3, 0),
        ("0003-b-compaction", 2, 0),
        ("0004-main", 2, 0),
    ]
    assert phases["0001-main-start"]["base"] is None
    good = tree["labels"]["good"]
    assert phases["0004-main"]["base"] == {
        "tape": forked,
        "phase": "0001-main-start",
        "entry": good,
    }
    assert phases["0003-b-compaction"]["first"]["type"] == "anchor"
    assert (tree["current"], tree["damage"]) == ("main", [])


def test_damage_is_reported_and_the_rest_is_drawn(tape, forked):
    (tape.folder(forked) / "phases/0003-b-compaction/entries.jsonl").write_bytes(b"?\n")
    ran = tape("log", forked, "--graph")
    assert "what was" not in ran.text
    assert ran.text.count("bash") == 2
    told = ran.err.split("\n")[:-1]
    assert [line.split(":")[1] for line in told] == [" 0003-b-compaction", " branch b"]
    assert len(tape("log", forked, "--graph", "--json").json["damage"]) == 2


def test_lanes_have_colours_on_a_terminal_only(tape, forked):
    assert b"\x1b" not in tape("log", forked, "--graph").out
    command = [str(BIN), "log", forked, "--graph", "--no-pager"]
    env = {**tape.env, "LC_ALL": "C.UTF-8"}
    with Terminal(command, cwd=tape.work, env=env, columns=60) as terminal:
        assert terminal.wait_for_end() == 0
        assert terminal.colours() >= {"red", "green"}
        rows = without_ids(terminal.text().rstrip() + "\n")
        assert [row[:5] for row in rows] == [row[:5] for row in DRAWN.split("\n")]
