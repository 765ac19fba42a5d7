from itertools import pairwise
from shutil import rmtree

import pytest

from tape.clock import format_timestamp
from tape.errors import Damaged, NotFound
from tape.model.entries import Anchor, Assistant, Meta, Start, Text, Usage, User
from tape.model.line import encode_line, encode_payload
from tests.tape import making, reader


def forked(store, tape, head):
    return store.create(making.beginning("a fork"), origin=(tape, head))


class TestAPath:
    def test_is_what_the_other_reader_finds(self, tape, folder):
        prompts = making.write(tape, "one", "two")
        tape.fork(making.at(tape, prompts[0].id), "b")
        making.write(tape, "three", branch="b")
        for branch, head in reader.heads(folder).items():
            found = [entry.id for entry in making.entries(tape, branch)]
            assert found == [entry["id"] for entry in reader.path(folder, head)]

    def test_read_whole_is_the_path_read_line_by_line(self, tape):
        prompts = making.write(tape, "one", "two")
        tape.fork(making.at(tape, prompts[0].id), "b")
        making.write(tape, "three", branch="b")
        assert tape.entries(tape.head("b")) == making.entries(tape, "b")

    def test_read_whole_shares_the_strings_that_repeat(self, tape):
        making.write(tape, "one")
        with tape.writer("main") as writer:
            for _ in range(2):
                writer.append(Assistant((), "anthropic", model="claude"))
        entries = tape.entries(tape.head())
        assert entries == making.entries(tape, "main")
        assert all(b.parent_id is a.id for a, b in pairwise(entries))
        one, two = (entry.data for entry in entries[-2:])
        assert one.model is two.model
        assert one.provider is two.provider

    def test_read_whole_has_answers_whose_provider_searched(self, tape):
        """Their usage counts the searches in an object, which nothing is shared by."""
        with tape.writer("main") as writer:
            for usage in (Usage(1, 2), Usage(1, server_tools={"web_search": 1}), Usage(1, 2)):
                writer.append(Assistant((), "anthropic", usage=usage))
        entries = tape.entries(tape.head())
        assert entries == making.entries(tape, "main")
        assert entries[1].data.usage is entries[3].data.usage

    def test_skips_a_line_that_cannot_be_read_and_says_so(self, tape, folder):
        making.write(tape, "one", "two", "three")
        file = folder / "phases/0001-main-start/entries.jsonl"
        file.write_bytes(file.read_bytes().replace(b'"one"', b'"one('))
        told = []
        found = tape.entries(tape.head(), skipped=told.append)
        assert [entry.type for entry in found] == ["start", "user", "user"]
        assert len(told) == 1
        assert told[0].startswith("0001-main-start: line at byte ")

    def test_whose_base_is_another_entry_is_damage(self, tape, folder):
        (one,) = making.write(tape, "one")
        tape.fork(making.at(tape, one.id), "b")
        making.write(tape, "two", branch="b")
        file = folder / "phases/0001-main-start/entries.jsonl"
        file.write_bytes(
            file.read_bytes().replace(b'"one"', b'"ONE"').replace(one.id[:9].encode(), b"0" * 9)
        )
        with pytest.raises(Damaged):
            tape.path(tape.head("b"))

    def test_to_the_newest_anchor_stops_there(self, tape, folder):
        making.write(tape, "one")
        head = tape.head()
        name = "0002-main-compaction"
        anchor = Anchor(
            phase=name,
            branch="main",
            base=head.place,
            kind="compaction",
            summary="what was",
            replica=tape.replica().id,
        )
        time = format_timestamp(making.DAY + 10)
        _, line = encode_line("anchor", head.entry, head.header.n + 1, time, encode_payload(anchor))
        with tape.phases.folder.make(name) as made:
            made.create("entries.jsonl", line)
        with tape.journal.open_moves() as moves:
            moves.branch("main", name, None, "compaction")
        making.write(tape, "two")
        types = [entry.type for entry in tape.entries(tape.head(), to_anchor=True)]
        assert types == ["anchor", "user"]
        assert making.texts(tape) == ["one", "two"]
        assert reader.faults(folder) == []


class TestForkedTapes:
    def test_read_on_in_their_origin(self, store, tape, folder):
        prompts = making.write(tape, "one", "two", "three")
        with forked(store, tape, making.at(tape, prompts[1].id)) as child:
            making.write(tape, "later")
            making.write(child, "mine")
            assert making.texts(child) == ["one", "two", "mine"]
            start = [entry for entry in making.entries(child) if entry.type == "start"][1]
            assert (start.parent_id, start.n) == (prompts[1].id, prompts[1].n + 1)
            assert start.time > prompts[1].time
            assert reader.faults(making.folder_of(store, child)) == []
        assert reader.faults(folder) == []

    def test_at_every_entry_and_through_two_origins(self, store, tape):
        making.write(tape, "one", "two")
        path = making.entries(tape)
        for k, entry in enumerate(path):
            with forked(store, tape, making.at(tape, entry.id)) as child:
                making.write(child, "a")
                with forked(store, child, child.head()) as grandchild:
                    making.write(grandchild, "b")
                    found = making.entries(grandchild)
                    assert found[: k + 1] == path[: k + 1]
                    assert making.texts(grandchild)[-2:] == ["a", "b"]
                    assert reader.faults(making.folder_of(store, grandchild)) == []

    def test_write_nothing_into_their_origin(self, store, tape, folder):
        making.write(tape, "one")
        before = reader.files(folder)
        with forked(store, tape, tape.head()) as child:
            making.write(child, "mine")
        assert reader.files(folder) == before

    def test_whose_origin_is_missing_say_so(self, store, tape, folder):
        making.write(tape, "one")
        with forked(store, tape, tape.head()) as child:
            rmtree(folder)
            with pytest.raises(NotFound, match=f"forked from .{tape.id}. is not in the store"):
                making.entries(child)
            making.write(child, "still writable")

    def test_follow_an_origin_that_was_renamed(self, store, tape, folder):
        making.write(tape, "one")
        with forked(store, tape, tape.head()) as child:
            folder.rename(folder.with_name("renamed"))
            assert making.texts(child) == ["one"]


class TestEntriesOfSomeTypes:
    PLACES = frozenset({Start.entry_type, Meta.entry_type, Anchor.entry_type})

    def test_are_found_newest_first_on_all_phases(self, tape):
        with tape.writer("main") as writer:
            # A text that looks like the head of such an entry is none.
            writer.append(User((Text('Z","type":"meta","dh":"'),)))
            moved = writer.append(Meta(cwd="/second"))
            anchor = writer.anchor(Anchor(kind="compaction", summary="so far"))
            for n in range(2000):
                writer.append(User((Text(f"{n} {'x' * 200}"),)))
            last = writer.append(Meta(cwd="/third"))
            writer.append(User((Text("the end"),)))
        start = making.entries(tape, "main")[0]
        assert [*tape.find_entries_back(tape.head(), self.PLACES)] == [last, anchor, moved, start]

    def test_that_changed_on_the_disk_are_left_out_and_reported(self, tape, folder):
        with tape.writer("main") as writer:
            writer.append(Meta(cwd="/second"))
            writer.append(User((Text("the end"),)))
        file = folder / "phases/0001-main-start/entries.jsonl"
        file.write_bytes(file.read_bytes().replace(b"/second", b"/sicond"))
        skipped = []
        found = [*tape.find_entries_back(tape.head(), self.PLACES, skipped.append)]
        assert [entry.type for entry in found] == ["start"]
        assert len(skipped) == 1
        assert "line at byte" in skipped[0]
