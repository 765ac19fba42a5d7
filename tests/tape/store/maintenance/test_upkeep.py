import os
from shutil import rmtree

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify as check
from tape.context.repair import repair
from tape.context.view import Target, view
from tape.damage import DamageWarning
from tape.errors import Ambiguous, Busy, NotFound, UsageError
from tape.index.library import open_store
from tape.model.entries import Anchor, Image, KeptRange, Redact, Text, User
from tape.model.line import Unread, verify_line
from tape.store.maintenance.upkeep import Redacted, detach, redact
from tape.store.refs import Pin
from tests.tape import making, reader

MAIN = "phases/0001-main-start/entries.jsonl"
PAST = "phases/0000-origin/entries.jsonl"
LONG = "secret " * 10_000
SOMEBODY = Target("", "", "")


def findings(tape):
    return list(check(tape, Counts()))


def told(tape):
    return [(found.level, found.file, found.message) for found in findings(tape)]


def everywhere(folder, words):
    """Return the files of a tape that hold some words."""
    return [name for name, data in reader.files(folder).items() if words in data]


class TestRedacting:
    def test_leaves_null_and_blanks_and_an_entry_that_says_so(self, tape, folder):
        (one, _) = making.write(tape, "my secret", "two")
        before = (folder / MAIN).read_bytes()
        done = redact(tape, [one.id[:8]], "a password")
        after = (folder / MAIN).read_bytes()
        said = tape.entry(tape.head())
        assert said.data == Redact((one.id,), "a password")
        assert done == Redacted(said.id, (one.id,), (), ())
        old, new = before.split(b"\n")[1], after.split(b"\n")[1]
        start = old.index(b',"data":') + 8
        assert new == old[:start] + b"null".ljust(len(old) - start - 1) + b"}"
        assert after.replace(new, old).startswith(before)
        assert verify_line(new).id == one.id
        assert reader.faults(folder) == []
        assert findings(tape) == []

    def test_takes_the_entry_out_of_what_a_model_sees(self, tape):
        (one, _) = making.write(tape, "my secret", "two")
        redact(tape, [one.id], "why")
        path = tape.entries(tape.head())
        assert (path[1].data.why, path[1].type) == ("redacted", "user")
        assert making.texts(tape) == ["two"]
        (message,) = repair(view(path), SOMEBODY).messages
        assert message.content == (Text("two"),)

    def test_of_a_call_or_of_its_result_can_be_repaired(self, tape):
        with tape.writer() as writer:
            call = writer.append(making.answer("c_1", text="hm"))
            result = writer.append(making.result("c_1"))
        redact(tape, [result.id], "why")
        seen = view(tape.entries(tape.head()))
        assert [m.role for m in repair(seen, SOMEBODY).messages] == ["assistant", "tool"]
        redact(tape, [call.id], "why")
        assert repair(view(tape.entries(tape.head())), SOMEBODY).messages == ()
        assert findings(tape) == []

    def test_takes_the_blobs_that_no_other_line_names(self, tape, folder):
        with tape.writer() as writer:
            mine, shared = (tape.blobs.put(data) for data in (b"mine", b"shared"))
            one = writer.append(
                User((Image(mine, "image/png"), Image(shared, "image/png"), Text(LONG)))
            )
            writer.append(User((Image(shared, "image/png"),)))
        kept = {shared.hash}
        done = redact(tape, [one.id], "why")
        assert {file.name for file in (folder / "blobs").glob("*/*")} == kept
        assert mine.hash in done.blobs
        assert len(done.blobs) == 2
        assert everywhere(folder, b"secret secret") == []
        assert reader.faults(folder) == []
        assert findings(tape) == []

    def test_of_all_that_share_a_blob_takes_it(self, tape, folder):
        made = making.write(tape, LONG, LONG)
        assert len(redact(tape, [entry.id for entry in made], "why").blobs) == 1
        assert list((folder / "blobs").glob("*/*")) == []

    def test_takes_what_a_crash_left_of_writing_the_blob(self, tape, folder):
        (one,) = making.write(tape, LONG)
        (blob,) = (folder / "blobs").glob("*/*")
        (blob.parent / f".{blob.name}.00aa").write_text("secret secret")
        redact(tape, [one.id], "why")
        assert everywhere(folder, b"secret secret") == []

    def test_takes_copies_in_quarantine_and_leaves_the_rest(self, tape, folder):
        (one, _) = making.write(tape, "my secret", "two")
        lines = (folder / MAIN).read_bytes().split(b"\n")
        torn = lines[1].replace(one.id[:9].encode(), b"0" * 9)[:-12]
        (folder / "quarantine").mkdir()
        for name, data in {
            "whole": b"\n".join(lines),
            "retried": torn,
            "other": b"\x00 not a line\n" + lines[2][:-5],
            "empty": b"",
        }.items():
            (folder / "quarantine" / name).write_bytes(data)
        done = redact(tape, [one.id], "why")
        after = {file.name: file.read_bytes() for file in (folder / "quarantine").iterdir()}
        assert done.quarantine == ("retried", "whole")
        assert everywhere(folder, b"my secret") == []
        redacted = (folder / MAIN).read_bytes().split(b"\n")[1]
        assert after["whole"] == b"\n".join([lines[0], redacted, *lines[2:]])
        start = torn.index(b',"data":') + 8
        assert after["retried"] == torn[:start] + b"null".ljust(len(torn) - start)
        assert after["other"] == b"\x00 not a line\n" + lines[2][:-5]

    def test_takes_a_damaged_blob_out_of_quarantine(self, tape, folder):
        (one,) = making.write(tape, LONG)
        (blob,) = (folder / "blobs").glob("*/*")
        (folder / "quarantine").mkdir()
        blob.rename(folder / "quarantine" / f"blob.{blob.name}")
        assert redact(tape, [one.id], "why").quarantine == (f"blob.{blob.name}",)
        assert list((folder / "quarantine").iterdir()) == []

    def test_works_on_another_branch_than_it_is_recorded_on(self, tape, folder):
        making.write(tape, "one")
        tape.fork(tape.head(), "b")
        (two,) = making.write(tape, "my secret", branch="b")
        redact(tape, [two.id], "why", branch="main")
        assert tape.head("b").entry == two.id
        making.write(tape, "three", branch="b")
        assert making.texts(tape, "b") == ["one", "three"]
        assert tape.entry(tape.head("main")).type == "redact"
        assert reader.faults(folder) == []

    def test_continues_under_a_live_writer(self, tape, folder):
        with tape.writer() as writer:
            one = writer.append(making.say("my secret"))
            done = redact(tape, [one.id], "why")
            writer.append(making.say("two"))
        assert making.texts(tape) == ["two"]
        assert tape.entry(tape.head("main.2")).id == done.entry
        assert reader.faults(folder) == []

    def test_a_busy_branch_that_is_named_is_refused(self, tape, folder):
        (one,) = making.write(tape, "one")
        before = reader.files(folder)
        with tape.writer("main"), pytest.raises(Busy):
            redact(tape, [one.id], "why", branch="main")
        assert reader.files(folder) == before

    def test_twice_changes_nothing_more(self, tape, folder):
        (one,) = making.write(tape, "one")
        redact(tape, [one.id], "why")
        before = reader.files(folder)
        assert redact(tape, [one.id], "another why") == Redacted(None, (one.id,), (), ())
        assert reader.files(folder) == before

    def test_leaves_data_that_has_nothing_to_hide(self, tape, folder):
        with tape.writer() as writer:
            small = writer.append_data("x.y", b"{}")
        before = reader.files(folder)
        assert redact(tape, [small], "why") == Redacted(None, (), (), ())
        assert reader.files(folder) == before

    def test_the_head_of_a_branch_that_is_cut_short_is_not_taken_for_torn(self, tape, folder):
        making.write(tape, "one")
        (two,) = making.write(tape, "my secret")
        data = (folder / MAIN).read_bytes()
        start = data.rindex(b',"data":') + 8
        (folder / MAIN).write_bytes(data[:start] + b"null" + data[start + 4 :])
        making.write(tape, "three")
        assert ("damage", MAIN) in [finding[:2] for finding in told(tape)]
        redact(tape, [two.id], "why")
        assert findings(tape) == []
        assert making.texts(tape) == ["one", "three"]

    def test_cut_short_is_noted_by_verify_and_ended_by_a_second_call(self, tape, folder):
        (one,) = making.write(tape, LONG)
        with tape.writer() as writer:
            writer.append(Redact((one.id,), "why"))
        (blob,) = (folder / "blobs").glob("*/*")
        blob.unlink()
        message = (
            f"a redaction of entry {one.id[:12]} was interrupted: `tape fsck --repair` completes it"
        )
        assert told(tape) == [("note", MAIN, message)]
        assert redact(tape, [one.id], "why").entry is None
        assert findings(tape) == []
        assert everywhere(folder, b"secret secret") == []


class TestRedactingIsRefused:
    @pytest.mark.parametrize("kind", ["start", "branch", "anchor", "redact"])
    def test_for_what_holds_the_tape_together(self, tape, folder, kind):
        (one,) = making.write(tape, "one")
        tape.fork(tape.head(), "b")
        making.write(tape, "two", branch="b")
        with tape.writer() as writer:
            writer.append(Redact((one.id,), "why"))
            writer.anchor(Anchor(kind="compaction", summary="s"))
        (entry, *_) = [
            one.entry["id"]
            for lines in reader.phases(folder).values()
            for one in lines
            if one.entry["type"] == kind
        ]
        before = reader.files(folder)
        with pytest.raises(UsageError, match=f"is a {kind}: it is part of the structure"):
            redact(tape, [one.id, entry], "why")
        assert reader.files(folder) == before

    def test_for_an_entry_of_the_origin(self, store, tape):
        (one,) = making.write(tape, "one")
        with store.create(making.beginning(), origin=(tape, tape.head())) as child:
            with pytest.raises(UsageError, match=f"is in tape {tape.id[:8]}.*redact it there"):
                redact(child, [one.id], "why")
            redact(tape, [one.id], "why")
            assert making.texts(child) == []
            assert findings(child) == []

    def test_for_what_is_not_there_or_not_clear(self, tape, folder):
        made = making.write(tape, *map(str, range(40)))
        before = reader.files(folder)
        with pytest.raises(NotFound, match="no entry 'ffffffff'"):
            redact(tape, [made[0].id, "ffffffff"], "why")
        with pytest.raises(UsageError, match="four hex digits"):
            redact(tape, ["f"], "why")
        assert reader.files(folder) == before

    def test_for_a_prefix_of_two(self, tape, folder):
        (one,) = making.write(tape, "one")
        tape.fork(tape.head(), "b")
        (folder / "phases/0002-b").mkdir()
        copy = (folder / MAIN).read_bytes()
        (folder / "phases/0002-b/entries.jsonl").write_bytes(copy)
        with tape.journal.open_moves() as moves:
            moves.branch("b", "0002-b", Pin(0, "0" * 40), "x")
        with pytest.raises(Ambiguous, match="0001-main-start"):
            redact(tape, [one.id[:6]], "why")


def test_the_index_forgets_what_was_redacted(tmp_path):
    store, index = open_store(tmp_path)
    with store.create(making.beginning()) as tape:
        (one, _) = making.write(tape, "my secret", "hello")
        assert [row.title for row in index.rows(None, None)] == ["my secret"]
        redact(tape, [one.id], "why")
        (row,) = index.rows(None, None)
        assert (row.title, row.entries) == ("hello", 4)
    index.close()
    assert [file.name for file in tmp_path.glob("*") if b"my secret" in _bytes(file)] == []


def _bytes(file):
    return file.read_bytes() if file.is_file() else b""


@pytest.fixture
def family(store, tape):
    """A tape, one forked from it at a branch behind an anchor, and one forked from that."""
    (one, _) = making.write(tape, "one", LONG)
    tape.fork(making.at(tape, one.id), "b")
    (*_, two) = making.write(tape, "two", "and more", branch="b")
    with tape.writer("b") as writer:
        kept = tape.head("b")
        run = KeptRange(kept.phase, kept.offset, 1, two.id, two.id)
        writer.anchor(Anchor(kind="compaction", summary="s", kept=(run,)))
        writer.append(making.say("three " + LONG))
    with store.create(making.beginning("child"), origin=(tape, tape.head("b"))) as child:
        making.write(child, "mine")
        with store.create(making.beginning("grand"), origin=(child, child.head())) as grand:
            making.write(grand, "last")
            yield tape, child, grand


def seen(tape):
    """Return everything a reader learns of the current branch of a tape."""
    path, head = tape.entries(tape.head(), to_anchor=True), tape.head()
    anchors = [entry.data for entry in path if isinstance(entry.data, Anchor)]
    return (
        tape.entries(head),
        view(path, tape.kept(anchors[-1]) if anchors else ()),
        [tape.find_ancestor(head, steps).head.entry for steps in range(len(tape.entries(head)))],
        [tape.find_tape(segment.source).id == tape.id for segment in tape.path(head)],
    )


class TestDetaching:
    def test_gives_a_tape_its_past_byte_for_byte(self, store, family):
        tape, child, grand = family
        before = seen(child)
        lines = list(child.lines(child.head()))
        info = (making.folder_of(store, child) / "tape.json").read_bytes()
        detach(child)
        assert seen(child)[:3] == before[:3]
        assert seen(child)[3] == [True, True]
        assert list(child.lines(child.head())) == lines
        folder = making.folder_of(store, child)
        past = (folder / PAST).read_bytes()
        assert past.split(b"\n")[:-1] == lines[: past.count(b"\n")]
        assert (folder / "tape.json").read_bytes() == info
        assert {file.name for file in folder.iterdir()} == {
            *("tape.json", "refs.jsonl", "phases", "blobs")
        }
        assert reader.faults(folder) == []
        assert findings(child) == []
        assert findings(tape) == findings(grand) == []

    @pytest.mark.parametrize("which", [1, 2])
    def test_makes_it_independent_of_its_origins(self, store, family, which):
        subject = family[which]
        before = seen(subject)
        detach(subject)
        for gone in family[:which]:
            rmtree(making.folder_of(store, gone))
        with store.open(subject.id) as alone:
            assert seen(alone)[:3] == before[:3]
            assert findings(alone) == []
            for entry in before[0]:
                (hit,) = alone.find_entry(entry.id)
                assert (hit.tape, hit.tape.entry(hit.head)) == (alone, entry)
            assert alone.find_entry("f" * 40) == []
            making.write(alone, "more")
            assert making.texts(alone)[-1] == "more"
        assert reader.faults(making.folder_of(store, subject)) == []

    def test_of_the_middle_one_carries_the_last(self, store, family):
        tape, child, grand = family
        before = seen(grand)[:3]
        detach(child)
        rmtree(making.folder_of(store, tape))
        with store.open(grand.id) as last:
            assert seen(last)[:3] == before
            assert findings(last) == []
            detach(last)
            rmtree(making.folder_of(store, child))
            assert seen(last)[:3] == before
        assert reader.faults(making.folder_of(store, grand)) == []

    def test_lets_one_fork_from_the_past_that_was_copied(self, store, family):
        tape, child, _ = family
        (old, *_) = making.texts(child)
        detach(child)
        rmtree(making.folder_of(store, tape))
        with store.open(child.id) as alone:
            hit = alone.find_ancestor(alone.head(), len(alone.entries(alone.head())) - 2)
            alone.fork(hit.head, "again")
            making.write(alone, "anew", branch="again")
            assert making.texts(alone, "again") == [old, "anew"]
            with store.create(making.beginning(), origin=(alone, hit.head)) as other:
                assert making.texts(other) == [old]
                detach(other)
                assert making.texts(other) == [old]
                assert findings(other) == []
            assert findings(alone) == []
            assert reader.faults(making.folder_of(store, alone)) == []

    def test_reads_no_further_back_than_the_anchor(self, family):
        _, child, _ = family
        path = child.path(child.head(), to_anchor=True)
        detach(child)
        found = child.path(child.head(), to_anchor=True)
        assert [line for part in found for _, line in part.lines()] == [
            line for part in path for _, line in part.lines()
        ]

    def test_twice_or_without_an_origin_does_nothing(self, store, family):
        tape, child, _ = family
        detach(child)
        before = [reader.files(making.folder_of(store, one)) for one in (tape, child)]
        detach(child)
        detach(tape)
        assert [reader.files(making.folder_of(store, one)) for one in (tape, child)] == before

    def test_waits_for_no_writer(self, store, family):
        _, child, _ = family
        with child.writer(), pytest.raises(Busy):
            detach(child)
        assert not (making.folder_of(store, child) / "phases/0000-origin").exists()

    def test_without_the_origin_says_what_is_missing(self, store, family):
        tape, child, _ = family
        rmtree(making.folder_of(store, tape))
        with store.open(child.id) as alone, pytest.raises(NotFound, match=tape.id[:8]):
            detach(alone)

    def test_names_what_was_redacted_where_it_came_from(self, store, family):
        tape, child, _ = family
        path = [entry for entry in making.entries(child) if entry.type == "user"]
        redact(tape, [path[1].id], "why")
        detach(child)
        rmtree(making.folder_of(store, tape))
        with store.open(child.id) as alone:
            assert alone.entry(alone.head()).data.targets == (path[1].id,)
            assert findings(alone) == []
            redact(alone, [path[0].id], "why")
            assert [type(e.data) for e in making.entries(alone) if e.type == "user"] == [
                *(Unread, Unread, User, User, User)
            ]
            assert findings(alone) == []
        assert reader.faults(making.folder_of(store, child)) == []

    def test_leaves_out_blobs_that_are_rotten(self, store, family):
        tape, child, _ = family
        for blob in (making.folder_of(store, tape) / "blobs").glob("*/*"):
            os.truncate(blob, 3)
        with pytest.warns(DamageWarning, match="its bytes do not match its name"):
            detach(child)
        assert [finding[0] for finding in told(child)] == ["damage"]
        assert "missing" in told(child)[0][2]

    def test_interrupted_can_be_started_again(self, store, family):
        _, child, _ = family
        folder = making.folder_of(store, child)
        (folder / ".new-origin").mkdir(mode=0o700)
        (folder / ".new-origin/entries.jsonl").write_bytes(b"half")
        detach(child)
        assert reader.faults(folder) == []

    def test_every_flipped_byte_of_the_copy_is_found(self, store, family):
        _, child, _ = family
        detach(child)
        file = making.folder_of(store, child) / PAST
        data = file.read_bytes()
        for at in range(0, len(data), 7):
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            assert "damage" in {finding.level for finding in findings(child)}, at
        file.write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])
        assert "damage" in {finding.level for finding in findings(child)}
