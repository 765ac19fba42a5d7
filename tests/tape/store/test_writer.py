import os
import resource
import threading
from contextlib import contextmanager
from hashlib import sha256

import pytest
from msgspec.structs import replace

from tape.clock import format_timestamp
from tape.context.view import view
from tape.errors import Busy, Damaged, NewerFormat, NotFound, Overtaken, UsageError, WriteFailed
from tape.model.entries import Anchor, Branch, Place, Repair, Summary
from tape.model.line import encode_line, encode_payload
from tape.store.refs import Pin
from tests.tape import making, reader

MAIN = "phases/0001-main-start/entries.jsonl"
LONG = 20_000


@contextmanager
def files_at_most(size):
    """Let no file of this process grow beyond `size` bytes: the disk is full from there on."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def ids(found):
    return [entry.id for entry in found]


class TestAppending:
    def test_links_each_entry_to_the_one_before(self, tape, folder):
        made = making.write(tape, "one", "two", "three")
        start = making.entries(tape)[0]
        assert making.entries(tape) == [start, *made]
        assert [entry.parent_id for entry in made] == [start.id, *ids(made[:2])]
        assert [entry.n for entry in made] == [1, 2, 3]
        assert reader.faults(folder) == []

    def test_continues_where_the_last_writer_ended(self, tape, folder):
        for text in ("one", "two", "three"):
            making.write(tape, text)
        assert making.texts(tape) == ["one", "two", "three"]
        assert list(reader.phases(folder)) == ["0001-main-start"]
        assert reader.faults(folder) == []

    def test_returns_what_a_reader_will_find(self, tape):
        with tape.writer() as writer:
            made = writer.append(making.say("a\ud800b" + "x" * 70_000))
        assert making.entries(tape)[-1] == made
        assert made.data.content[0].text == "a\ufffdb" + "x" * 70_000

    def test_takes_data_as_it_is_given(self, tape, folder):
        with tape.writer() as writer:
            made = writer.append_data("x.note", b'{"n":1.50,"t":"\\u00e9"}')
        assert tape.head().entry == made
        line = (folder / MAIN).read_bytes().split(b"\n")[-2]
        assert line.endswith(b',"data":{"n":1.50,"t":"\\u00e9"}}')

    def test_stores_long_strings_apart(self, tape, folder):
        with tape.writer() as writer:
            writer.append(making.say("x" * 70_000))
        assert (folder / MAIN).stat().st_size < 5_000
        assert making.texts(tape) == ["x" * 70_000]
        assert reader.faults(folder) == []

    def test_needs_an_open_writer(self, tape):
        writer = tape.writer()
        writer.close()
        writer.close()
        with pytest.raises(UsageError, match="closed"):
            writer.append(making.say("late"))


class TestTime:
    @pytest.mark.parametrize(
        ("ticks", "times"),
        [
            ([5, 5, 5], [5, 6, 7]),
            ([5, 3, 1], [5, 6, 7]),
            ([5, 9, 7], [5, 9, 10]),
            ([0, 0, 4], [1, 2, 4]),
        ],
    )
    def test_always_increases(self, tmp_path, ticks, times):
        clock = iter([making.DAY] * 5 + [making.DAY + tick for tick in ticks])
        store = making.store_in(tmp_path, lambda: next(clock))
        with store.create(making.beginning()) as tape:
            start = making.entries(tape)[0].time
            made = making.write(tape, *map(str, ticks))
        assert start == format_timestamp(making.DAY)
        assert [entry.time for entry in made] == [
            format_timestamp(making.DAY + time) for time in times
        ]


class TestAFullDisk:
    def test_cuts_a_short_write_back_and_the_entry_can_be_written_again(self, tape, folder):
        making.write(tape, "one")
        before = (folder / MAIN).read_bytes()
        with tape.writer() as writer:
            for room in (0, 1, 100, LONG // 2):
                with files_at_most(len(before) + room), pytest.raises(WriteFailed):
                    writer.append(making.say("x" * LONG))
                assert (folder / MAIN).read_bytes() == before
            made = writer.append(making.say("x" * LONG))
        assert ids(making.entries(tape))[-1] == made.id
        assert reader.faults(folder) == []

    def test_that_fails_in_a_new_phase_leaves_the_branch_as_it_was(self, tape, folder):
        (one,) = making.write(tape, "one")
        tape.fork(making.at(tape, one.id), "b")
        with tape.writer("b") as writer:
            with files_at_most(50), pytest.raises(WriteFailed):
                writer.append(making.say("two"))
            writer.append(making.say("two"))
        assert making.texts(tape, "b") == ["one", "two"]
        assert reader.faults(folder) == []

    def test_at_the_ref_line_of_a_phase_leaves_the_branch_as_it_was(self, tape, folder):
        for number in range(30):
            tape.label(f"label-{number}", tape.head().entry)
        tape.fork(tape.head(), "b")
        refs = (folder / "refs.jsonl").read_bytes()
        with tape.writer("b") as writer:
            with files_at_most(len(refs) + 10), pytest.raises(WriteFailed):
                writer.append(making.say("two"))
            assert (folder / "refs.jsonl").read_bytes() == refs
            writer.append(making.say("two"))
        assert making.texts(tape, "b") == ["two"]
        assert list(reader.phases(folder)) == ["0001-main-start", "0002-b", "0003-b"]
        assert reader.faults(folder) == []

    def test_while_a_blob_is_written_leaves_no_half_of_it(self, tape, folder):
        with tape.writer() as writer:
            with files_at_most(LONG), pytest.raises(WriteFailed):
                writer.append(making.say("x" * 70_000))
            assert [file for file in (folder / "blobs").rglob("*") if file.is_file()] == []
            writer.append(making.say("x" * 70_000))
        assert reader.faults(folder) == []


class TestSomebodyElseInTheFile:
    @pytest.mark.parametrize("act", [lambda w: w.append(making.say("two")), lambda w: w.barrier()])
    def test_stops_the_writer_before_it_writes_on(self, tape, folder, act):
        writer = tape.writer()
        writer.append(making.say("one"))
        with (folder / MAIN).open("ab") as other:
            other.write(b"somebody else\n")
        before = (folder / MAIN).read_bytes()
        with pytest.raises(Overtaken):
            act(writer)
        assert (folder / MAIN).read_bytes() == before
        with pytest.raises(UsageError, match="closed"):
            writer.append(making.say("three"))

    def test_a_file_that_was_cut_stops_it_too(self, tape, folder):
        writer = tape.writer()
        writer.append(making.say("one"))
        os.truncate(folder / MAIN, 10)
        with pytest.raises(Overtaken):
            writer.close()
        writer.close()


class TestTheSecondOpener:
    def test_gets_a_branch_of_its_own_beside_the_busy_one(self, tape, folder):
        making.write(tape, "one")
        with tape.writer() as first, tape.writer() as second, tape.writer() as third:
            assert [one.branch for one in (first, second, third)] == ["main", "main.2", "main.3"]
            assert [one.instead_of for one in (first, second, third)] == [None, "main", "main"]
            first.append(making.say("first"))
            second.append(making.say("second"))
            third.append(making.say("third"))
            second.append(making.say("more"))
        assert making.texts(tape, "main") == ["one", "first"]
        assert making.texts(tape, "main.2") == ["one", "second", "more"]
        assert making.texts(tape, "main.3") == ["one", "third"]
        assert tape.refs().current == "main"
        assert reader.faults(folder) == []

    def test_leaves_nothing_when_it_writes_nothing(self, tape, folder):
        before = reader.files(folder)
        with tape.writer(), tape.writer():
            pass
        assert reader.files(folder) == before

    def test_is_pinned_at_the_last_whole_line(self, tape, folder):
        (one,) = making.write(tape, "one")
        with tape.writer(), (folder / MAIN).open("ab") as other:
            other.write(b"being writ")
            other.flush()
            with tape.writer() as second:
                second.append(making.say("two"))
        begun = making.entries(tape, "main.2")[-2]
        place = making.at(tape, one.id).place
        assert begun.data == Branch("0002-main.2", "main.2", place, "fork", tape.replica().id)
        assert (folder / MAIN).read_bytes().endswith(b"being writ")

    def test_never_takes_a_name_a_branch_has_had(self, tape):
        for name in ("main.2", "main.4"):
            tape.fork(tape.head(), name)
        with tape.writer(), tape.writer() as second, tape.writer() as third:
            assert [second.branch, third.branch] == ["main.3", "main.5"]

    def test_moves_on_when_somebody_takes_its_name_before_its_first_entry(self, tape, folder):
        with tape.writer(), tape.writer() as second:
            tape.fork(tape.head(), "main.2")
            second.append(making.say("mine"))
            assert second.branch == "main.3"
        assert making.texts(tape, "main.2") == []
        assert making.texts(tape, "main.3") == ["mine"]
        assert reader.faults(folder) == []

    def test_of_a_named_branch_is_refused(self, tape):
        with tape.writer("main"), pytest.raises(Busy, match="main is being written by process"):
            tape.writer("main")

    def test_waits_if_it_is_asked_to(self, tape):
        first = tape.writer()
        first.append(making.say("one"))
        timer = threading.Timer(0.1, first.close)
        timer.start()
        with tape.writer("main", wait=True) as second:
            second.append(making.say("two"))
        timer.join()
        assert making.texts(tape) == ["one", "two"]

    def test_of_an_unknown_branch_leaves_no_lock(self, tape, folder):
        with pytest.raises(NotFound):
            tape.writer("x")
        assert not (folder / "locks/x").exists()


class TestAPinnedBranch:
    def test_opens_a_phase_with_its_first_entry(self, tape, folder):
        (one, _) = making.write(tape, "one", "two")
        base = making.at(tape, one.id)
        tape.fork(base, "b")
        with tape.writer("b") as writer:
            assert list(reader.phases(folder)) == ["0001-main-start"]
            writer.append(making.say("three"))
        begun = making.entries(tape, "b")[2]
        assert begun.data == Branch("0002-b", "b", base.place, "go-on", tape.replica().id)
        assert (begun.parent_id, begun.n) == (one.id, 2)
        assert tape.refs().branches["b"][-1].pin is None
        assert reader.faults(folder) == []

    def test_opens_a_new_one_each_time_it_is_pinned_again(self, tape, folder):
        (one,) = making.write(tape, "one")
        base = making.at(tape, one.id)
        for text in ("two", "three"):
            with tape.journal.open_moves() as moves:
                moves.branch("main", base.phase, Pin(base.offset, base.entry), "undo")
            making.write(tape, text)
        assert list(reader.phases(folder)) == ["0001-main-start", "0002-main", "0003-main"]
        assert making.texts(tape) == ["one", "three"]
        assert reader.faults(folder) == []


class TestATornTail:
    @pytest.mark.parametrize("tail", [b"torn", b"junk\nmore\n", b"\x00" * 500, b'{"id":"'])
    def test_goes_to_quarantine_and_an_entry_says_so(self, tape, folder, tail):
        making.write(tape, "one")
        good = (folder / MAIN).read_bytes()
        for name in (f"0001-main-start.{len(good)}", f"0001-main-start.{len(good)}.2"):
            (folder / MAIN).write_bytes(good + tail)
            with tape.writer() as writer:
                assert writer.torn == name
            assert (folder / "quarantine" / name).read_bytes() == tail
            why = f"{len(tail)} bytes after the last complete line were moved to quarantine"
            assert making.entries(tape)[-1].data == Repair("torn", quarantine=name, why=why)
            assert (folder / MAIN).read_bytes().startswith(good)
            assert reader.faults(folder) == []

    def test_that_a_later_version_wrote_is_left_alone(self, tape, folder):
        body = b'"v":2,"parentId":null'
        newer = b'{"id":"%b",%b,"data":{}}\n' % (sha256(body).hexdigest()[:40].encode(), body)
        with (folder / MAIN).open("ab") as file:
            file.write(newer)
        before = reader.files(folder)
        with pytest.raises(NewerFormat):
            tape.writer()
        assert reader.files(folder) == before


class TestUncommittedPhases:
    def begin(self, tape, *texts):
        """Make a phase of `main` that no ref names, with these entries behind its first."""
        head = tape.head()
        branch = Branch("0002-main", "main", Place(phase=head.phase, offset=0, entry=head.entry))
        lines, parent = [], head.entry
        for n, payload in enumerate((branch, *map(making.say, texts)), 1):
            time, data = format_timestamp(making.DAY + n), encode_payload(payload)
            header, line = encode_line(payload.entry_type, parent, n, time, data)
            lines.append(line)
            parent = header.id
        with tape.phases.folder.make("0002-main") as folder:
            folder.create("entries.jsonl", b"".join(lines))

    def test_that_hold_their_first_entry_are_ignored(self, tape, folder):
        self.begin(tape)
        making.write(tape, "one")
        assert making.texts(tape) == ["one"]
        assert tape.find_entry(reader.phases(folder)["0002-main"][0].entry["id"]) == []
        tape.fork(tape.head(), "b")
        making.write(tape, "two", branch="b")
        *_, uncommitted, newest = tape.phases.names()
        assert (uncommitted, newest.partition("-")[2]) == ("0002-main", "b")

    def test_that_hold_nothing_at_all_are_ignored(self, tape, folder):
        (folder / "phases/0002-main").mkdir()
        (folder / "phases/0003-main").mkdir()
        (folder / "phases/0003-main/entries.jsonl").write_bytes(b'{"id":"tor')
        (one,) = making.write(tape, "one")
        assert making.at(tape, one.id).entry == one.id

    def test_that_hold_more_are_damage_to_writers_of_their_branch_alone(self, tape):
        tape.fork(tape.head(), "b")
        self.begin(tape, "lost")
        with pytest.raises(Damaged, match=r"0002-main .*tape fsck --repair") as caught:
            tape.writer("main")
        assert (caught.value.exit_code, caught.value.file) == (4, "0002-main")
        making.write(tape, "fine", branch="b")
        assert making.texts(tape, "main") == []


class TestProcesses:
    def test_a_forked_child_cannot_write_and_does_not_hold_the_branch(self, tape, folder):
        with tape.writer() as writer:
            writer.append(making.say("one"))
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    writer.append(making.say("from the child"))
                except UsageError:
                    writer.close()
                    status = 0
                os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            writer.append(making.say("two"))
        assert making.texts(tape) == ["one", "two"]
        assert reader.faults(folder) == []

    def test_a_moved_tape_stays_its_writers_own(self, store, tape, folder):
        with tape.writer() as writer:
            writer.append(making.say("one"))
            moved = folder.rename(folder.with_name("moved"))
            folder.mkdir()
            writer.append(making.say("x" * 70_000))
            with tape.writer() as second:
                second.append(making.say("beside"))
        assert list(folder.iterdir()) == []
        folder.rmdir()
        assert reader.faults(moved) == []
        with store.open(tape.id) as found:
            assert making.texts(found) == ["one", "x" * 70_000]
            assert making.texts(found, "main.2") == ["one", "x" * 70_000, "beside"]

    def test_folders_that_an_older_version_left_empty_are_used(self, tape, folder):
        for name in ("blobs", "quarantine", "locks"):
            (folder / name).mkdir()
        (folder / "locks/main").touch()
        making.write(tape, "x" * 70_000)
        tape.rename("title")
        assert making.texts(tape) == ["x" * 70_000]


class Noted:
    """A projection that notes what it is told."""

    def __init__(self):
        self.heard = []

    def on_begin(self, tape):
        self.heard.append("began")

    def find_holder(self, tape, branch): ...

    def on_barrier(self, tape, changes):
        self.heard.append("moved")

    def on_end(self, tape, changes):
        self.heard.append("ended")


class TestTheProjection:
    def test_hears_of_the_beginning_of_each_barrier_and_of_the_end(self, tape):
        tape.projection = Noted()
        with tape.writer() as writer:
            writer.append(making.say("one"))
            writer.append(making.say("two"))
            writer.barrier()
            writer.barrier()
            writer.append(making.say("three"))
        assert tape.projection.heard == ["began", "moved", "moved", "ended"]

    def test_hears_of_the_end_of_a_writer_that_could_not_begin(self, tape, folder):
        with (folder / MAIN).open("ab") as file:
            file.write(b"torn")
        tape.projection = Noted()
        with files_at_most(2), pytest.raises(WriteFailed):
            tape.writer()
        assert tape.projection.heard == ["began", "ended"]
        with tape.writer() as writer:
            assert writer.torn is not None


class TestAnAnchor:
    ANCHOR = Anchor(kind="compaction", summary=Summary(goal="Ship", requests=("ship it",)))

    def test_starts_a_phase_named_for_it_and_replaces_the_entries_before(self, tape, folder):
        making.write(tape, "one", "two")
        before = tape.head()
        with tape.writer() as writer:
            anchor = writer.anchor(self.ANCHOR)
            after = writer.append(making.say("three"))
        assert list(reader.phases(folder)) == ["0001-main-start", "0002-main-compaction"]
        assert anchor.data == replace(
            self.ANCHOR,
            phase="0002-main-compaction",
            branch="main",
            base=before.place,
            replica=tape.replica().id,
        )
        shown = view(tape.entries(tape.head(), to_anchor=True))
        assert shown.entries == (after,)
        assert "Ship" in shown.summary
        assert making.texts(tape) == ["one", "two", "three"]
        assert reader.faults(folder) == []

    def test_is_durable_and_committed_when_it_returns(self, tape, folder):
        with tape.writer() as writer:
            writer.append(making.say("one"))
            writer.anchor(self.ANCHOR)
            assert tape.head().header.type == "anchor"
            assert tape.refs().branches["main"][-1].why == "compaction"
        assert reader.faults(folder) == []

    def test_taken_back_leaves_the_view_as_it_was(self, tape, folder):
        making.write(tape, "one", "two")
        before = tape.head()
        seen = view(tape.entries(before, to_anchor=True))
        bytes_before = reader.files(folder)
        with tape.writer() as writer:
            writer.anchor(self.ANCHOR)
            writer.rewind(before, "undo")
            assert view(tape.entries(tape.head(), to_anchor=True)) == seen
            writer.append(making.say("three"))
        assert making.texts(tape) == ["one", "two", "three"]
        assert list(reader.phases(folder))[-1] == "0003-main"
        after = reader.files(folder)
        assert all(after[name].startswith(data) for name, data in bytes_before.items())
        assert reader.faults(folder) == []

    def test_on_a_branch_of_its_own_makes_that_branch(self, tape, folder):
        with tape.writer(), tape.writer() as beside:
            beside.anchor(self.ANCHOR)
        assert tape.head("main.2").header.type == "anchor"
        assert reader.faults(folder) == []

    def test_that_finds_no_room_leaves_the_writer_where_it_was(self, tape, folder):
        with tape.writer() as writer:
            writer.append(making.say("one"))
            with files_at_most(100), pytest.raises(WriteFailed):
                writer.anchor(self.ANCHOR)
            writer.append(making.say("two"))
        assert making.texts(tape) == ["one", "two"]
        assert reader.faults(folder) == []


class TestRewinding:
    def test_is_one_journal_line_of_any_length(self, tape, folder):
        made = making.write(tape, *(str(n) for n in range(50)))
        size = (folder / "refs.jsonl").stat().st_size
        with tape.writer() as writer:
            writer.rewind(making.at(tape, made[9].id))
        assert 0 < (folder / "refs.jsonl").stat().st_size - size < 300
        assert tape.head().entry == made[9].id
        assert tape.refs().branches["main"][-1].why == "rewind"

    def test_continues_in_a_phase_of_its_own(self, tape, folder):
        made = making.write(tape, "one", "two")
        with tape.writer() as writer:
            writer.rewind(making.at(tape, made[0].id))
            writer.append(making.say("other"))
        assert making.texts(tape) == ["one", "other"]
        assert reader.faults(folder) == []

    def test_of_a_branch_not_made_yet_moves_only_its_base(self, tape, folder):
        made = making.write(tape, "one", "two")
        with tape.writer(), tape.writer() as beside:
            beside.rewind(making.at(tape, made[0].id))
            assert list(tape.refs().branches) == ["main"]
            beside.append(making.say("other"))
        assert making.texts(tape, "main.2") == ["one", "other"]
        assert reader.faults(folder) == []

    def test_to_an_entry_of_another_tape_is_refused(self, store, tape, folder):
        made = making.write(tape, "one")
        with store.create(making.beginning()) as other:
            making.write(other, "else")
            with tape.writer() as writer, pytest.raises(Damaged):
                writer.rewind(other.head())
        assert tape.head().entry == made[0].id
        assert reader.faults(folder) == []


class TestWhatAnAnchorKeeps:
    def test_stays_in_view_before_what_comes_after(self, tape, folder):
        made = making.write(tape, "one", "two", "three", "four")
        with tape.writer() as writer:
            kept = tape.newest(tape.head(), 2)
            anchor = writer.anchor(Anchor(kind="compaction", summary="one and two", kept=kept))
            after = writer.append(making.say("five"))
        shown = view(tape.entries(tape.head(), to_anchor=True), tape.kept(anchor.data))
        assert shown.kept == tuple(made[2:])
        assert shown.entries == (after,)
        assert reader.faults(folder) == []

    def test_may_reach_over_phases_and_into_the_origin(self, store, tape):
        made = making.write(tape, "one", "two")
        with store.create(making.beginning(), origin=(tape, tape.head())) as child:
            later = making.write(child, "three")
            ranges = child.newest(child.head(), 4)
            assert [(one.phase, one.count) for one in ranges] == [
                ("0001-main-start", 2),
                ("0001-main-start", 2),
            ]
            found = child.kept(Anchor(kind="compaction", summary="", kept=ranges))
            assert [entry.id for entry in found] == [*ids(made), found[2].id, later[0].id]

    def test_is_the_whole_path_where_that_is_shorter(self, tape):
        making.write(tape, "one")
        (only,) = tape.newest(tape.head(), 100)
        assert only.count == 2


def test_the_summary_of_an_anchor_is_a_page_beside_its_phase(tape):
    with tape.writer() as writer:
        anchor = writer.anchor(Anchor(kind="compaction", summary=Summary(goal="Fix it")))
    with tape.phases.folder.sub("0002-main-compaction") as folder:
        said = folder.read("ANCHOR.md").decode()
    day, second = anchor.time[:10], anchor.time[11:19]
    assert said == f"# compaction on main, {day} {second} UTC\n\n## Goal\nFix it\n"
