"""An archived tape: the file, what is read of it, and both forms beside one another."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zstandard import ZstdDecompressor

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import Busy, Damaged, NotFound, Overtaken, UsageError
from tape.history.follow import follow
from tape.index.reader import ARCHIVE_SUFFIX
from tape.store import packed
from tape.store.disk import Descriptor, Folder
from tape.store.maintenance.archive import pack_tape, unpack_tape
from tape.store.packed import PACKED_SUFFIX, PackedTape, pack_folder
from tape.store.store import Store
from tests.faults.histories import LONG, small
from tests.tape import making
from tests.tape.making import BUDGET

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=9)
PATHS = st.lists(NAMES.filter(lambda name: name not in {"", ".", ".."}), min_size=1, max_size=3)


def files(folder):
    """Return the bytes of all files below a folder, and None for each folder; no locks."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
        if "locks" not in path.relative_to(folder).parts
    }


def archive(store, identity):
    with store.open(identity) as tape:
        return pack_tape(store, tape)


@pytest.fixture
def made(tmp_path):
    """A store with a tape of two branches, a blob and an anchor, and a tape forked from it."""
    return small(tmp_path / "store")


def file_of(made, identity):
    (path,) = made.store.path.glob(f"tapes/*-{identity[:8]}{PACKED_SUFFIX}")
    return path


def test_the_suffix_is_the_same_for_the_index():
    assert ARCHIVE_SUFFIX.decode() == PACKED_SUFFIX


def test_comes_back_byte_for_byte(made):
    folder = made.folder(made.tape)
    (folder / "quarantine").mkdir()
    (folder / "empty").mkdir()
    (folder / "note of mine.txt").write_bytes(b"\xff\0")
    before = files(folder)
    done = archive(made.store, made.tape)
    assert done.is_changed
    assert done.after < 0.38 * done.before
    assert [path.name for path in (made.store.path / "tapes").glob(f"*{made.tape[:8]}*")] == [
        file_of(made, made.tape).name
    ]
    with made.store.open(made.tape) as tape:
        unpack_tape(made.store, tape)
    assert files(made.folder(made.tape)) == before


def test_tar_and_zstd_read_it(made, tmp_path):
    before, name = files(made.folder(made.tape)), made.folder(made.tape).name
    archive(made.store, made.tape)
    tar = tmp_path / "plain.tar"
    with file_of(made, made.tape).open("rb") as source, tar.open("wb") as target:
        reader = ZstdDecompressor().stream_reader(source, read_across_frames=True)
        shutil.copyfileobj(reader, target)
    subprocess.run(["tar", "-xf", tar, "-C", tmp_path], check=True)
    assert files(tmp_path / name) == before


@settings(max_examples=40 * BUDGET, deadline=None)
@given(st.dictionaries(PATHS.map("/".join), st.binary(max_size=400), max_size=8))
def test_any_files_come_back(tmp_path_factory, tree):
    top = tmp_path_factory.mktemp("any")
    (source := top / "source").mkdir()
    for path, data in tree.items():
        whole = source / path
        try:
            whole.parent.mkdir(parents=True, exist_ok=True)
            whole.write_bytes(data)
        except OSError:  # a file is where a folder should be
            continue
    with Folder.open(top) as tapes, tapes.sub("source") as folder:
        fd = tapes.file("target.tar.zst", os.O_WRONLY | os.O_CREAT)
        with Descriptor(fd):
            pack_folder(folder, fd)
        with PackedTape.open(tapes, "target") as archived, tapes.make("target") as target:
            assert archived.is_copy_of(folder)
            archived.unpack_to(target)
    assert files(top / "target") == files(source)


def test_parts_are_read_across_frames(made, monkeypatch):
    monkeypatch.setattr(packed, "_FRAME_BYTES", 1000)
    before = files(made.folder(made.tape))
    archive(made.store, made.tape)
    with Folder.open(made.store.tapes) as tapes:
        name = file_of(made, made.tape).name.removesuffix(PACKED_SUFFIX)
        with PackedTape.open(tapes, name) as archived:
            assert len(archived.index.frames) > 10
            for path, data in before.items():
                if data is not None:
                    assert archived.read(path) == data
                    assert archived.read(path, 990, 20) == data[990:1010]
            with pytest.raises(FileNotFoundError):
                archived.read("none")


def test_every_reader_sees_the_same(made):
    def look():
        with made.store.open(made.tape) as tape, made.store.open(made.child) as child:
            paths = [tape.entries(tape.head(name)) for name in tape.refs().branches]
            (blob,) = [one for one in paths[0] if len(str(one.data)) > len(LONG)]
            return (
                *(tape.refs().branches, tape.title(), paths, child.entries(child.head())),
                *(tape.find_entry(blob.id[:9])[0].head, tape.phases.list_with_origin()),
                [*verify(tape, Counts())],
                [*verify(child, Counts())],
            )

    before = look()
    archive(made.store, made.tape)
    assert look() == before
    archive(made.store, made.child)
    assert look() == before
    assert sorted(made.store.folders()) == made.store.folders()
    assert not [path for path in made.store.tapes.iterdir() if path.is_dir()]


class TestWriting:
    def test_the_first_write_unpacks(self, made):
        before = files(made.folder(made.tape))
        archive(made.store, made.tape)
        with made.store.open(made.tape) as tape:
            texts = making.texts(tape)
            making.write(tape, "more")
            assert making.texts(tape) == [*texts, "more"]
        now = files(made.folder(made.tape))
        assert not list(made.store.tapes.glob(f"*{PACKED_SUFFIX}"))
        assert all(now[name].startswith(data) for name, data in before.items() if data)

    @pytest.mark.parametrize(
        "change",
        [
            lambda tape: tape.rename("Another"),
            lambda tape: tape.fork(tape.head(), "third"),
            lambda tape: tape.switch("side"),
            lambda tape: tape.label("here", tape.head().entry),
        ],
        ids=["rename", "fork", "switch", "label"],
    )
    def test_a_move_unpacks(self, made, change):
        archive(made.store, made.tape)
        with made.store.open(made.tape) as tape:
            change(tape)
            assert made.folder(made.tape).is_dir()
            assert not [*verify(tape, Counts())]

    def test_a_new_tape_may_begin_in_it(self, made):
        archive(made.store, made.tape)
        with (
            made.store.open(made.tape) as tape,
            made.store.create(making.beginning("new"), origin=(tape, tape.head())) as child,
        ):
            assert child.entries(child.head())[:-1] == tape.entries(tape.head())
        assert file_of(made, made.tape).is_file()

    def test_one_that_is_written_is_left(self, made):
        before = files(made.folder(made.tape))
        with (
            made.store.open(made.tape) as other,
            other.writer("side"),
            made.store.open(made.tape) as tape,
            pytest.raises(Busy, match=r"^side is being written by process "),
        ):
            pack_tape(made.store, tape)
        assert files(made.folder(made.tape)) == before

    def test_a_link_inside_is_refused(self, made):
        (made.folder(made.tape) / "link").symlink_to("tape.json")
        with pytest.raises(UsageError, match="link is not a file"):
            archive(made.store, made.tape)
        assert made.folder(made.tape).is_dir()
        assert not list(made.store.tapes.glob(".new-*"))

    def test_a_writer_that_claimed_a_branch_before_stops(self, made):
        with (
            made.store.open(made.tape) as tape,
            made.store.open(made.tape) as other,
            other.writer("main"),
            tape.writer() as writer,
        ):
            assert writer.branch == "main.2"
            tape.folder.fd, fd = os.open(made.store.tapes, os.O_RDONLY), tape.folder.fd
            os.close(fd)  # as if what it has open was archived
            with pytest.raises(Overtaken, match="archived meanwhile"):
                writer.append(making.say("lost?"))


class TestOpenTapes:
    def test_follow_it_into_the_file_and_back(self, made):
        with made.store.open(made.tape) as tape, made.store.open(made.child) as child:
            before = tape.entries(tape.head()), child.entries(child.head())
            for _ in range(3):
                archive(made.store, made.tape)
                assert (tape.entries(tape.head()), child.entries(child.head())) == before
                assert tape.refs().current == "main"
                with made.store.open(made.tape) as other:
                    unpack_tape(made.store, other)
                assert (tape.entries(tape.head()), child.entries(child.head())) == before

    def test_write_where_the_tape_is_now(self, made):
        with made.store.open(made.tape) as tape:
            archive(made.store, made.tape)
            making.write(tape, "after")
            archive(made.store, made.tape)
            making.write(tape, "again")
        with made.store.open(made.tape) as tape:
            assert making.texts(tape)[-2:] == ["after", "again"]

    def test_a_follower_reads_new_entries_in_either_form(self, made):
        with made.store.open(made.tape) as tape, follow(tape) as follower:
            archive(made.store, made.tape)
            assert not [*follower.poll()]
            with made.store.open(made.tape) as other:
                making.write(other, "live")
            assert len([*follower.poll()]) == 1
            archive(made.store, made.tape)
            assert not [*follower.poll()]

    def test_a_deleted_one_is_still_read_but_not_written(self, made):
        archive(made.store, made.child)
        with made.store.open(made.child) as tape:
            before = tape.entries(tape.head())
            with made.store.open(made.child) as other:
                made.store.remove(other)
            made.store.empty_trash()
            assert tape.entries(tape.head()) == before
            with pytest.raises(NotFound, match="was removed"):
                making.write(tape, "no")


class TestBothForms:
    def both(self, made):
        """Leave the file beside the folder, as a kill does."""
        folder = made.folder(made.tape)
        copy = folder.with_name(".copy")
        shutil.copytree(folder, copy)
        archive(made.store, made.tape)
        copy.rename(folder)
        return folder, folder.with_name(folder.name + PACKED_SUFFIX)

    def test_the_folder_counts_and_a_writer_removes_the_file(self, made):
        _, file = self.both(made)
        assert len(made.store.folders()) == 2
        with made.store.open(made.tape) as tape:
            tape.entries(tape.head())
            assert file.exists()
            making.write(tape, "more")
            assert not file.exists()
            assert making.texts(tape)[-1] == "more"

    def test_a_file_with_something_else_stays(self, made):
        folder, file = self.both(made)
        end = max(folder.glob("phases/*-compaction/entries.jsonl"))
        end.write_bytes(b"".join(end.read_bytes().splitlines(keepends=True)[:-1]))  # from before
        data = file.read_bytes()
        with made.store.open(made.tape) as tape:
            making.write(tape, "more")
            assert file.read_bytes() == data
            with pytest.raises(UsageError, match="is there already"):
                pack_tape(made.store, tape)
            assert making.texts(tape)[-1] == "more"
        assert file.read_bytes() == data

    def test_a_damaged_file_stays(self, made):
        _, file = self.both(made)
        file.write_bytes(b"not one")
        with made.store.open(made.tape) as tape:
            making.write(tape, "more")
        assert file.read_bytes() == b"not one"


def find_damage(store, file):
    """Return what is said of an archived tape that is damaged."""
    try:
        with store.open_folder(file.name.removesuffix(PACKED_SUFFIX)) as tape:
            findings = [one for one in verify(tape, Counts()) if one.kind == "archive"]
            return "".join(one.file for one in findings)
    except Damaged as error:
        return str(error)


class TestDamage:
    def test_every_byte_counts(self, made):
        archive(made.store, made.tape)
        file = file_of(made, made.tape)
        data = file.read_bytes()
        for at in range(0, len(data), 1 if BUDGET > 1 else 7):
            broken = bytearray(data)
            broken[at] ^= 0x10
            file.write_bytes(broken)
            assert file.name in find_damage(made.store, file), at
            with Store(made.store.path).open_folder(made.folder(made.child).name) as child:
                assert child.info.id == made.child

    def test_a_cut_file_is_named_and_kept(self, made):
        archive(made.store, made.tape)
        file = file_of(made, made.tape)
        data = file.read_bytes()
        for size in (0, 1, 27, 28, 100, len(data) // 2, len(data) - 1):
            file.write_bytes(data[:size])
            name = file.name.removesuffix(PACKED_SUFFIX)
            with pytest.raises(Damaged, match=r"\.tar\.zst cannot be read: "):
                made.store.open_folder(name)
            assert file.read_bytes() == data[:size]
            assert name in made.store.folders()

    def test_a_damaged_frame_is_no_reason_to_lose_the_others(self, made, monkeypatch):
        monkeypatch.setattr(packed, "_FRAME_BYTES", 4000)
        archive(made.store, made.tape)
        file = file_of(made, made.tape)
        with Folder.open(made.store.tapes) as tapes:
            name = file.name.removesuffix(PACKED_SUFFIX)
            with PackedTape.open(tapes, name) as archived:
                start = archived.index.frames[0].packed + 9
        data = bytearray(file.read_bytes())
        data[start] ^= 1
        file.write_bytes(data)
        with made.store.open(made.tape) as tape:
            assert tape.refs().current == "main"
            damage = [one for one in verify(tape, Counts()) if one.kind == "archive"]
            assert damage[0].offset == start - 9
            assert "entries.jsonl" in damage[0].message
            with pytest.raises(Damaged, match="the frame at byte"):
                making.write(tape, "no")
        assert file.read_bytes() == data
        assert not list(made.store.tapes.glob(".new-*"))
