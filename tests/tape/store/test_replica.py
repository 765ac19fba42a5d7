"""A phase is written by one copy of a store, ever: who continues elsewhere opens a new one."""

import shutil

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.store.replica import MACHINE_NAME, Replica, read_replica
from tape.store.store import Store
from tests.tape import making, reader


@pytest.fixture
def copied(store, tape, tmp_path):
    """Return a copy of the store with the one tape, opened."""
    making.write(tape, "one")
    shutil.copytree(store.path, tmp_path / "copy")
    return Store(tmp_path / "copy", durable=False)


def continue_tape(store, text):
    """Append a prompt to the only tape of a store, and return the names of its phases."""
    with store.open("") as tape:
        making.write(tape, text)
        assert [*verify(tape, Counts())] == []
        assert reader.faults(store.tapes / tape.folder.name) == []
        return tape.phases.names()


def test_a_copy_of_a_store_has_another_name(store, copied):
    here, there = store.replica(), copied.replica()
    assert here.id != there.id
    assert read_replica(copied.path) == there
    assert read_replica(store.path) == here


def test_a_copy_opens_a_phase_and_the_original_continues_its_own(store, copied):
    assert continue_tape(store, "two here") == ["0001-main-start"]
    first, second = continue_tape(copied, "two there")
    assert (first, second.partition("-")[2]) == ("0001-main-start", "main")
    assert continue_tape(copied, "three there") == [first, second]


def test_no_two_copies_give_one_name_to_two_phases(store, copied, tmp_path):
    shutil.copytree(copied.path, tmp_path / "third")
    names = [continue_tape(one, "two")[-1] for one in (copied, Store(tmp_path / "third"))]
    assert len({*names}) == 2


def test_a_tape_that_names_no_copy_is_continued_in_a_new_phase(tmp_path):
    older = Store(tmp_path, anonymous=True)
    with older.create(making.beginning()) as tape:
        making.write(tape, "one")
    assert len(continue_tape(older, "two")) == 1
    assert len(continue_tape(Store(tmp_path), "three")) == 2


@pytest.mark.parametrize("text", ["", "{}", '{"machine":"x","replica":"no","inode":1}'])
def test_an_unreadable_name_is_written_again(store, tape, text):
    (store.path / MACHINE_NAME).write_text(text)
    again = Store(store.path)
    assert again.replica().id != store.replica().id
    assert Store(store.path).replica() == again.replica()


def test_a_torn_tail_of_another_copy_is_cut_and_reported(copied):
    with copied.open("") as tape:
        file = copied.tapes / tape.folder.name / "phases/0001-main-start/entries.jsonl"
        good = file.read_bytes()
        file.write_bytes(good + b'{"id":"tor')
    assert len(continue_tape(copied, "two")) == 2
    assert file.read_bytes() == good


def test_sixteen_copies_raise_the_number_of_a_phase_by_different_amounts():
    copies = [Replica(f"{number:08x}", "laptop") for number in range(16)]
    equal = [
        tape
        for tape in map(str, range(4_000))
        if len({copy.choose_step(tape) for copy in copies}) < len(copies)
    ]
    assert equal == []
