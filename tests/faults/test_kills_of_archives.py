"""Archiving, unpacking and the first write killed at random moments: one whole form is left.

`python tests/faults/test_kills_of_archives.py 1000` kills that many times and prints how often the
command had been done, and how often it had not.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import Busy, TapeError
from tape.index.library import open_store
from tape.store.leftovers import open_blob_shelves
from tape.store.maintenance.archive import pack_tape, unpack_tape
from tape.store.packed import PACKED_SUFFIX
from tests.faults.histories import small
from tests.faults.kills import CONTEXT, kill_at_random, measure
from tests.tape import making
from tests.tape.making import BUDGET, SHARE

pytestmark = pytest.mark.slow

KILLS = {
    name: count * BUDGET // SHARE
    for name, count in {"archive": 300, "unarchive": 150, "append": 150}.items()
}
SECRET = "what the first write says"


def archive(home: Path, identity: str) -> None:
    with open_store(home) as (store, _), store.open(identity) as tape:
        pack_tape(store, tape)


def unarchive(home: Path, identity: str) -> None:
    with open_store(home) as (store, _), store.open(identity) as tape:
        unpack_tape(store, tape)


def append(home: Path, identity: str) -> None:
    with open_store(home) as (store, _), store.open(identity) as tape:
        making.write(tape, SECRET)


COMMANDS = {"archive": archive, "unarchive": unarchive, "append": append}


def build(home: Path, name: str) -> str:
    """Make a store with a tape in the form that a command finds; return the tape's id."""
    made = small(home)
    with open_store(home) as (store, index), store.open(made.tape) as tape:
        making.write(tape, *(str(number) * 3000 for number in range(60)))
        for number in range(6):
            tape.blobs.put(random.Random(number).randbytes(90_000))
        if name != "archive":
            pack_tape(store, tape)
        assert index is not None
        index.rows(None, 0)
    return made.tape


def read_lines(home: Path, identity: str) -> list[bytes]:
    with open_store(home, index=False) as (store, _), store.open(identity) as tape:
        assert [one for one in verify(tape, Counts()) if one.level != "note"] == []
        return [line for name in tape.refs().branches for line in tape.lines(tape.head(name))]


def list_blobs(home: Path, identity: str) -> set[str]:
    with open_store(home, index=False) as (store, _), store.open(identity) as tape:
        digests = set[str]()
        for shelf in open_blob_shelves(tape.folder):
            with shelf:
                digests.update(shelf.names())
        return digests


def judge(name: str, home: Path, identity: str, before: list[bytes], blobs: set[str]) -> bool:
    """Check a store in which a command was killed; return whether the command was done."""
    lines = read_lines(home, identity)
    added = [line for line in lines if line not in before]
    assert [line for line in lines if line not in added] == before, "lost"
    assert len(added) <= 1 + (name == "append"), "double"
    assert list_blobs(home, identity) == blobs
    with open_store(home) as (store, index):
        rows = index.rows(None, None)
        assert sorted(row.id for row in rows) == sorted({row.id for row in rows})
        assert len(rows) == 2
        is_archived = next(row.archived for row in rows if row.id == identity)
        forms = [path for path in store.tapes.glob(f"[!.]*-{identity[:8]}*") if path.is_dir()]
        assert bool(forms) != is_archived or len(forms) == 1
    COMMANDS[name](home, identity)  # the same again completes it
    assert [line for line in read_lines(home, identity) if line in before] == before
    assert list_blobs(home, identity) == blobs
    left = [path.name for path in (home / "tapes").glob(f"[!.]*-{identity[:8]}*")]
    assert len(left) == 1, left
    assert left[0].endswith(PACKED_SUFFIX) == (name == "archive")
    return bool(added) or is_archived == (name == "archive")


def kill_many(name: str, top: Path, count: int, seed: int) -> Counter[bool]:
    """Kill a command so often, each time in a new copy of a store; return how it had gone."""
    choose = random.Random(seed)
    identity = build(top / "first", name)
    before, blobs = read_lines(top / "first", identity), list_blobs(top / "first", identity)
    shutil.copytree(top / "first", top / "timed")
    whole = measure(partial(COMMANDS[name], top / "timed", identity))
    done: Counter[bool] = Counter()
    for number in range(count):
        home = top / f"{number}"
        shutil.copytree(top / "first", home)
        kill_at_random(partial(COMMANDS[name], home, identity), whole, choose)
        done[judge(name, home, identity, before, blobs)] += 1
        shutil.rmtree(home)
    return done


@pytest.mark.parametrize("name", COMMANDS)
def test_one_whole_form_is_left(name, tmp_path):
    """M205: an archived tape, or one being archived, survives a kill at any point."""
    done = kill_many(name, tmp_path, KILLS[name], seed=len(name))
    assert min(done[True], done[False]) > KILLS[name] // 20, done


def toggle(home: Path, identity: str, until: float) -> None:
    with open_store(home) as (store, _):
        while time.monotonic() < until:
            try:
                with store.open(identity) as tape:
                    pack_tape(store, tape)
                with store.open(identity) as tape:
                    unpack_tape(store, tape)
            except Busy:
                continue


def write_on(home: Path, identity: str, until: float, results: Any) -> None:
    count = 0
    with open_store(home) as (store, _):
        while time.monotonic() < until:
            text = f"{os.getpid()} {count}"
            try:
                with store.open(identity) as tape, tape.writer("main", wait=True) as writer:
                    writer.append(making.say(text))
            except Busy:
                continue
            count += 1
    results.put((os.getpid(), count))


def read_on(home: Path, identity: str, until: float, results: Any) -> None:
    wrong = list[str]()
    with open_store(home) as (store, _), store.open(identity) as kept:
        known = 0
        while time.monotonic() < until:
            try:
                with store.open(identity) as tape:
                    sizes = [len(list(one.lines(one.head()))) for one in (kept, tape)]
            except (TapeError, OSError) as error:
                wrong.append(repr(error))
                continue
            if min(sizes) < known:
                wrong.append(f"{sizes} after {known}")
            known = max(known, *sizes)
    results.put(wrong[:9])


def test_readers_and_writers_beside_one_that_archives(tmp_path):
    identity = build(tmp_path / "home", "archive")
    home, until = tmp_path / "home", time.monotonic() + 15 * BUDGET
    results, seen = CONTEXT.Queue(), CONTEXT.Queue()
    processes = [
        CONTEXT.Process(target=toggle, args=(home, identity, until)),
        *(CONTEXT.Process(target=write_on, args=(home, identity, until, results)) for _ in "ab"),
        CONTEXT.Process(target=read_on, args=(home, identity, until, seen)),
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert (got := seen.get()) == [], got
    counts = results.get(), results.get()
    written = [f"{pid} {number}" for pid, count in counts for number in range(count)]
    assert written
    with open_store(home) as (store, _), store.open(identity) as tape:
        texts = making.texts(tape)
        assert [text for text in texts if text in set(written)] == texts[-len(written) :]
        assert sorted(texts[-len(written) :]) == sorted(written)
        assert [one for one in verify(tape, Counts()) if one.level != "note"] == []


def main() -> None:
    count = int(sys.argv[1])
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as top:
            done = kill_many(name, Path(top), count, seed=int(time.time()))
            sys.stdout.write(f"{name}: done {done[True]}, not done {done[False]}\n")


if __name__ == "__main__":
    main()
