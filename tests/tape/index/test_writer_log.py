from __future__ import annotations

import os
import time
from contextlib import closing

import pytest

from tape.index import tables
from tape.index.library import list_tapes, open_store
from tape.index.reader import LARGE_LOG, LOG_NAME, connect_index, is_caught_up
from tape.index.writer_log import ActiveWriter, WriterLog
from tape.model.entries import Text, User
from tape.store.store import Beginning

TAPE, OTHER = "0" * 31 + "1", "0" * 31 + "2"


@pytest.fixture
def library(tmp_path):
    with open_store(tmp_path / "home") as library:
        yield library


def begin(library, title="A title"):
    return library.store.create(Beginning("/src", "test/1", title))


def settle(library):
    """Let the folder of tapes look as if nothing came or went for a while."""
    then = time.time_ns() - 10_000_000_000
    os.utime(library.store.tapes, ns=(then, then))


def is_answered_at_once(library):
    with closing(connect_index(library.store.path, timeout=1)) as db:
        return is_caught_up(db, str(library.store.path))


def listed(library):
    found = list_tapes(*library)
    assert found == list_tapes(library.store, None)
    return found


def test_lines_are_read_once_and_all_again_after_a_truncation(tmp_path):
    log, writer = WriterLog(tmp_path), ActiveWriter(TAPE, 12, 34)
    assert log.read_lines(0, 0) == ((0, 0), [])
    log.append(writer, begins=True)
    first, lines = log.read_lines(0, 0)
    assert [(line.begins, line.writer) for line in lines] == [(True, writer)]
    log.append(writer, begins=False)
    second, lines = log.read_lines(*first)
    assert [(line.offset, line.begins, line.writer) for line in lines] == [
        (first[1], False, writer)
    ]
    log.truncate(first)
    assert log.read_position() == second
    log.truncate(second)
    assert log.read_position() == (0, 0)
    for _ in range(4):
        log.append(ActiveWriter(OTHER, 12, 34), begins=True)
    _, lines = log.read_lines(*second)
    assert [line.writer.tape for line in lines] == [OTHER] * 4


def test_a_move_costs_some_bytes_with_any_number_of_branches(library):
    """Issue 14: at most 2 KB, and nothing in SQLite."""
    with begin(library) as tape:
        tape.rename("A title")
        listed(library)
        for size in (1, 300):
            while len(tape.refs().branches) < size:
                tape.fork(tape.head("main"))
            database = {p.name: p.stat().st_mtime_ns for p in library.store.path.glob("index.db*")}
            files = [library.store.path / LOG_NAME, *library.store.tapes.glob("*/refs.jsonl")]
            before = sum(file.stat().st_size for file in files)
            tape.fork(tape.head("main"), f"at-{size}")
            tape.label("here", tape.head().entry)
            assert sum(file.stat().st_size for file in files) - before < 1_000
            assert database == {
                p.name: p.stat().st_mtime_ns for p in library.store.path.glob("index.db*")
            }
    (row,) = listed(library)
    assert row.branches == 301


def test_a_writer_leaves_an_index_that_answers_immediately(library):
    with begin(library) as tape:
        settle(library)
        listed(library)
        tape.fork(tape.head(), "side")
        assert not is_answered_at_once(library)
        with tape.writer("side") as writer:
            writer.append(User((Text("hi"),)))
        assert is_answered_at_once(library)
    (row,) = listed(library)
    assert (row.branches, row.entries) == (2, 3)


def test_what_others_noted_is_not_lost_when_a_writer_ends(library):
    with begin(library) as tape, open_store(library.store.path) as other:
        listed(library)
        with tape.writer() as writer:
            with other.store.open(tape.id) as same:
                same.rename("Another title")
            writer.append(User((Text("hi"),)))
    assert listed(library)[0].title == "Another title"


@pytest.mark.parametrize("junk", [b"\0" * 30, b"\0" * 30 + b"\n", b"+ 12\n"])
def test_a_log_that_a_power_failure_damaged_makes_readers_look_at_all_tapes(library, junk):
    for _ in range(3):
        begin(library).close()
    settle(library)
    listed(library)
    with open_store(library.store.path, index=False) as (store, _):
        for folder in store.folders():
            with store.open_folder(folder) as tape:
                tape.rename("renamed")
    (library.store.path / LOG_NAME).write_bytes(junk)
    assert {row.title for row in listed(library)} == {"renamed"}
    assert is_answered_at_once(library)


def test_a_large_log_is_truncated_without_writers(library):
    log = library.store.path / LOG_NAME
    with begin(library) as tape, begin(library) as second:
        with tape.writer() as writer:
            other = ActiveWriter(second.id, os.getpid(), 1)
            while not log.exists() or log.stat().st_size < LARGE_LOG:
                WriterLog(library.store.path).append(other, begins=True)
                WriterLog(library.store.path).append(other, begins=False)
            listed(library)
            assert log.stat().st_size >= LARGE_LOG
            writer.append(User((Text("hi"),)))
        listed(library)
        assert log.stat().st_size == 0
        second.rename("once more")
    assert {row.title for row in listed(library)} == {"A title", "once more"}


def test_a_log_deleted_under_a_writer_is_written_again(library):
    with begin(library) as tape, tape.writer() as writer:
        for path in library.store.path.glob("index.*"):
            path.unlink()
        settle(library)
        listed(library)
        writer.append(User((Text("hi"),)))
        writer.barrier()
        assert [row.entries for row in listed(library)] == [2]
        writer.append(User((Text("hi"),)))
        assert [row.entries for row in listed(library)] == [3]
    with closing(connect_index(library.store.path, timeout=1)) as db:
        assert tables.select_writers(db) == []
