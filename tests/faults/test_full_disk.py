"""A disk that fills up at any point of any operation: one clear error, and nothing told is lost."""

import os
import resource
import subprocess
from contextlib import contextmanager, suppress

import pytest

from tape.errors import WriteFailed
from tape.model.entries import Anchor
from tape.store.store import Store
from tests.faults.histories import LONG, found
from tests.tape import making, reader

PAGE = 4096
OPERATIONS = {
    "append": lambda store, tape: making.write(tape, "more " * 2_000),
    "blob": lambda store, tape: making.write(tape, LONG),
    "fork": lambda store, tape: making.write(tape, "aside", branch=tape.fork(tape.head())),
    "anchor": lambda store, tape: anchored(tape),
    "new": lambda store, tape: store.create(making.beginning("x" * 50)).close(),
    "fork --new": lambda store, tape: store.create(
        making.beginning(), origin=(tape, tape.head())
    ).close(),
}


def anchored(tape):
    with tape.writer() as writer:
        writer.anchor(Anchor(kind="compaction", summary="so far " * 1_000))


@pytest.fixture
def disk(tmp_path):
    """A file system of four megabytes, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place],
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("mount is not installed")
    if done.returncode:
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk, left):
    """Take all room but `left` pages; return the file that holds it."""
    free = os.statvfs(disk).f_bavail
    filler = disk / "filler"
    filler.write_bytes(b"x" * PAGE * max(free - left, 0))
    return filler


def judged(store, tape, known):
    """Check a store on which somebody ran out of room, and go on in it."""
    for name in store.folders():
        assert found(store, name) == []
    held = [entry.id for entry in making.entries(tape, "main")]
    assert held[: len(known)] == known
    for branch in tape.refs().branches:
        making.write(tape, "after", branch=branch)
    for name in store.folders():
        assert reader.faults(store.tapes / name) == []
        assert found(store, name) == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_disk_with_any_room_left_refuses_or_does_it_whole(disk, name):
    refused = 0
    for left in range(48):
        store = Store(disk / str(left))
        with store.create(making.beginning()) as tape:
            making.write(tape, "before")
            known = [entry.id for entry in making.entries(tape)]
            filler = fill(disk, left)
            try:
                OPERATIONS[name](store, tape)
                done = True
            except WriteFailed:
                done = False
                refused += 1
            filler.unlink()
            judged(store, tape, known)
        if done:
            break
    assert done
    assert refused


@contextmanager
def files_at_most(size):
    """Let no file of this process grow beyond `size` bytes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("size", [0, 1, 100, 300, 500, 700, 1000])
def test_files_that_may_not_grow_refuse_or_do_it_whole(tmp_path, name, size):
    store = Store(tmp_path)
    with store.create(making.beginning()) as tape:
        making.write(tape, "before")
        known = [entry.id for entry in making.entries(tape)]
        with files_at_most(size), suppress(WriteFailed):
            OPERATIONS[name](store, tape)
        judged(store, tape, known)


def test_a_disk_mounted_for_reading_only_can_be_read_and_is_not_written(disk):
    store = Store(disk / "store")
    with store.create(making.beginning()) as tape:
        making.write(tape, "before")
        before = reader.files(making.folder_of(store, tape))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for operation in OPERATIONS.values():
            with pytest.raises(WriteFailed, match="cannot be written"):
                operation(store, tape)
        assert making.texts(tape) == ["before"]
        assert reader.files(making.folder_of(store, tape)) == before
