"""Scanning: lines without faults are skipped fast, the others left to `verify`.

Nearly all lines have none. Each other line is returned with the header of the line before it. Parts
of a phase do not depend on each other, so several processes can scan at once; that pays only for a
large tape.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ..clock import is_valid_timestamp
from ..errors import TapeError
from ..model import line as lines
from ..model.entries import Anchor, Branch, Redact, Repair, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from ..model.line import Header
    from ..store.phase import PhaseFile, Phases

FIRST_TYPES = frozenset({Start.entry_type, Branch.entry_type, Anchor.entry_type})
"""Types of the entries that phases begin with."""
BLOB_KEY = b'"$blob"'
OBJECT_START = ord("{")
LARGE_BYTES = 64 << 20
"""Bytes of entries above which several processes are faster than one."""

_NOTED_TYPES = FIRST_TYPES | {Redact.entry_type, Repair.entry_type}
_PART_BYTES = 8 << 20
_LOOK_BYTES = 1 << 16


class OddLine(NamedTuple):
    """A line that has to be checked in detail."""

    number: int
    """Line number in its part, from 1."""
    offset: int
    before: Header | None
    """Header of the line before it, if that verifies."""


class ScanPart(NamedTuple):
    """The result of scanning a run of whole lines."""

    lines: int
    end: int
    """Offset after the last one; −1 if there is none."""
    odd: list[OddLine]
    seen: set[str]
    """Those of the wanted ids that were found."""


if TYPE_CHECKING:
    ScanPhase = Callable[[str], Iterator[ScanPart]]
    """Maps the name of a phase to its parts in order; raises NotFound and OSError."""


def scan_lines(file: PhaseFile, start: int, end: int | None, ids: Collection[str]) -> ScanPart:
    """Scan the whole lines of a phase between two offsets at which lines begin."""
    before = next((_verify_header(line) for _, line in file.read_lines_back(start)), None)
    odd, seen, count, behind = [], set(), 0, -1
    for count, (offset, line) in enumerate(file.lines(start, end), 1):
        behind = offset + len(line) + 1
        header = _verify_sound_line(line, before)
        if header is None:
            odd.append(OddLine(count, offset, before))
            header = _verify_header(line)
        elif header.id in ids:
            seen.add(header.id)
        before = header
    return ScanPart(count, behind, odd, seen)


def _verify_header(line: bytes) -> Header | None:
    try:
        return lines.verify_line(line)
    except TapeError:
        return None


def _verify_sound_line(line: bytes, before: Header | None) -> Header | None:
    """Return the header of a line without faults; None if the line has to be checked in detail."""
    if before is None or (
        b"$" in line and BLOB_KEY in line
    ):  # searching for one byte is far faster
        return None
    header = _verify_header(line)
    if header is None or header.type in _NOTED_TYPES or line[header.data] != OBJECT_START:
        return None
    follows = header.parent_id == before.id and header.n == before.n + 1
    return (
        header
        if follows and header.time > before.time and is_valid_timestamp(header.time)
        else None
    )


def _split_parts(file: PhaseFile) -> Iterator[tuple[int, int | None]]:
    """Yield the bounds of parts; the last one ends at the end of the file, even if that grows."""
    start, size = 0, file.size()
    while size - start > 2 * _PART_BYTES:
        end = 0
        for at in range(start + _PART_BYTES, size, _LOOK_BYTES):
            cut = file.read(at, min(at + _LOOK_BYTES, size)).find(b"\n")
            if cut >= 0:
                end = at + cut + 1
                break
        if not end:
            break
        yield start, end
        start = end
    yield start, None


@contextmanager
def open_scan(
    phases: Phases, names: Sequence[str], ids: Collection[str], jobs: int
) -> Iterator[ScanPhase]:
    """Yield a function that returns the parts of a phase, scanned by up to `jobs` processes."""

    def alone(name: str) -> Iterator[ScanPart]:
        with phases.open(name) as file:
            for start, end in _split_parts(file):
                yield scan_lines(file, start, end, ids)

    bounds, size = {}, 0
    for name in names if jobs > 1 else ():
        try:
            with phases.open(name) as file:
                bounds[name] = list(_split_parts(file))
                size += file.size()
        except (TapeError, OSError):
            bounds[name] = [(0, None)]  # reported when it is scanned
    if size <= LARGE_BYTES:
        yield alone
        return
    with _scan_in_processes(phases, ids, jobs, bounds) as parts:
        yield parts


@contextmanager
def _scan_in_processes(
    phases: Phases,
    ids: Collection[str],
    jobs: int,
    bounds: Mapping[str, Sequence[tuple[int, int | None]]],
) -> Iterator[ScanPhase]:
    """Scan with processes that share the open folder: they are forked from this one."""
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 (large tapes alone pay)
    from multiprocessing import get_context  # noqa: PLC0415 (the same)

    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("fork"), initializer=_start_process, initargs=(phases, ids)
    )
    try:
        todo: dict[str, list[Future[ScanPart]]] = {
            name: [pool.submit(_scan_part, name, *bound) for bound in some]
            for name, some in bounds.items()
        }

        def parts(name: str) -> Iterator[ScanPart]:
            for future in todo.pop(name):
                yield future.result()

        yield parts
    finally:
        pool.shutdown(cancel_futures=True)


_FORKED_WITH: tuple[Phases, Collection[str]] | None = None
"""The state of a scanning process: what it was forked with."""


def _start_process(phases: Phases, ids: Collection[str]) -> None:
    import signal  # noqa: PLC0415 (in such a process alone)

    global _FORKED_WITH  # noqa: PLW0603 (a process of a pool has no other way)
    _FORKED_WITH = phases, ids
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles interrupts


def _scan_part(name: str, start: int, end: int | None) -> ScanPart:
    assert _FORKED_WITH is not None
    phases, ids = _FORKED_WITH
    with phases.open(name) as file:
        return scan_lines(file, start, end, ids)


def count_processors() -> int:
    """Return the default number of processes: one per processor, at most four."""
    import multiprocessing  # noqa: PLC0415 (asked for by the command line alone)

    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return min(os.cpu_count() or 1, 4)
