"""Writing: appends and barriers, fork and the first append after it, bytes on disk."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from itertools import count, cycle, islice
from random import Random
from statistics import median
from typing import TYPE_CHECKING

import sample
from measure import Pair, Row, Scale, by_turns

from tape.index.library import open_store
from tape.model.entries import Anchor, Text, User
from tape.store.store import Beginning, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tape.model.entries import Payload
    from tape.store.tape import Tape
    from tape.store.writer import Writer

BEGINNING = Beginning("/src", "bench/1", slug="bench")
SLOW_SYNC = 0.000_3
"""Seconds of a sync from which on the sterner target of an append holds."""
LONG_TEXT = 100_000
"""Characters of a text that is stored as a blob."""
GROUP = 50
"""Appends timed at once inside a barrier group."""

FORKS = 12
"""Forks of one tape: so few that its journal stays as short as people's are."""


class Bare:
    """A file that gets the same lines with nothing but write and fdatasync."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, lines: list[bytes], *, sync: bool) -> float:
        began = time.perf_counter()
        for line in lines:
            os.write(self._fd, line)
        if sync:
            os.fdatasync(self._fd)
        return time.perf_counter() - began


class Samples:
    """Payloads and their lines, handed out in groups, over and over."""

    def __init__(self, size: int) -> None:
        made = sample.payloads(1_000)
        self._ours, self._bare = cycle(made), cycle(sample.lines(made))
        self._size = size

    def payloads(self) -> list[Payload]:
        return list(islice(self._ours, self._size))

    def lines(self) -> list[bytes]:
        return list(islice(self._bare, self._size))


def built(path: Path, entries: int) -> tuple[Store, str]:
    """Make a tape of so many entries behind its start, unsynced, unless it is there."""
    home = path / f"store-{entries}"
    store = Store(home)
    if not home.exists():
        with Store(home, durable=False).create(BEGINNING) as tape, tape.writer() as writer:
            for payload in sample.payloads(entries):
                writer.append(payload)
        os.sync()
    (folder,) = store.folders()
    return store, folder


def compacted(path: Path, entries: int, live: int) -> tuple[Store, str]:
    """Make a tape with an anchor before every `live` entries, unsynced, unless it is there."""
    home = path / f"compacted-{entries}"
    if not home.exists():
        anchor = Anchor(kind="compaction", summary="what was done")
        with Store(home, durable=False).create(BEGINNING) as tape, tape.writer() as writer:
            for place, payload in enumerate(sample.payloads(entries)):
                if place % live == 0:
                    writer.anchor(anchor)
                writer.append(payload)
        os.sync()
    store = Store(home)
    (folder,) = store.folders()
    return store, folder


def appended(writer: Writer, payloads: list[Payload], *, barrier: bool) -> float:
    began = time.perf_counter()
    for payload in payloads:
        writer.append(payload)
    if barrier:
        writer.barrier()
    return time.perf_counter() - began


def sync_seconds(path: Path, rounds: int) -> float:
    """Return the median of a write of 1 KB with its fdatasync."""
    bare = Bare(path / "sync")
    return median(bare.write([b"x" * 1_000], sync=True) for _ in range(rounds))


@contextmanager
def _writers(path: Path, name: str, *, index: bool = False, **kind: str) -> Iterator[Writer]:
    library = open_store(path / name, index=index)
    with library as (store, _), store.create(BEGINNING) as tape, tape.writer(**kind) as writer:
        yield writer


def _against_bare(
    path: Path, writer: Writer, scale: Scale, size: int, *, sync: bool, each: bool = False
) -> Pair:
    """Time groups of appends against bare writes; `each` when the writer syncs by itself."""
    bare, samples = Bare(path / "bare"), Samples(size)
    return by_turns(
        scale.rounds,
        lambda: appended(writer, samples.payloads(), barrier=sync and not each),
        lambda: bare.write(samples.lines(), sync=sync),
    )


def entry_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure appends that are each durable when they return, without and with an index."""
    slow = sync_seconds(path, scale.rounds) > SLOW_SYNC
    rows = []
    for index in (False, True):
        name = "append, durability entry" + (", with its index" if index else "")
        with _writers(path, f"entry-{index}", index=index, durability="entry") as writer:
            pair = _against_bare(path, writer, scale, 1, sync=True, each=True)
        rows.append(Row(name, "write + fdatasync", pair.ratio, "×", 1.15 if slow else 1.25))
    return rows


def blob_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure appends of entries with a long text, which is stored as a blob."""
    words = sample.Words(Random(sample.SEED))
    bare = Bare(path / "bare-blob")
    rows = []
    for name, times, target in (("100 KB", 1, 3), ("1 MB", 10, 5)):

        def make_text(times: int = times) -> str:
            return "".join(words.text(LONG_TEXT) for _ in range(times))

        with _writers(path, f"blob-{times}", durability="entry") as writer:

            def append(writer: Writer = writer, make_text: Callable[[], str] = make_text) -> float:
                return appended(writer, [User((Text(text=make_text()),))], barrier=False)

            def write(make_text: Callable[[], str] = make_text) -> float:
                return bare.write([make_text().encode()], sync=True)

            pair = by_turns(scale.rounds // times, append, write)
        shown = f"append of {name}, durability entry"
        rows.append(Row(shown, "write + fdatasync", pair.ratio, "×", target))
    return rows


def group_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure appends that no barrier follows, to a short and to a long tape."""
    rows = []
    for entries in (scale.small, scale.large):
        store, folder = built(path, entries)
        with store.open_folder(folder) as tape, tape.writer() as writer:
            pair = _against_bare(path, writer, scale, GROUP, sync=False)
        name = f"append inside a barrier group, at {entries:,}"
        rows.append(Row(name, "write", pair.ratio, "×", 5))
    return rows


def barrier_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure ten appends and a barrier."""
    with _writers(path, "barrier") as writer:
        pair = _against_bare(path, writer, scale, 10, sync=True)
    return [Row("ten entries under one barrier", "ten writes + fdatasync", pair.ratio, "×", 1.4)]


def fork_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure a fork at the head and the first append after it: time and bytes."""
    return [row for entries in (10, scale.large) for row in _forks(path, scale, entries)]


def _forks(path: Path, scale: Scale, entries: int) -> Iterator[Row]:
    store, folder = built(path, entries)
    bare, names = Bare(path / "bare"), map("fork-{}".format, count(1))
    line = [b"x" * 300 + b"\n"]
    made: list[str] = []
    rounds = min(scale.rounds, FORKS)
    with store.open_folder(folder) as tape:
        first = _bytes(store.tapes / folder)
        forked = by_turns(
            rounds,
            lambda: _forked(tape, next(names), made),
            lambda: bare.write(line, sync=True),
        )
        then = _bytes(store.tapes / folder)
        left = iter(made)
        begun = by_turns(
            rounds, lambda: _first(tape, next(left)), lambda: bare.write(line, sync=True)
        )
        end = _bytes(store.tapes / folder)
    at = f", at {entries:,}"
    yield Row(f"fork{at}", "fdatasync", forked.ratio, "×", 3)
    yield Row(f"fork: bytes{at}", "none", (then - first) / rounds / 1_000, "KB", 1)
    yield Row(f"first append after a fork{at}", "fdatasync", begun.ratio, "×", 8)
    bytes_each = (end - then) / rounds / 1_000
    yield Row(f"first append after a fork: bytes{at}", "none", bytes_each, "KB", 4)


def _forked(tape: Tape, name: str, made: list[str]) -> float:
    began = time.perf_counter()
    made.append(tape.fork(tape.head("main"), name))
    return time.perf_counter() - began


def _first(tape: Tape, branch: str) -> float:
    """Open a writer on a new branch and append; closing it is not timed."""
    payload = sample.payloads(1)[0]
    began = time.perf_counter()
    with tape.writer(branch, durability="entry") as writer:
        writer.append(payload)
        return time.perf_counter() - began


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def disk_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure what a tape takes beside what was said, all of its files together."""
    rows = []
    for entries in (scale.small, scale.large):
        store, folder = built(path, entries)
        beyond = _bytes(store.tapes / folder) - sample.size(sample.payloads(entries))
        name = f"bytes on disk beyond payload, at {entries:,}"
        rows.append(Row(name, "payload", beyond / entries, "B/entry", 260))
    return rows
