"""Readers check what they read: no changed, missing or repeated line passes without a word."""

import os

import pytest

from tape.context.repair import build_messages
from tape.context.view import Target
from tape.damage import DamageWarning
from tape.errors import Damaged
from tape.store.path import LineChecker
from tests.tape import making

MAIN = "phases/0001-main-start/entries.jsonl"
WORDS = ["zero", "one", "two", "three", "four", "five"]


def change(folder, how):
    """Change the lines of a phase; `how` gets the list of them and changes it."""
    path = folder / MAIN
    lines = path.read_bytes().split(b"\n")[:-1]
    how(lines)
    path.write_bytes(b"\n".join([*lines, b""]))


def flip_data(lines):
    lines[3] = lines[3].replace(b"two", b"tWo")


def flip_id(lines):
    lines[3] = lines[3][:10] + (b"0" if lines[3][10:11] != b"0" else b"1") + lines[3][11:]


def flip_head(lines):
    lines[3] = lines[3].replace(b'"type":"user"', b'"type":"uzer"')


def delete(lines):
    del lines[3]


def repeat(lines):
    lines.insert(3, lines[3])


def swap(lines):
    lines[3], lines[4] = lines[4], lines[3]


CASES = [
    (flip_data, ["zero", "one", "three", "four", "five"], "its data does not match its hash"),
    (flip_id, ["zero", "one", "three", "four", "five"], "its id does not match its bytes"),
    (flip_head, ["zero", "one", "three", "four", "five"], "its id does not match its bytes"),
    (delete, ["zero", "one", "three", "four", "five"], "does not follow from the one before"),
    (repeat, WORDS, "repeated or out of order"),
    (swap, ["zero", "one", "three", "four", "five"], "does not follow from the one before"),
]


def texts(entries):
    return [entry.data.content[0].text for entry in entries if entry.type == "user"]


@pytest.mark.parametrize(
    ("how", "left", "why"), CASES, ids=lambda value: getattr(value, "__name__", "")
)
def test_changed_lines_are_left_out_and_reported(tape, folder, how, left, why):
    made = making.write(tape, *WORDS)
    change(folder, how)
    told = []
    assert texts(tape.entries(tape.head(), skipped=told.append)) == left
    assert why in told[0]
    assert "`tape fsck` explains it" in told[0]
    if how is flip_data:
        assert [made[2].id[:12] in text for text in told] == [True]
    (segment,) = tape.path(tape.head())
    for lines in (segment.read_checked_lines, segment.read_checked_lines_back):
        again = []
        ids = [line[7:47] for _, line in lines(again.append)]
        assert len(ids) == len(left) + 1
        assert again != []


@pytest.mark.parametrize("how", [flip_data, flip_head, swap])
def test_what_changes_after_a_reading_is_noticed_by_the_next(tape, folder, how):
    making.write(tape, *WORDS)
    assert texts(tape.entries(tape.head())) == WORDS
    file = folder / MAIN
    before = file.stat()
    change(folder, how)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_mtime_ns, file.stat().st_size) == (before.st_mtime_ns, before.st_size)
    told = []
    assert texts(tape.entries(tape.head(), skipped=told.append)) != WORDS
    assert told != []


def test_whole_lines_in_a_wrong_place_are_reported(tape, folder):
    making.write(tape, *WORDS)
    told = []
    data = (folder / MAIN).read_bytes()
    second = data.index(b"\n") + 1
    third = data.index(b"\n", second) + 1
    check = LineChecker("p", tape.phases.read_redacted_ids, told.append)
    assert check.read_run(third, data[third:]) == (data[third:], None)
    check = LineChecker("p", tape.phases.read_redacted_ids, told.append)
    assert check.read_run(0, data[:second]) == (data[:second], None)
    whole, single = check.read_run(third, data[third:])
    assert (whole, len(list(single))) == (b"", len(WORDS) - 1)
    assert "does not follow from the one before" in told[0]


def test_a_library_without_a_reporter_is_warned(tape, folder):
    making.write(tape, *WORDS)
    change(folder, flip_data)
    with pytest.warns(DamageWarning, match="its data does not match its hash"):
        seen = build_messages(tape, tape.head(), Target("", "", ""))
    assert "tWo" not in str(seen.repaired.messages)


def test_one_entry_that_changed_is_refused(tape, folder):
    made = making.write(tape, *WORDS)
    head = making.at(tape, made[2].id)
    change(folder, flip_data)
    with pytest.raises(Damaged, match=f"entry {made[2].id[:12]}: its data does not match"):
        tape.entry(head)


def test_a_changed_last_line_is_reported_unless_it_is_being_written(tape, folder):
    making.write(tape, *WORDS)
    change(folder, lambda lines: lines.__setitem__(-1, lines[-1].replace(b"five", b"fIve")))
    told = []
    assert texts(tape.entries(tape.head(), skipped=told.append)) == WORDS[:-1]
    assert ["bytes skipped: incomplete or damaged" in text for text in told] == [True]


def test_a_phase_with_a_changed_beginning_is_refused(tape, folder):
    making.write(tape, *WORDS)
    change(folder, lambda lines: lines.__setitem__(0, lines[0].replace(b"test/1", b"best/1")))
    with pytest.raises(Damaged, match="the first entry is damaged"):
        tape.entries(tape.head())
