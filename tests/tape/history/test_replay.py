"""Folding a path again: what agrees, and what does not."""

import pytest

from tape.clock import format_timestamp
from tape.context.repair import NEVER_RAN, UNKNOWN_OUTCOME
from tape.errors import Damaged
from tape.history.replay import ReplayDifference, replay_path
from tape.model.entries import (
    Anchor,
    Assistant,
    CoveredRange,
    Error,
    InjectedResult,
    KeptRange,
    Repair,
    Text,
    ToolStart,
)
from tape.model.line import encode_line, encode_payload
from tape.store.maintenance.upkeep import redact
from tests.tape import making


def answered(text="ok"):
    return Assistant((Text(text=text),), "p", "api", "here", "m")


def differences(tape, branch=None):
    return [one.what for one in replay_path(tape, tape.head(branch)).differences]


def test_a_path_through_branches_anchors_and_an_origin_folds_to_the_same(store, tape):
    one, two, three = making.write(tape, "one", "two", "three")
    with tape.writer() as writer:
        place = making.at(tape, two.id).place
        kept = KeptRange(place.phase, place.offset, 2, two.id, three.id)
        covers = CoveredRange(one.id, two.id, 2)
        writer.anchor(Anchor(kind="compaction", summary="s", kept=(kept,), covers=covers))
        writer.append(making.say("x" * 70_000))
        writer.append(making.answer("c_1"))
        writer.append(Repair("results", (InjectedResult("c_1", NEVER_RAN),)))
        writer.append(answered())
    with store.create(making.beginning("child"), origin=(tape, tape.head())) as child:
        making.write(child, "in the child")
        done = replay_path(child, child.head())
    assert done.differences == ()
    assert (done.entries, done.anchors, done.kept) == (11, 1, 1)
    assert (done.repairs, done.unanswered) == (1, 0)
    assert done.messages == 1 + 2 + 5


class TestARepair:
    def test_for_which_no_answer_came_is_not_compared(self, tape):
        with tape.writer() as writer:
            writer.append(making.answer("c_1"))
            writer.append(Repair("results", (InjectedResult("c_1", "wrong"),)))
            writer.append(Error("RateLimit", "later"))
            writer.append(making.say("again"))
            writer.append(answered())
        done = replay_path(tape, tape.head())
        assert (done.repairs, done.unanswered, done.differences) == (0, 1, ())

    def test_is_computed_again_from_the_entries_before_it(self, tape):
        with tape.writer() as writer:
            writer.append(making.answer("c_1"))
            writer.append(Repair("results", (InjectedResult("c_1", NEVER_RAN),)))
            writer.append(answered())
            writer.append(making.answer("c_2"))
            writer.append(ToolStart("c_2", "bash"))
            both = (InjectedResult("c_1", NEVER_RAN), InjectedResult("c_2", UNKNOWN_OUTCOME))
            writer.append(Repair("results", both))
            writer.append(answered())
        done = replay_path(tape, tape.head())
        assert (done.repairs, done.differences) == (2, ())

    def test_that_repaired_something_else_is_a_difference(self, tape):
        with tape.writer() as writer:
            writer.append(making.answer("c_1"))
            wrong = writer.append(Repair("results", (InjectedResult("c_9", NEVER_RAN),)))
            writer.append(answered())
        (found,) = replay_path(tape, tape.head()).differences
        assert found == ReplayDifference(
            wrong.id, "the recomputed repair differs from the recorded one"
        )

    def test_of_a_torn_tail_is_nothing_to_compare(self, tape):
        with tape.writer() as writer:
            writer.append(Repair("torn", quarantine="x"))
            writer.append(answered())
        assert replay_path(tape, tape.head()).repairs == 0


class TestAnAnchor:
    def ranges(self, tape):
        entries = making.write(tape, "one", "two")
        return entries, [making.at(tape, one.id).place for one in entries]

    def test_has_to_cover_what_lies_before_it(self, tape):
        (one, two), _ = self.ranges(tape)
        wrong = [
            CoveredRange(one.id, two.id, 3),
            CoveredRange(two.id, one.id, 0),
            CoveredRange("0" * 40, two.id, 2),
        ]
        for number, covers in enumerate(wrong):
            tape.fork(making.at(tape, two.id), f"b{number}")
            with tape.writer(f"b{number}") as writer:
                writer.anchor(Anchor(kind="handoff", summary="s", covers=covers))
            (told,) = differences(tape, f"b{number}")
            assert told.startswith(f"it covers {covers.count} entries from ")

    def test_has_to_keep_the_entries_at_its_places(self, tape):
        (one, two), (at, _) = self.ranges(tape)
        with tape.writer() as writer:
            kept = (
                KeptRange(at.phase, at.offset + 1, 1, one.id, one.id),
                KeptRange(at.phase, at.offset, 1, one.id, two.id),
            )
            writer.anchor(Anchor(kind="compaction", summary="s", kept=kept))
        told = differences(tape)
        assert (
            sum(text.startswith("the entries it keeps in view cannot be read") for text in told)
            == 2
        )
        assert sum(text.startswith("it keeps 1 entries") for text in told) == 1

    def test_of_a_merge_speaks_of_other_paths(self, tape):
        (one, two), (_, at) = self.ranges(tape)
        tape.fork(making.at(tape, one.id), "b")
        with tape.writer("b") as writer:
            kept = (KeptRange(at.phase, at.offset, 1, two.id, two.id),)
            covers = CoveredRange(two.id, two.id, 1)
            writer.anchor(Anchor(kind="merge", summary="s", kept=kept, covers=covers))
        assert differences(tape, "b") == []


class TestTheChain:
    def begun(self, tape):
        (one,) = making.write(tape, "one")
        return one

    def append(self, tape, folder, parent, n, time):
        header, line = encode_line("user", parent, n, time, encode_payload(making.say("x")))
        with (folder / "phases/0001-main-start/entries.jsonl").open("ab") as file:
            file.write(line)
        return header.id

    @pytest.mark.parametrize(
        ("parent", "n", "later", "told"),
        [
            ("0" * 40, 2, 1, "its parent is not "),
            (None, 9, 1, "its depth is 9 after 1"),
            (None, 2, 0, "its time is not later than its parent's"),
        ],
    )
    def test_that_does_not_follow_is_named(self, tape, folder, parent, n, later, told):
        one = self.begun(tape)
        time = format_timestamp(making.DAY + 10**9) if later else one.time
        entry = self.append(tape, folder, parent or one.id, n, time)
        (found,) = replay_path(tape, tape.head()).differences
        assert found.entry == entry
        assert found.what.startswith(told)

    def test_with_a_flipped_byte_is_named(self, tape, folder):
        one = self.begun(tape)
        making.write(tape, "two")
        file = folder / "phases/0001-main-start/entries.jsonl"
        file.write_bytes(file.read_bytes().replace(b'"one"', b'"eno"'))
        found = replay_path(tape, tape.head()).differences
        assert found == (ReplayDifference(one.id, "its data does not match its hash"),)

    def test_with_a_line_no_reader_reads_is_named(self, tape, folder):
        self.begun(tape)
        making.write(tape, "two", "three")
        file = folder / "phases/0001-main-start/entries.jsonl"
        file.write_bytes(
            file.read_bytes().replace(b'{"id"', b'{"di"', 2).replace(b'{"di"', b'{"id"', 1)
        )
        told = differences(tape)
        assert told[0].startswith("0001-main-start: byte ")
        assert len(told) == 3

    def test_whose_data_was_redacted_still_holds(self, tape):
        one = self.begun(tape)
        making.write(tape, "two")
        redact(tape, [one.id], "a secret")
        assert differences(tape) == []

    def test_that_cannot_be_followed_is_damage(self, tape, folder):
        one = self.begun(tape)
        tape.fork(making.at(tape, one.id), "b")
        making.write(tape, "two", branch="b")
        (folder / "phases/0001-main-start/entries.jsonl").write_bytes(b"?\n" * 99)
        with pytest.raises(Damaged):
            replay_path(tape, tape.head("b"))
