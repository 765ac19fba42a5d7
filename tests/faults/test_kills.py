"""SIGKILL while another process writes: nothing a barrier acknowledged is lost."""

import json
import shutil
import signal
import subprocess
import sys

import pytest

from tape.store.store import Store
from tests.faults.zygote import ran
from tests.tape import making, reader
from tests.tape.making import BUDGET

APPEND = """
import itertools, sys
from pathlib import Path
from tape.model.entries import Text
from tape.model.entries import User
from tape.store.store import Store
with Store(Path(sys.argv[1])).open(sys.argv[2]) as tape, tape.writer() as writer:
    for number in itertools.count():
        entry = writer.append(User((Text(f"{number} " + "x" * (number % 7 * 900)),)))
        if number % 3 == 0:
            writer.barrier()
            print(entry.id, flush=True)
"""
SESSION = """
import sys
from pathlib import Path
from tape.model.entries import Text
from tape.model.entries import User
from tape.store.store import Beginning, Store
with Store(Path(sys.argv[1])).create(Beginning("/src", "test/1")) as tape:
    print(tape.id, flush=True)
    with tape.writer() as writer:
        print(writer.append(User((Text("x" * 70_000),))).id)
        writer.barrier()
        sys.stdout.flush()
    tape.fork(tape.head(), "b", switch=True)
    with tape.writer() as writer:
        print(writer.append(User((Text("two"),))).id)
        writer.barrier()
        sys.stdout.flush()
"""
CALLS = ("write", "mkdirat", "renameat", "fdatasync", "fsync", "ftruncate", "openat")
strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


def acknowledged(text):
    return [line for line in text.split("\n")[:-1] if line]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 2, 5, 20, 21] * BUDGET)
def test_in_the_middle_of_appending_loses_nothing_acknowledged(tmp_path, lines):
    store = Store(tmp_path)
    with store.create(making.beginning()) as tape:
        folder = making.folder_of(store, tape)
        command = [sys.executable, "-c", APPEND, str(tmp_path), tape.id]
        for _ in range(2):
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                known = [child.stdout.readline().strip() for _ in range(lines)]
                child.kill()
                known += acknowledged(child.stdout.read())
            with tape.writer() as writer:
                writer.append(making.say("after"))
            path = [entry.id for entry in making.entries(tape)]
            assert set(known) <= set(path)
            assert [entry for entry in path if entry in set(known)] == known
            assert reader.faults(folder) == []


def killed_at(store, call, k):
    """Run SESSION and kill it at the k-th system call of one kind; return what it told."""
    inject = f"--inject={call}:signal=KILL:when={k}"
    trace = ["-f", "-qq", "-o", "/dev/null", f"--trace={call}", inject]
    said, code = ran(trace, [sys.executable, "-c", SESSION, str(store)], {})
    assert code in (0, -signal.SIGKILL)
    return acknowledged(said), code == 0


@strace
@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS[2:3] if BUDGET == 1 else CALLS)  # see test_every_kill
def test_at_every_system_call_leaves_whole_tapes_and_all_that_was_acknowledged(tmp_path, call):
    for k in range(1, 1000):
        path = tmp_path / str(k)
        known, ended = killed_at(path, call, k)
        store = Store(path)
        folders = store.folders()
        assert len(folders) == 1 or not known
        for name in folders:
            with store.open_folder(name) as tape:
                check(tape, store.tapes / name, known)
        if ended:
            break
    assert ended


def check(tape, folder, known):
    for branch in tape.refs().branches:
        making.write(tape, "after", branch=branch)
        assert making.texts(tape, branch)[-1] == "after"
    assert reader.faults(folder) == []
    held = {one.entry["id"] for lines in reader.phases(folder).values() for one in lines}
    assert set(known[1:]) <= held
    assert json.loads((folder / "tape.json").read_bytes())["id"] in {*known[:1], tape.id}
