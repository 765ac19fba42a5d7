"""What a store knows of a remote is in a file, which may be full, or not what it should be."""

import resource
import sqlite3
from contextlib import closing, contextmanager

import pytest

from tape.errors import WriteFailed
from tape.remote.cursor import Cursor, locate_cursor
from tape.store.store import Store


@contextmanager
def limiting_files(size):
    """Let no file of this process become larger, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def want_all(cursor, tapes):
    with cursor.transaction():
        for tape in tapes:
            cursor.want(tape, 1)


def test_a_full_disk_is_named_and_leaves_nothing_half_saved(tmp_path):
    Store(tmp_path).open_tapes_folder().close()
    with Cursor.open(tmp_path, "team") as cursor:
        size = locate_cursor(tmp_path, "team").stat().st_size
        with (
            limiting_files(size + 4_096),
            pytest.raises(WriteFailed, match="cannot be read or written"),
        ):
            want_all(cursor, [f"{number:032x}" for number in range(2_000)])
        assert cursor.list_wanted() == {}
        want_all(cursor, ["a" * 32])
        assert cursor.list_wanted() == {"a" * 32: 1}


def drop_table(path):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE gone")


def test_a_full_disk_is_no_damage(tmp_path):
    """What has to be erased at the remote is known nowhere else."""
    Store(tmp_path).open_tapes_folder().close()
    path = locate_cursor(tmp_path, "team")
    with Cursor.open(tmp_path, "team") as cursor:
        cursor.request_erasure("a" * 32)
    drop_table(path)
    with limiting_files(0), pytest.raises(WriteFailed, match="cannot be written"):
        Cursor.open(tmp_path, "team")
    with Cursor.open(tmp_path, "team") as cursor:
        assert cursor.list_erasures() == ["a" * 32]
        drop_table(path)
        with pytest.raises(WriteFailed, match="no such table"):
            cursor.read_gone()
