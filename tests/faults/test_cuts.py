"""A file cut at any byte: reading finds the last whole line, and writing goes on behind it."""

import pytest

from tape.errors import Damaged
from tape.model.entries import Repair
from tests.tape import making, reader

MAIN = "phases/0001-main-start/entries.jsonl"


@pytest.fixture
def tape(tmp_path):
    with making.store_in(tmp_path).create(making.beginning()) as tape:
        making.write(tape, "one", "zwei €")
        yield tape


@pytest.fixture
def folder(tmp_path, tape):
    return tmp_path / "tapes" / tape.folder.name


def cuts(folder, name):
    """Cut a file at every byte behind its first line; yield what is whole and what is torn."""
    before, data = reader.files(folder), (folder / name).read_bytes()
    for size in range(data.index(b"\n") + 1, len(data) + 1):
        for file in folder.glob("quarantine/*"):
            file.unlink()
        for other, whole in before.items():
            (folder / other).write_bytes(whole)
        (folder / name).write_bytes(data[:size])
        end = data.rindex(b"\n", 0, size) + 1
        yield data[:end], data[end:size]


def quarantine(folder):
    return {file.name: file.read_bytes() for file in folder.glob("quarantine/*")}


def test_of_entries_puts_exactly_the_rest_in_quarantine(tape, folder):
    for whole, torn in cuts(folder, MAIN):
        kept = ["one", "zwei €"][: whole.count(b"\n") - 1]
        assert (tape.head().end, making.texts(tape)) == (len(whole), kept)
        making.write(tape, "after")
        mended, last = making.entries(tape)[-2:]
        assert last.data == making.say("after")
        assert isinstance(mended.data, Repair) == bool(torn)
        assert quarantine(folder) == ({f"0001-main-start.{len(whole)}": torn} if torn else {})
        assert (folder / MAIN).read_bytes().startswith(whole)
        assert reader.faults(folder) == []


def test_of_the_journal_puts_exactly_the_rest_in_quarantine(tape, folder):
    for whole, torn in cuts(folder, "refs.jsonl"):
        assert making.texts(tape) == ["one", "zwei €"]
        tape.rename("after")
        assert quarantine(folder) == ({f"refs.{len(whole)}": torn} if torn else {})
        assert (folder / "refs.jsonl").read_bytes().startswith(whole)
        assert tape.refs().title == "after"


def test_of_a_branchs_first_line_is_damage_to_that_branch_alone(tape, folder):
    tape.fork(tape.head(), "b")
    making.write(tape, "there", branch="b")
    file = folder / "phases/0002-b/entries.jsonl"
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(Damaged, match="0002-b: it has no valid entry"):
        tape.writer("b")
    making.write(tape, "fine")
    assert making.texts(tape) == ["one", "zwei €", "fine"]
