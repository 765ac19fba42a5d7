"""A small tape has few files: those for locks, blobs and torn bytes come when they are needed."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from tape.errors import Busy
from tape.model.entries import Text, User
from tape.store.disk import Folder
from tape.store.locks import Lock, is_lock_held, list_lock_names
from tape.store.store import Beginning, Store

SMALL = {"tape.json", "refs.jsonl", "phases", "phases/0001-main-start"} | {
    "phases/0001-main-start/entries.jsonl"
}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "home")


def names(store, tape):
    top = store.tapes / tape.folder.name
    return {str(path.relative_to(top)) for path in top.rglob("*")}


def test_a_tape_of_one_phase_is_three_files_in_three_folders(store):
    with store.create(Beginning("/src", "test/1", "A title")) as tape:
        assert names(store, tape) == SMALL
        with tape.writer() as writer:
            writer.append(User((Text("hello"),)))
            assert names(store, tape) == SMALL | {"locks", "locks/main"}
        tape.rename("Another title")
        assert names(store, tape) == SMALL
        tape.blobs.put(b"x")
        assert {"blobs"} < names(store, tape) - SMALL


def test_a_lock_whose_file_was_removed_is_taken_again(tmp_path):
    with Folder.open(tmp_path) as tape:
        first = Lock.take_in(tape, "main")
        with pytest.raises(Busy):
            Lock.take_in(tape, "main")
        waiting = os.open(tmp_path / "locks/main", os.O_RDWR)  # as one who waits has it open
        first.close()
        os.close(waiting)
        assert not (tmp_path / "locks").exists()
        with Lock.take_in(tape, "main") as second, Lock.take_in(tape, "refs"):
            assert second.is_held
            assert list_lock_names(tape) == ["main", "refs"]
            assert is_lock_held(tape, "main")
        assert list_lock_names(tape) == []


def count_alone(folder: str, rounds: int) -> None:
    """Read, add one and write back, under a lock each time."""
    counter = Path(folder) / "count"
    with Folder.open(folder) as tape:
        for _ in range(rounds):
            with Lock.take_in(tape, "refs", wait=60):
                counter.write_text(str(int(counter.read_text()) + 1))


def test_processes_that_meet_at_a_lock_that_comes_and_goes_never_hold_it_together(tmp_path):
    (tmp_path / "count").write_text("0")
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=count_alone, args=(str(tmp_path), 150)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert (tmp_path / "count").read_text() == "600"
    assert not (tmp_path / "locks").exists()


def test_a_child_leaves_the_lock_of_its_parent(tmp_path):
    with Folder.open(tmp_path) as tape, Lock.take_in(tape, "main"):
        child = os.fork()
        if child == 0:
            os._exit(int(list_lock_names(tape) != ["main"]))
        assert os.waitpid(child, 0)[1] == 0
        assert is_lock_held(tape, "main")
