"""Following from other processes while real writers write, move and die: all, once, in order."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tape.model.entries import Note
from tests.tape import making, reader
from tests.tape.making import BUDGET

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent / "tape"
COUNT = 1000
FOLLOW = """
import sys, time
from pathlib import Path
from tape.history.follow import Moved, follow
from tape.store.store import Store
path, tape, branch, hurry = sys.argv[1:]
with Store(Path(path)).open(tape) as tape, follow(tape, branch) as follower:
    print("ready", flush=True)
    for found in follower.live(lambda seconds: time.sleep(seconds / float(hurry))):
        print("moved" if isinstance(found, Moved) else found.head.entry, flush=True)
        if not isinstance(found, Moved) and b'{"text":"end"}' in found.line:
            break
"""
WRITE = """
import sys, time
from pathlib import Path
from tape.model.entries import Anchor, Note, Place
from tape.store.store import Store
path, tape, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
nowhere = Place(phase="", offset=0, entry="")
anchor = Anchor(phase="", branch="", base=nowhere, kind="handoff", summary="so far")

def bursts(numbers):
    while numbers:
        size = len(numbers) % 23 + 1
        yield numbers[:size]
        numbers = numbers[size:]

with Store(Path(path)).open(tape) as tape, tape.writer("main") as writer:
    print("ready", flush=True)
    for half in (range(count // 2), range(count // 2, count)):
        sys.stdin.readline()
        for burst in bursts(half):
            ids = [writer.append(Note("x" * (number * 37 % 3000))).id for number in burst]
            writer.barrier()
            if len(burst) == 7:
                ids.append(writer.anchor(anchor).id)
            print(*ids, sep="\\n", flush=True)
"""
ENOUGH = 60
"""Seconds after which something hangs."""


class Processes:
    """Processes that print into files, so that none waits for a reader."""

    def __init__(self, store, stack, tmp_path):
        self.store, self.stack, self.folder = store, stack, tmp_path
        self.running = []

    def start(self, *command):
        out = self.folder / f"{len(self.running)}.out"
        with out.open("wb") as file:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file)
        self.stack.enter_context(ended(process))
        self.running.append(process)
        return Running(process, out)

    def follow(self, tape, branch, hurry=1):
        """Start a follower through the library and return when it follows."""
        running = self.start(
            *(sys.executable, "-c", FOLLOW, str(self.store.path), tape.id, branch, str(hurry))
        )
        running.wait(lambda words: words)
        return running

    def tail(self, tape, branch, newest):
        """Start `tape tail -f` and return when it follows."""
        running = self.start(
            *(BIN, "--store", str(self.store.path), "tail", "-f", "--json"),
            *("-n", str(newest), f"{tape.id}:{branch}"),
        )
        running.wait(lambda lines: lines)
        return running

    def write(self, tape, count):
        running = self.start(sys.executable, "-c", WRITE, str(self.store.path), tape.id, str(count))
        running.wait(lambda words: words)
        return running


@contextmanager
def ended(process):
    """Hold a process that is killed at the end, if it has not come to its own."""
    with process:
        try:
            yield
        finally:
            process.kill()


class Running:
    """A process and what it printed."""

    def __init__(self, process, out):
        self.process, self.out = process, out

    def lines(self):
        return self.out.read_bytes().decode().split("\n")[:-1]

    def wait(self, condition):
        """Return its lines as soon as they fulfil a condition."""
        until = time.monotonic() + ENOUGH
        while not condition(lines := self.lines()):
            assert self.process.poll() is None or condition(self.lines()), lines
            assert time.monotonic() < until, lines
            time.sleep(0.005)
        return lines

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def followed(self):
        """Return what a follower of the library printed, once it has ended."""
        assert self.process.wait(ENOUGH) == 0
        ready, *ids = self.lines()
        assert ready == "ready"
        return ids

    def tailed(self, last):
        """Return the ids `tape tail` printed, interrupted as soon as it has printed the last."""
        lines = self.wait(lambda lines: lines and json.loads(lines[-1])["id"] == last)
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(ENOUGH) == 130
        assert self.lines() == lines
        return [json.loads(line)["id"] for line in lines]


@pytest.fixture
def processes(tmp_path):
    store = making.store_in(tmp_path / "store")
    with ExitStack() as stack:
        yield Processes(store, stack, tmp_path)


def record(process, numbers):
    """Let `tape append` record notes in bursts, and read the answers to each."""
    numbers = list(numbers)
    while numbers:
        burst, numbers = numbers[: len(numbers) % 19 + 1], numbers[len(numbers) % 19 + 1 :]
        notes = [{"type": "note", "data": {"text": f"{n} " * (n % 50)}} for n in burst]
        process.stdin.write(b"".join(json.dumps(note).encode() + b"\n" for note in notes))
        process.stdin.flush()
        assert len([process.stdout.readline() for _ in burst]) == len(burst)


def test_followers_of_two_writers_see_everything_once_in_order(processes):
    """With the folder renamed in the middle, where more of them join."""
    store = processes.store
    with store.create(making.beginning()) as tape:
        folder = making.folder_of(store, tape)
        tape.fork(tape.head(), "side")
        followers = {b: [processes.follow(tape, b, h) for h in (1, 50)] for b in ("main", "side")}
        tails = {branch: [processes.tail(tape, branch, 1)] for branch in followers}
        writer = processes.write(tape, COUNT)
        append = subprocess.Popen(
            [BIN, "--store", str(store.path), "append", f"{tape.id}:side"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with append:
            writer.go()
            record(append, range(COUNT // 2))
            writer.wait(lambda words: len(words) > COUNT // 2)
            for branch, joined in tails.items():
                joined.append(processes.tail(tape, branch, 9999))
            writer.go()  # and while both write, the folder moves
            record(append, range(COUNT // 2, COUNT * 3 // 4))
            folder = folder.rename(folder.with_name("elsewhere"))
            record(append, range(COUNT * 3 // 4, COUNT))
            append.stdin.close()
            assert append.wait(ENOUGH) == 0
        assert writer.process.wait(ENOUGH) == 0
        for branch, some in followers.items():
            end(tape, branch)
            start, *ids = path(folder, branch)
            assert len(ids) > COUNT
            assert [follower.followed() for follower in some] == [ids, ids]
            first, joined = (one.tailed(ids[-1]) for one in tails[branch])
            assert first == joined == [start, *ids]
        assert reader.faults(folder) == []


def end(tape, branch):
    """Record the last entry, by which followers know that they may end."""
    with tape.writer(branch) as writer:
        writer.append(Note("end"))


def path(folder, branch):
    """Return the ids of a branch, as a reader that knows nothing of ours sees them."""
    return [entry["id"] for entry in reader.path(folder, reader.heads(folder)[branch])]


@pytest.mark.slow
@pytest.mark.parametrize("torn", [b"", b'{"id":"0123', b"x\ny\n"] * BUDGET)
def test_killed_writers_leave_nothing_to_double_or_to_miss(processes, torn):
    store, known = processes.store, []
    with store.create(making.beginning()) as tape:
        folder = making.folder_of(store, tape)
        followers = [processes.follow(tape, "main", hurry) for hurry in (1, 50)]
        for burst in (40, 90, 200):
            writer = processes.write(tape, 10**7)
            writer.go()
            writer.wait(lambda words, burst=burst: len(words) > burst)
            writer.process.kill()
            writer.process.wait()
            known += writer.lines()[1:]
            with (folder / "phases" / tape.head().phase / "entries.jsonl").open("ab") as file:
                file.write(torn)
        end(tape, "main")
        _, *ids = path(folder, "main")
        assert [one for one in ids if one in set(known)] == known
        assert [follower.followed() for follower in followers] == [ids, ids]
        assert reader.faults(folder) == []
