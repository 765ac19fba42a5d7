"""Merges with picks in exports, imports, detached tapes and after `gc`: the view is the same."""

from __future__ import annotations

import json

import pytest

from tape.context.view import view
from tape.errors import UsageError
from tape.history.merge_plan import build_merge_anchor, plan_merge
from tape.history.replay import replay_path
from tape.model.entries import Anchor
from tape.store.maintenance.gc import delete_garbage, find_garbage
from tape.store.maintenance.upkeep import detach
from tests.tape import making, reader
from tests.tape.moving import exported, folder_of, imported, other, whole

KEY = "sk-ant-api03-" + "aB3" * 12


@pytest.fixture
def store(tmp_path):
    return making.store_in(tmp_path / "store", iter(range(10**12, 10**13, 10)).__next__)


@pytest.fixture
def merged(store):
    """A tape whose branch main keeps a call and its result of a branch that has gone on."""
    with store.create(making.beginning("merged")) as tape:
        (one,) = making.write(tape, "one")
        tape.fork(making.at(tape, one.id), "side")
        with tape.writer("side") as writer:
            writer.append(making.say(f"secret {KEY}"))
            call = writer.append(making.answer("c_1"))
            writer.append(making.result("c_1"))
        making.write(tape, "two", branch="main")
        merge(tape, "main", "side", call.id)
        making.write(tape, "after", branch="side")
        making.write(tape, "three", branch="main")
        tape.fork(tape.head("side"), "third")
        yield tape


def merge(tape, into, branch, *picks):
    heads = [making.at(tape, pick) for pick in picks]
    with tape.writer(into) as writer:
        plan = plan_merge(tape, tape.head(into), tape.head(branch), heads)
        return writer.anchor(build_merge_anchor(tape, plan, "a merge", reason="merged"))


def seen(tape, branch="main"):
    path = tape.entries(tape.head(branch), to_anchor=True)
    anchor = path[0].data
    return view(path, tape.kept(anchor) if isinstance(anchor, Anchor) else ())


def types(found):
    return [entry.type for entry in (*found.kept, *found.entries)]


def test_the_export_of_a_path_holds_what_it_picked(merged, tmp_path):
    """The other branch comes along up to the pick: its newer entries and other branches do not."""
    there = other(tmp_path)
    imported(there, exported(merged, merged.head("main")))
    whole(there, merged.id)
    with there.open(merged.id) as copy:
        assert seen(copy) == seen(merged)
        assert replay_path(copy, copy.head()).differences == ()
        assert set(copy.refs().branches) == {"main", "side"}
        assert copy.head("side").header.type == "tool.result"
    assert "after" not in str(reader.phases(folder_of(there, merged.id)))


def test_a_masked_copy_keeps_the_same_entries_in_view(merged, tmp_path):
    there = other(tmp_path)
    for head in (None, merged.head("main")):
        data = exported(merged, head, redact=True)
        done = imported(there, data)
        whole(there, done.id)
        with there.open(done.id) as copy:
            assert types(seen(copy)) == types(seen(merged))
            assert replay_path(copy, copy.head("main")).differences == ()
            other_branch = json.loads(
                bytes(copy.entries(copy.head(), to_anchor=True)[0].data.other)
            )
            assert copy.find_entry(other_branch["picks"][0])
        there.remove(there.open(done.id))


def test_a_child_reads_picks_in_its_origin_and_needs_it(store, merged):
    """Picks of the origin's other branch are not on the shared path: a copy of it lacks them."""
    before = seen(merged)
    with store.create(making.beginning("child"), origin=(merged, merged.head("main"))) as child:
        assert types(seen(child)) == [*types(before), "start"]
        assert replay_path(child, child.head()).differences == ()
        for copying in (detach, exported):
            with pytest.raises(UsageError, match="keeps entries of 0002-side in view"):
                copying(child)
        assert not child.phases.has_origin


def test_a_merge_in_a_child_names_the_tape_of_what_it_keeps(store, merged):
    with store.create(making.beginning("child"), origin=(merged, merged.head("third"))) as child:
        making.write(child, "own", branch="main")
        child.fork(child.head(), "try")
        making.write(child, "tried", branch="try")
        making.write(child, "more", branch="main")
        anchor = merge(child, "main", "try")
        assert {kept.tape for kept in anchor.data.kept} == {None, merged.id}
        before = seen(child)
        _, entries = reader.view(folder_of(store, child.id), anchor.id)
        assert [one["id"] for one in entries] == [one.id for one in before.kept]
        detach(child)
        assert seen(child) == before
        assert replay_path(child, child.head()).differences == ()


def test_nothing_that_is_picked_is_garbage(store, merged):
    before = seen(merged)
    delete_garbage(store, find_garbage(store))
    assert seen(merged) == before
