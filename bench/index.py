"""The index: moves, lists, catching up, search, making it anew, and what it takes on disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import sample
from measure import MIB, Pair, Row, Scale, by_turns, peak, seconds
from reading import TYPED
from store import Bare

from tape.clock import format_timestamp, parse_timestamp
from tape.index.library import Library, list_tapes, open_store, search_entries
from tape.index.rebuild import rebuild_index
from tape.index.search import search_caught_up
from tape.model.entries import Text, User
from tape.model.line import encode_line, encode_payload
from tape.store.store import Beginning, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.store.tape import Tape

BEGINNING = Beginning("/src", "bench/1", slug="bench")
NEEDLE = "zeppelin"
RARITY = 1_000
"""One entry in so many holds the needle."""
NEW = 100
"""Entries that a writer adds before a reader catches up."""
SLOW = 5
"""Times that a slow pair is measured."""
ROUNDS = 3
"""Times that the index is made anew."""
TAPE = Path(sys.executable).parent / "tape"
WORDS = {"rare": NEEDLE, "common": "größer", "everywhere": "file"}
"""Words of a search, by how many entries they stand in."""
NOWHERE = '"def file class none data"'


def many(path: Path, tapes: int, each: int) -> tuple[Store, int]:
    """Make a store of so many tapes of so many entries unless it is there; its payload's bytes."""
    home, told = path / f"many-{tapes}x{each}", path / f"many-{tapes}x{each}.size"
    if not told.exists():
        told.write_text(str(_fill(Store(home, durable=False), tapes, each)))
    return Store(home), int(told.read_text())


def _fill(store: Store, tapes: int, each: int) -> int:
    """Write entry lines straight into the phases of new tapes; return the bytes of all payloads."""
    plain = cycle([(p.entry_type, encode_payload(p)) for p in sample.payloads(5_000)])
    needle = User.entry_type, encode_payload(User((Text(f"where is the {NEEDLE} file"),)))
    size = written = 0
    for _ in range(tapes):
        with store.create(BEGINNING) as tape:
            data = [needle if (written + k) % RARITY == 0 else next(plain) for k in range(each)]
            size += _written(store, tape, data)
            written += each
    return size


def _written(store: Store, tape: Tape, data: list[tuple[str, bytes]]) -> int:
    head = tape.head()
    parent, n, at = head.entry, head.header.n, parse_timestamp(head.header.time)
    file = store.tapes / tape.folder.name / "phases" / head.phase / "entries.jsonl"
    with file.open("ab") as out:
        for kind, payload in data:
            n, at = n + 1, at + 1
            header, line = encode_line(kind, parent, n, format_timestamp(at), payload)
            parent = header.id
            out.write(line)
    return sum(len(payload) for _, payload in data)


def index_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure a store of many tapes: 10,000 of 100 entries each, unless in a hurry."""
    tapes, each = scale.large // 10, scale.small // 10
    store, payload = many(path, tapes, each)
    return [
        *_move_rows(path, scale),
        *_made_rows(path, store, payload, tapes, each),
        *_list_rows(store, scale, tapes),
        _catching_up(store, scale),
        *_search_rows(store, scale, tapes * each),
        _phrase_row(path, scale),
    ]


def _move_rows(path: Path, scale: Scale) -> Iterator[Row]:
    """Measure moves with an index: their time against one sync, their bytes, and their growth."""
    few, many = 10, scale.small
    entry = User((Text("and now?"),))
    rounds, bare, line = min(scale.rounds, 50), Bare(path / "bare"), b"x" * 300 + b"\n"
    library = open_store(path / "moves")
    with library as (store, _), store.create(BEGINNING) as tape:
        base, names = tape.head(), count()
        folder = store.tapes / tape.folder.name

        def fork() -> float:
            return seconds(lambda: tape.fork(base, f"fork-{next(names)}"))

        def label() -> float:
            return seconds(lambda: tape.label(f"label-{next(names)}", base.entry))

        def first() -> float:
            name = tape.fork(base, f"first-{next(names)}")
            began = time.perf_counter()
            with tape.writer(name, durability="entry") as writer:
                writer.append(entry)
                return time.perf_counter() - began

        works = {"fork": fork, "label": label, "first append after a fork": first}
        pairs: dict[str, list[Pair]] = {name: [] for name in works}
        grown = 0.0
        for branches in (few, many):
            while len(tape.refs().branches) < branches:
                tape.fork(base, f"side-{next(names)}")
            for name, work in works.items():
                size = _count_bytes(store.path, folder)
                pairs[name].append(by_turns(rounds, work, lambda: bare.write([line], sync=True)))
                if name == "fork":
                    grown = (_count_bytes(store.path, folder) - size) / rounds / 1_000
    for name, (small, large) in pairs.items():
        at = f"{name} with its index, at {many:,} branches"
        yield Row(at, "write + fdatasync", large.ratio, "×", 8)
        yield Row(at, f"at {few}", large.ratio / small.ratio, "×", 1.3)
    yield Row(f"fork with its index: bytes, at {many:,} branches", "none", grown, "KB", 2)


def _count_bytes(home: Path, tape: Path) -> int:
    files = [*home.glob("index.*"), tape / "refs.jsonl"]
    return sum(file.stat().st_size for file in files if not file.name.endswith("-shm"))


def _made_rows(path: Path, store: Store, payload: int, tapes: int, each: int) -> Iterator[Row]:
    """Measure making the index anew against decoding the same bytes, its memory and its size."""
    at = f", at {tapes * each:,}"
    ratio = median(_made(store).ratio for _ in range(ROUNDS))
    yield Row(f"reindex with full text{at}", "typed decode", ratio, "×", 15)
    few, _ = many(path, max(tapes // 20, 1), each)
    high = [_peak(one) for one in (store, few)]
    yield Row(f"reindex: peak memory{at}", "at a twentieth", high[0] / high[1], "×", 1.25)
    yield Row("reindex: peak memory", "none", high[0] / MIB, "MiB", None)
    with_text, without = _sizes(path, store)
    yield Row("index: bytes without full text", "payload", without / payload, "×", 0.06)
    yield Row("index: bytes with full text", "payload", with_text / payload, "×", 0.12)
    began = time.process_time()
    rebuild_index(store)
    taken = (time.process_time() - began) / (tapes * each) * 1_000_000
    yield Row(f"reindex: CPU an entry{at}", "none", taken, "µs", 45)


def _made(store: Store) -> Pair:
    """Make the index anew; before each tape is read, time the decoding of another's lines."""
    files = iter(store.tapes.glob("*/phases/*/entries.jsonl"))
    decoded = aside = 0.0

    def decode(_done: int, _total: int) -> None:
        nonlocal decoded, aside
        began = time.perf_counter()
        data = file.read_bytes() if (file := next(files, None)) else b""
        ready = time.perf_counter()
        TYPED.decode_lines(data)
        decoded += time.perf_counter() - ready
        aside += time.perf_counter() - began

    whole = seconds(lambda: rebuild_index(store, decode))
    return Pair(whole - aside, decoded)


def _peak(store: Store) -> int:
    return peak("tape", "reindex", "--store", str(store.path))["after"]


def _sizes(path: Path, store: Store) -> tuple[int, int]:
    """Return the bytes of the index, and of one that is the same but for full text."""
    copy = path / "without.db"
    with closing(sqlite3.connect(store.path / "index.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    shutil.copyfile(store.path / "index.db", copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("DROP TABLE said")
        db.execute("DROP TABLE words")
        db.execute("VACUUM")
    return (store.path / "index.db").stat().st_size, copy.stat().st_size


def _opened(store: Store) -> Library:
    """Return the store with its index caught up, its folder as if nothing came for a while."""
    then = time.time_ns() - 10_000_000_000
    os.utime(store.tapes, ns=(then, then))
    library = open_store(store.path)
    list_tapes(*library, limit=1)
    return library


def _list_rows(store: Store, scale: Scale, tapes: int) -> Iterator[Row]:
    with _opened(store) as library:
        rounds = range(scale.rounds)
        newest = median(seconds(lambda: list_tapes(*library, limit=50)) for _ in rounds) * 1_000
        yield Row(f"newest 50 of {tapes:,} tapes", "none", newest, "ms", 2)
        pair = by_turns(
            SLOW * 2,
            lambda: seconds(lambda: list_tapes(*library)),
            lambda: seconds(lambda: _looked_at(store.tapes)),
        )
        yield Row(f"all {tapes:,} tapes", "scandir + stat", pair.ratio, "×", 1.5)


def _looked_at(folder: Path) -> list[os.stat_result]:
    with os.scandir(folder) as found:
        return [entry.stat() for entry in found]


def _catching_up(store: Store, scale: Scale) -> Row:
    """Measure a reader's catching up with a writer, whose barrier has not come yet."""
    payloads = cycle(sample.payloads(1_000))
    with _opened(store) as library, open_store(store.path) as writing:
        writing.store.durable = False
        folder = store.folders()[0]
        with writing.store.open_folder(folder) as tape, tape.writer() as writer:
            library.index.rows(None, 0)

            def caught_up() -> float:
                start = tape.head().end
                for payload in islice(payloads, NEW):
                    writer.append(payload)
                with tape.phases.open(tape.head().phase) as file:
                    new.append(file.read(start, file.size()))
                return seconds(lambda: library.index.rows(None, 0))

            new: list[bytes] = [b""]
            pair = by_turns(
                min(scale.rounds, 50),
                caught_up,
                lambda: seconds(lambda: TYPED.decode_lines(new[-1] or b"")),
            )
    return Row(f"catch-up after {NEW} entries", "typed decode", pair.ratio, "×", 20)


def _search_rows(store: Store, scale: Scale, entries: int) -> Iterator[Row]:
    grep = ["rg", "-c"] if shutil.which("rg") else ["grep", "-rc"]
    name = f"search in {entries:,} entries, top 20 of {entries // RARITY:,}"
    with _opened(store) as library:
        pair = by_turns(
            SLOW,
            lambda: _process([*grep, NEEDLE, str(store.tapes)]),
            lambda: median(seconds(lambda: search_entries(*library, NEEDLE)) for _ in range(SLOW)),
        )
    yield Row(name, f"{grep[0]} over the files", pair.ratio, "× faster", 100, at_least=True)
    for how, word in WORDS.items():
        command = [str(TAPE), "search", word, "--store", str(store.path)]
        whole = by_turns(
            min(scale.rounds, 20),
            lambda command=command: _process(command),
            lambda: _process([sys.executable, "-c", "pass"]),
        )
        name = f"search, {how} word: the whole process, at {entries:,}"
        yield Row(name, "python -c pass", whole.ratio, "×", 5.5)


def _phrase_row(path: Path, scale: Scale) -> Row:
    """Measure a phrase whose words stand in half of the entries, and nowhere together."""
    each = scale.small // 10
    store, _ = many(path, scale.large // each, each)
    files = store.tapes.glob("*/phases/*/*.jsonl")
    lines = [file.read_bytes() for file in files]
    with _opened(store):
        pair = by_turns(
            ROUNDS,
            lambda: seconds(lambda: search_caught_up(str(store.path), NOWHERE, 20)),
            lambda: seconds(lambda: [TYPED.decode_lines(data) for data in lines]),
        )
    name = f"search, a phrase that stands nowhere, its words in half of {scale.large:,}"
    return Row(name, "typed decode of all lines", pair.ratio, "×", None)


def _process(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - began
