"""Two copies of a tape that grew apart unite, in either order, to the same."""

import random
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import Damaged, TapeError
from tape.model.entries import Anchor, Summary
from tape.store.maintenance.upkeep import redact
from tape.store.store import Store
from tape.unite.tapes import unite_tapes
from tests.tape import making, reader


class Clock:
    """A clock of one machine, that may go wrong by hours."""

    def __init__(self, offset=0):
        self.now = making.DAY + offset

    def __call__(self):
        self.now += 1_000
        return self.now


def copy_store(store, path, offset=0):
    shutil.copytree(store.path, path)
    return Store(path, clock=Clock(offset), durable=False)


def describe(store):
    """Return everything that two united copies must agree on."""
    with store.open("") as tape:
        assert [*verify(tape, Counts())] == []
        assert reader.faults(store.tapes / tape.folder.name) == []
        refs = tape.refs()
        heads = {name: tape.head(name).entry for name in refs.branches}
        lines = {line[:48]: line for _, _, line in tape.phases.read_all_lines()}
        return heads, refs.labels, refs.title, refs.current, lines


def unite(here, there):
    with here.open("") as ours, there.open("") as theirs:
        return unite_tapes(ours, theirs, there.replica())


def unite_both_ways(a, b, tmp_path):
    """Unite two copies in both orders, each from the state before, and return what both say."""
    shutil.copytree(a.path, tmp_path / "a0", copy_function=shutil.copy2)
    before = describe(a)[4], describe(b)[4]
    first = Store(tmp_path / "a0", clock=Clock(), durable=False)
    first._replica = a.replica()  # it stands for the same copy, before
    unite(a, b)
    unite(b, first)
    here, there = describe(a), describe(b)
    assert here == there
    for lines in before:
        assert {*lines} <= {*here[4]}
    return here


@pytest.fixture
def pair(store, tape, tmp_path):
    making.write(tape, "one", "two")
    return store, copy_store(store, tmp_path / "copy")


def write(store, *texts, branch=None):
    with store.open("") as tape:
        return making.write(tape, *texts, branch=branch)


def test_what_one_copy_wrote_comes_over(pair):
    a, b = pair
    write(b, "three", "four")
    union = unite(a, b)
    assert (union.entries, len(union.phases), union.kept) == (3, 1, ())
    assert describe(a) == describe(b)
    assert unite(a, b)[:3] == (0, (), 0)


def test_a_branch_that_moved_on_both_sides_keeps_both_ends(pair, tmp_path):
    a, b = pair
    (mine,) = write(a, "mine")
    (other,) = write(b, "other")
    heads, *_ = unite_both_ways(a, b, tmp_path)
    assert {*heads.values()} == {mine.id, other.id}
    assert "main" in heads
    assert len(heads) == 2


def test_an_undo_here_and_an_append_there_keep_both_ends(pair, tmp_path):
    a, b = pair
    with a.open("") as tape, tape.writer() as writer:
        first = making.entries(tape)[1]
        writer.rewind(making.at(tape, first.id), "undo")
    (other,) = write(b, "other")
    heads, *_ = unite_both_ways(a, b, tmp_path)
    assert {*heads.values()} == {first.id, other.id}


def test_the_newest_title_and_label_count_and_a_removed_label_stays_away(pair, tmp_path):
    a, b = pair
    with a.open("") as tape:
        tape.label("good", tape.head().entry)
        tape.rename("older")
    unite(b, a)
    with b.open("") as tape:
        tape.label("good", None)
        tape.rename("newer")
    _, labels, title, *_ = unite_both_ways(a, b, tmp_path)
    assert (labels, title) == ({}, "newer")


def test_who_knew_a_title_can_replace_it_with_a_clock_that_is_days_behind(pair, tmp_path):
    a, b = pair
    with a.open("") as tape:
        tape.rename("of a clock that is right")
        tape.label("good", tape.head().entry)
    unite(b, a)
    b.clock.now -= 3 * 24 * 3_600_000_000
    with b.open("") as tape:
        tape.rename("later")
        tape.label("good", None)
    _, labels, title, *_ = unite_both_ways(a, b, tmp_path)
    assert (labels, title) == ({}, "later")


def test_redacted_data_does_not_come_back(pair, tmp_path):
    a, b = pair
    secret = "s3cret" * 20_000
    (entry,) = write(b, secret)
    unite(a, b)
    with a.open("") as tape:
        redact(tape, [entry.id], "a secret")
    write(b, "more")
    unite_both_ways(a, b, tmp_path)
    for store in (a, b):
        for file in store.path.rglob("*"):
            assert not file.is_file() or b"s3crets3cret" not in file.read_bytes(), file


def test_blobs_come_with_the_lines_that_name_them(pair):
    a, b = pair
    write(b, "x" * 70_000)
    assert unite(a, b).lost == ()
    assert making.texts(a.open(""))[-1] == "x" * 70_000


def test_a_damaged_line_of_the_other_copy_changes_nothing_here(pair):
    a, b = pair
    write(b, "three", "four")
    before = describe(a)
    (file,) = b.tapes.glob("*/phases/*-main/entries.jsonl")
    file.write_bytes(file.read_bytes().replace(b"three", b"thrEE"))
    with pytest.raises(Damaged, match="the other copy is damaged"):
        unite(a, b)
    assert describe(a) == before


def test_entries_of_programs_that_name_no_copy_are_refused_where_they_differ(tmp_path):
    older = Store(tmp_path / "a", anonymous=True, durable=False)
    with older.create(making.beginning()) as tape:
        making.write(tape, "one")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    other = Store(tmp_path / "b", anonymous=True, durable=False)
    write(older, "two here")
    write(other, "two there")
    with pytest.raises(TapeError, match="0001-main-start was continued in both copies"):
        unite(older, other)


def append(tape, choose):
    making.write(tape, f"text {choose.random()}", branch=choose.choice([*tape.refs().branches]))


def fork(tape, choose):
    base = making.at(tape, choose.choice(making.entries(tape)).id)
    tape.fork(base, f"b{choose.randrange(10**9)}", switch=True)


def undo(tape, choose):
    with tape.writer() as writer:
        writer.rewind(making.at(tape, choose.choice(making.entries(tape)).id), "undo")


def compact(tape, choose):
    with tape.writer() as writer:
        writer.anchor(Anchor(kind="compaction", summary=Summary(goal=f"goal {choose.random()}")))


def title(tape, choose):
    tape.rename(f"title {choose.random()}")


def label(tape, choose):
    tape.label(choose.choice("xyz"), choose.choice(making.entries(tape)).id)


def unlabel(tape, choose):
    tape.label(choose.choice("xyz"), None)


def switch(tape, choose):
    tape.switch(choose.choice([*tape.refs().branches]))


def hide(tape, choose):
    users = [entry.id for entry in making.entries(tape) if entry.type == "user"]
    if users:
        redact(tape, [choose.choice(users)], "because")


STEPS = (append, fork, undo, compact, title, label, unlabel, switch, hide)


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from((*STEPS, unite)), st.integers(0, 999))),
    st.integers(-3_600_000_000, 3_600_000_000),
)
def test_copies_that_grew_by_any_steps_unite_to_the_same(tmp_path_factory, steps, offset):
    path = tmp_path_factory.mktemp("union")
    a = Store(path / "a", clock=Clock(), durable=False)
    with a.create(making.beginning()) as tape:
        making.write(tape, "one")
    b = copy_store(a, path / "b", offset)
    for number, (at_a, change, seed) in enumerate(steps):
        here, there = (a, b) if at_a else (b, a)
        if change is unite:
            unite(here, there)
            continue
        with here.open("") as tape:
            change(tape, random.Random(1_000 * number + seed))
    unite_both_ways(a, b, path)
