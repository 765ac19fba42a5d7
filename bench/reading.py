"""Reading: from opening a tape to a sendable view, verify, and the memory of the verbs."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Union

import msgspec
import sample
import startup
from measure import MIB, Row, Scale, by_turns, peak, seconds
from store import BEGINNING, built, compacted

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.context.repair import build_messages
from tape.context.view import Target
from tape.model.entries import Text, User
from tape.model.line import list_entry_classes
from tape.store.path import forget_checked_runs
from tape.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.context.repair import ModelInput
    from tape.store.tape import Tape

TARGET = Target(sample.ENDPOINT, sample.API, sample.MODEL)
TYPED = msgspec.json.Decoder(Union[list_entry_classes()])  # noqa: UP007 (a tuple)
"""Decodes lines into the same Structs as the store, and does nothing else."""

SLOW = 7
"""Rounds of what takes long."""
BLOB = 70_000
"""Bytes of a text that leaves its entry for a blob."""


@contextmanager
def opened(home: str, folder: str) -> Iterator[Tape]:
    with Store(Path(home)).open_folder(folder) as tape:
        yield tape


def verified(tape: Tape, jobs: int = 1) -> Counts:
    counts = Counts()
    assert not list(verify(tape, counts, jobs=jobs))
    return counts


def _viewed(store: Store, folder: str) -> ModelInput:
    with store.open_folder(folder) as tape:
        return build_messages(tape, tape.head(), TARGET)


def _file(store: Store, folder: str) -> Path:
    (file,) = (store.tapes / folder).glob("phases/*/entries.jsonl")
    return file


def view_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure opening a tape up to its sendable view, against decoding its bytes alone."""
    rows = []
    for entries in scale.views:
        store, folder = built(path, entries)
        target = 2.5 if entries < 1_000 else 1.5
        rows.append(_view_row(store, folder, f"open to view, at {entries:,}", target))
        name = f"open to view, first in a process, at {entries:,}"
        rows.append(_view_row(store, folder, name, 2 * target, first=True))
    return [*rows, *_blob_rows(path, scale), *_memory_rows(path, scale), _compacted(path, scale)]


def _view_row(store: Store, folder: str, name: str, target: float, *, first: bool = False) -> Row:
    """Measure a tape that this process has read before, or with `first` one it has not."""

    def viewed() -> float:
        if first:
            forget_checked_runs()
        return seconds(lambda: _viewed(store, folder))

    data = b"".join(
        line + b"\n"
        for line in _file(store, folder).read_bytes().split(b"\n")
        if line and b'"$blob"' not in line  # what the typed decoder cannot read
    )
    rounds = max(SLOW, min(200, 20_000_000 // len(data)))
    pair = by_turns(
        rounds,
        viewed,
        lambda: seconds(lambda: TYPED.decode_lines(data)),
    )
    return Row(name, "typed decode", pair.ratio, "×", target)


def _blob_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure a session in which one text stands in a blob."""
    entries = scale.small * 10
    home = path / "with-blob"
    with Store(home, durable=False).create(BEGINNING) as tape, tape.writer() as writer:
        for at, payload in enumerate(sample.payloads(entries)):
            writer.append(payload)
            if at == entries // 2:
                writer.append(User((Text(text="x" * BLOB),)))
    (folder,) = Store(home).folders()
    name = f"open to view, at {entries:,} with one blob"
    return [_view_row(Store(home), folder, name, 1.5)]


def _memory_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure the peak of a fresh process above what it had before it opened the tape."""
    store, folder = built(path, scale.large)
    taken = peak("open", str(store.path), folder)
    figure = (taken["after"] - taken["before"]) / _file(store, folder).stat().st_size
    name = f"open to view: peak memory, at {scale.large:,}"
    return [Row(name, "the file's size", figure, "×", 1.8, note="VmHWM of a fresh process")]


def typed_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure reading all entries of a long session, checked, and the memory of that."""
    store, folder = built(path, scale.large)
    file = _file(store, folder)

    def typed() -> float:
        forget_checked_runs()
        with store.open_folder(folder) as tape:
            return seconds(lambda: tape.entries(tape.head()))

    data = file.read_bytes()
    pair = by_turns(SLOW, typed, lambda: seconds(lambda: TYPED.decode_lines(data)))
    taken = peak("entries", str(store.path), folder)
    figure = (taken["after"] - taken["before"]) / file.stat().st_size
    name = f"read all entries, at {scale.large:,}"
    return [
        Row(name, "typed decode", pair.ratio, "×", 1.15),
        Row(f"{name}: peak memory", "the file's size", figure, "×", 1.6),
    ]


_READ = """
import sys
from pathlib import Path
from tape.store.store import Store
with Store(Path(sys.argv[1])).open_folder(sys.argv[2]) as tape:
    tape.entries(tape.head())
"""
"""A program that reads all entries of a tape, checked, and does nothing with them."""


def show_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure a whole session shown to people and programs, as processes."""
    store, folder = built(path, scale.large)
    identity = store.open_folder(folder).id
    home = ["--store", str(store.path)]
    read = [sys.executable, "-c", _READ, str(store.path), folder]
    rows = []
    for words in (["cat"], ["log", "--json"]):
        command = [str(startup.BIN / "tape"), *home, *words, identity]
        pair = by_turns(
            SLOW,
            lambda command=command: startup.seconds(command, str(path)),
            lambda: startup.seconds(read, str(path)),
        )
        shown = f"tape {' '.join(words)}, at {scale.large:,}"
        note = "processor time"
        rows.append(Row(shown, "all entries read, checked", pair.ratio, "×", 1.6, note=note))
    return [*rows, _context_row(store, folder, [*home, identity], scale)]


def _context_row(store: Store, folder: str, which: list[str], scale: Scale) -> Row:
    data = _file(store, folder).read_bytes()
    gong, model = str(startup.BIN / "gong"), ["-m", "anthropic/claude-sonnet-4-5"]
    pair = by_turns(
        3,
        lambda: seconds(
            lambda: subprocess.run(
                [gong, "context", *model, *which],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=True,
            )
        ),
        lambda: seconds(lambda: TYPED.decode_lines(data)),
    )
    name = f"gong context, at {scale.large:,}"
    return Row(name, "typed decode", pair.ratio, "×", 6.7, note="a process")


def _compacted(path: Path, scale: Scale) -> Row:
    """Open a long session compacted all along, against a short one with as much in view."""
    long = compacted(path, scale.large, scale.small)
    short = compacted(path, scale.small, scale.small)
    pair = by_turns(
        SLOW * 3,
        lambda: seconds(lambda: _viewed(*long)),
        lambda: seconds(lambda: _viewed(*short)),
    )
    name = f"open to view, compacted, at {scale.large:,}"
    return Row(name, f"the same at {scale.small:,}", pair.ratio, "×", 1.5)


RESUMED, NESTED = 10.0, 200
"""Milliseconds of a resume; how deep branches are nested."""


def resumed_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure what the library does before the first request: processor time, flat in size.

    Opened, locked, and folded up to the sendable view: a session compacted all along, and one whose
    branches are forked from one another.
    """
    long, short = (compacted(path, entries, scale.small) for entries in (scale.large, scale.small))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(SLOW * 3):
        times[0].append(_resume(*long))
        times[1].append(_resume(*short))
    name = f"resumed in the library, compacted, at {scale.large:,}"
    deep, flat = (_make_nested(path, depth, scale.small) for depth in (NESTED, 1))
    nested = by_turns(SLOW * 3, lambda: _resume(*deep), lambda: _resume(*flat))
    return [
        Row(name, "none", median(times[0]) * 1_000, "ms", RESUMED, note="processor time"),
        Row(name, f"at {scale.small:,}", median(times[0]) / median(times[1]), "×", 1.3),
        Row(
            f"view of branches nested {NESTED} deep", "as many entries in one", nested.ratio, "×", 2
        ),
    ]


def _resume(store: Store, folder: str) -> float:
    forget_checked_runs()
    began = time.process_time()
    with store.open_folder(folder) as tape, tape.writer():
        build_messages(tape, tape.head(), TARGET)
        return time.process_time() - began


def _make_nested(path: Path, depth: int, entries: int) -> tuple[Store, str]:
    """Make a tape of branches, each forked from the head of the one before."""
    home, payloads = path / f"nested-{depth}", iter(sample.payloads(entries))
    with Store(home, durable=False).create(BEGINNING) as tape:
        for level in range(depth):
            if level:
                tape.fork(tape.head(), f"level-{level}", switch=True)
            with tape.writer() as writer:
                for payload in islice(payloads, entries // depth):
                    writer.append(payload)
    (folder,) = Store(home).folders()
    return Store(home), folder


def verify_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure verify against hashing the same bytes once, and whether its memory grows."""
    store, folder = built(path, scale.large)
    data = _file(store, folder).read_bytes()
    with store.open_folder(folder) as tape:
        pair = by_turns(
            SLOW,
            lambda: seconds(lambda: verified(tape)),
            lambda: seconds(lambda: sha256(data).digest()),
        )
        both = by_turns(
            SLOW,
            lambda: seconds(lambda: verified(tape, 2)),
            lambda: seconds(lambda: verified(tape)),
        )
    high = [
        peak("verify", str(made.path), name)["after"]
        for made, name in (built(path, scale.small), (store, folder))
    ]
    return [
        Row("verify: throughput", "SHA-256", 1 / pair.ratio, "×", 0.2, at_least=True),
        Row("verify: throughput of two jobs", "one", 1 / both.ratio, "×", 1.4, at_least=True),
        Row(
            f"verify: memory, at {scale.large:,}",
            f"its memory at {scale.small:,}",
            high[1] / high[0],
            "×",
            1.1,
            note="VmHWM of a fresh process",
        ),
    ]


def stream_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure the peak of each streaming verb above that of the interpreter alone."""
    store, folder = built(path, scale.large)
    bare = peak()["after"]
    rows = []
    for verb in (["log", "--json"], ["cat"], ["verify"]):
        taken = peak("tape", "--store", str(store.path), verb[0], folder, *verb[1:])
        name = f"tape {' '.join(verb)}: memory above, at {scale.large:,}"
        rows.append(Row(name, "the interpreter", (taken["after"] - bare) / MIB, "MiB", 40))
    return rows
