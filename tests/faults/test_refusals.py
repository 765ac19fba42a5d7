"""A disk that says no: one clear error, and everything acknowledged still stands."""

import os
import shutil
import subprocess
import sys

import pytest

from tape.errors import Damaged, WriteFailed
from tests.tape import making, reader

SYNC = """
import sys
from pathlib import Path
from tape.model.entries import Text
from tape.model.entries import User
from tape.errors import TapeError
from tape.store.store import Store
with Store(Path(sys.argv[1])).open(sys.argv[2]) as tape:
    writer = tape.writer()
    for text in ("one", "two", "three"):
        try:
            writer.append(User((Text(text),)))
            writer.barrier()
            print(text)
        except TapeError as error:
            print(type(error).__name__)
"""


@pytest.fixture
def store(tmp_path):
    return making.store_in(tmp_path / "store")


@pytest.fixture
def tape(store):
    with store.create(making.beginning()) as tape:
        making.write(tape, "before")
        yield tape


@pytest.fixture
def read_only(store, tape):
    places = [store.path, *store.path.rglob("*")]
    for place in places:
        place.chmod(0o500 if place.is_dir() else 0o400)
    if os.access(store.path, os.W_OK):
        pytest.skip("this user may write everywhere")
    yield
    for place in places:
        place.chmod(0o700 if place.is_dir() else 0o600)


MOVE = """
import sys
from pathlib import Path
from tape.model.entries import Anchor
from tape.errors import TapeError
from tape.store.store import Store
from tests.tape import making
with Store(Path(sys.argv[1])).open(sys.argv[2]) as tape:
    writer = tape.writer()
    for step in (lambda: writer.anchor(Anchor(kind="compaction", summary="all")),
                 lambda: writer.append(making.say("after"))):
        try:
            step()
            print("done")
        except TapeError as error:
            print(type(error).__name__)
"""


def under_failing_sync(when, script, store, tape):
    """Run a script whose `when`-th fdatasync fails, and return the words it printed."""
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "--trace=fdatasync"]
    command += [f"--inject=fdatasync:error=EIO:when={when}"]
    command += [sys.executable, "-c", script, str(store.path), tape.id]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("when", [2, 3, 4])  # the first one settles the journal
def test_a_sync_that_fails_while_a_phase_begins_closes_the_writer(store, tape, when):
    assert under_failing_sync(when, MOVE, store, tape) == ["SyncFailed", "UsageError"]
    folder = making.folder_of(store, tape)
    assert reader.faults(folder) == []
    making.write(tape, "later")
    assert making.texts(tape) == ["before", "later"]
    assert reader.faults(folder) == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_sync_that_fails_closes_the_writer(store, tape):
    assert under_failing_sync(3, SYNC, store, tape) == ["one", "SyncFailed", "UsageError"]
    assert making.texts(tape)[:2] == ["before", "one"]
    assert reader.faults(making.folder_of(store, tape)) == []


def test_a_read_only_tape_can_be_read_and_is_not_written(store, tape, read_only):
    with store.open(tape.id) as found:
        assert making.texts(found) == ["before"]
        for act in (found.writer, lambda: found.rename("x"), lambda: found.fork(found.head())):
            with pytest.raises(WriteFailed, match="cannot be written"):
                act()


def test_a_read_only_store_takes_no_tape(store, tape, read_only):
    with pytest.raises(WriteFailed, match="cannot be written"):
        store.create(making.beginning())
    assert store.folders() == [tape.folder.name]


def test_a_store_that_vanished_is_no_store(store, tape):
    shutil.rmtree(store.path)
    assert store.folders() == []
    with pytest.raises(Damaged, match=r"refs\.jsonl is missing"):
        making.texts(tape)
