"""The real commands killed at every system call that changes a disk: nothing told is lost.

`python tests/faults/test_every_kill.py [SECONDS]` kills at every k and prints k and outcome.
"""

import functools
import re
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.index.library import open_store
from tests.faults.histories import LONG
from tests.faults.zygote import TAPE, traced
from tests.tape import making, reader
from tests.tape.making import BUDGET

pytestmark = pytest.mark.slow

BIN = TAPE
CALLS = {
    "write": "write",
    "pwrite64": "pwrite64",
    "rename*": "rename,renameat,renameat2",
    "mkdir*": "mkdir,mkdirat",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
    "ftruncate": "ftruncate",
}
"""What changes a disk, and the system calls that do it."""
MOVES = """
import sys
from pathlib import Path
from tape import User, Text, open_store
from tape.model.entries import Anchor
store, index = open_store(Path(sys.argv[1]))
def tell(entry):
    print(entry, flush=True)
with store.open(sys.argv[2]) as tape, tape.writer("main") as writer:
"""
ANCHOR = (
    MOVES
    + """
    tell(writer.anchor(Anchor(kind="compaction", summary="so far")).id)
    entry = writer.append(User((Text("behind the anchor"),)))
    writer.barrier()
    tell(entry.id)
"""
)
REWIND = (
    MOVES
    + """
    writer.rewind(tape.find_ancestor(tape.head("main"), 1).head, "undo")
    print("rewound", flush=True)
    entry = writer.append(User((Text("instead"),)))
    writer.barrier()
    tell(entry.id)
"""
)


MERGED = ("--into", "side", "--pick", ":main", "--json")


class Operation(NamedTuple):
    """One command, and the lines it is given one by one."""

    command: tuple[str, ...]
    lines: tuple[bytes, ...] = ()


def operations(store, tape):
    texts = (b"a", LONG.encode(), b"b")
    lines = tuple(b'{"type":"note","data":{"text":"%b"}}\n' % text for text in texts)
    return {
        "append": Operation((BIN, "append", tape), lines),
        "append, torn": Operation((BIN, "append", f"{tape}:main"), lines[:1]),
        "fork": Operation((BIN, "fork", tape, "--json")),
        "fork --new": Operation((BIN, "fork", tape, "--new", "--json")),
        "merge": Operation((BIN, "merge", f"{tape}:main", *MERGED)),
        "new": Operation((BIN, "new", "--title", "Another")),
        "new store": Operation((BIN, "new", "--store", str(store / "inner"))),
        "anchor": Operation((sys.executable, "-c", ANCHOR, str(store), tape)),
        "rewind": Operation((sys.executable, "-c", REWIND, str(store), tape)),
    }


TORN = b'{"id":"0123'
NAMES = tuple(operations(Path(), ""))
USUAL = ("append", "fork", "merge", "new", "anchor", "rewind")
"""Those that are killed in every run of the suite."""
EVERY = ("append", "anchor", "merge")
"""Those that are killed at every k then."""


class Killed(NamedTuple):
    """What a command told before it was killed."""

    said: str
    ended: bool


def killed(store, operation, call, k):
    """Run a command and kill it at the k-th system call of a kind."""
    inject = f"--inject={CALLS[call]}:signal=KILL:when={k}"
    trace = ["-f", "-qq", "-o", "/dev/null", f"--trace={CALLS[call]}", inject]
    with traced(trace, operation.command, {"TAPE_HOME": str(store)}) as running:
        said = [answer(running, line) for line in operation.lines]
        with suppress(BrokenPipeError):
            running.stdin.close()
        said.append(running.stdout.read())
        code = running.wait()
    assert code in (0, -signal.SIGKILL)
    return Killed(b"".join(said).decode(), code == 0)


def answer(running, line):
    """Give a command one line and return what it says to it."""
    with suppress(BrokenPipeError):
        running.stdin.write(line)
        running.stdin.flush()
    return running.stdout.readline()


def judged(store, said):
    """Check a store somebody was killed in, go on in it, and say how it was found."""
    before = [fault for folder in folders(store) for fault in reader.faults(folder)]
    assert all(fault.endswith(": torn") for fault in before), before
    found = sorted({finding.level for finding in findings(store)})
    assert set(found) <= {"note", "torn"}, findings(store)
    for at in folders(store):  # a merge is not there, or all that it keeps in view is
        for head in reader.heads(at).values():
            reader.view(at, head)
    lost = ids(said) - held(store)
    assert not lost, f"told and lost: {lost}"
    go_on(store)
    assert findings(store, "note") == []
    assert [fault for folder in folders(store) for fault in reader.faults(folder)] == []
    assert not ids(said) - held(store)
    return ", ".join(found) or "whole"


def tear(store):
    """Leave what a crash leaves: a phase and a journal with incomplete last lines."""
    for name in ("phases/0001-main-start/entries.jsonl", "refs.jsonl"):
        (path,) = store.glob(f"tapes/*/{name}")
        with path.open("ab") as file:
            file.write(TORN)


def torn(store):
    """Return how many torn tails are still there, in their place or in quarantine."""
    tails = [*store.glob("tapes/*/quarantine/*")]
    ends = [*store.glob("tapes/*/phases/*/entries.jsonl"), *store.glob("tapes/*/refs.jsonl")]
    return len({one.name.rpartition(".")[0] for one in tails if one.read_bytes() == TORN}) + sum(
        one.read_bytes().endswith(TORN) for one in ends
    )


def folders(store):
    return sorted(path for path in store.glob("**/tapes/[!.]*") if path.is_dir())


def ids(said):
    """Return what a command told: ids of entries or of a tape, and names of branches."""
    named = re.findall(r'"branch":"([^"]+)"', said)
    return set(re.findall(r"\b(?:[0-9a-f]{40}|[0-9a-f]{32})\b", said)) | set(named)


def held(store):
    lines = [one for at in folders(store) for found in reader.phases(at).values() for one in found]
    tapes = {line.entry["data"]["tape"] for line in lines if line.entry["type"] == "start"}
    branches = {name for at in folders(store) for name in reader.heads(at)}
    return {line.entry["id"] for line in lines} | tapes | branches


def findings(store, *without):
    found = []
    for at in folders(store):
        with open_store(at.parent.parent, index=False).store.open_folder(at.name) as tape:
            found += [one for one in verify(tape, Counts()) if one.level not in without]
    return found


def go_on(store):
    """Append to every branch that is there, by the command's own way of opening a store."""
    for at in folders(store):
        with open_store(at.parent.parent) as (opened, _), opened.open_folder(at.name) as tape:
            for branch in tape.refs().branches:
                making.write(tape, "after", branch=branch)
                assert making.texts(tape, branch)[-1] == "after"


@functools.cache
def pattern():
    """Return a store with a conversation in it, to be copied."""
    path = Path(tempfile.mkdtemp()) / "store"
    with open_store(path) as (store, _), store.create(making.beginning()) as tape:
        making.write(tape, "one", "two", "three")
        tape.fork(tape.find_ancestor(tape.head(), 1).head, "side")
        return path, tape.id


def outcome(name, call, k):
    """Kill an operation at the k-th call of a kind in a store of its own; return how it went."""
    path, tape = pattern()
    with tempfile.TemporaryDirectory() as home:
        store = Path(home) / "store"
        shutil.copytree(path, store)
        if name == "append, torn":
            tear(store)
        end = killed(store, operations(store, tape)[name], call, k)
        assert name != "append, torn" or torn(store) >= 2
        return end.ended, f"{name:10} {call:9} k={k:<4} {told(end)}, {judged(store, end.said)}"


def told(end):
    return f"{'ended ' if end.ended else 'killed'} after {len(ids(end.said)):2} ids"


def every(name, call, step=1):
    """Yield the outcome of a kill at each k, or each `step`, until the command survives."""
    width = 2
    with ThreadPoolExecutor(width) as pool:
        k = 1
        while True:
            batch = [k + at * step for at in range(width)]
            for ended, row in pool.map(functools.partial(outcome, name, call), batch):
                yield row
                if ended:
                    return
            k += step * width


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("name", USUAL if BUDGET == 1 else NAMES)
def test_a_command_killed_at_any_call_loses_nothing_it_reported(name):
    """M214: the tape survives a crash at any moment."""
    rows = [row for call in CALLS for row in every(name, call, step(name, call))]
    print("", *rows, sep="\n")
    assert any("killed" in row for row in rows)
    assert "ended" in rows[-1]


def step(name, call):
    """Return how many k to go on: of the index's many pages, which can be dropped, only some."""
    if BUDGET > 1:
        return 1
    return 30 if call == "pwrite64" else 1 if name in EVERY else 3


if __name__ == "__main__":
    for operation in NAMES:
        for kind in CALLS:
            for line in every(operation, kind):
                print(line, flush=True)
