"""Scanning: skip lines without faults fast.

Nearly all lines are such. `phases` checks the other lines in detail, each with the header of the
line before it. Parts of a phase do not depend on each other, so several processes can scan at once;
that pays only for a large tape.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from .. import line as lines
from ..clock import is_moment
from ..entries import Anchor, Branch, Redact, Repair, Start
from ..errors import TapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from ..line import Header
    from ..phase import PhaseFile, Phases

FIRST = frozenset({Start.entry_type, Branch.entry_type, Anchor.entry_type})
"""Types of the entries that phases begin with."""
BLOB = b'"$blob"'
OBJECT = ord("{")
LARGE = 64 << 20
"""Bytes of entries above which several processes are faster than one."""

_NOTED = FIRST | {Redact.entry_type, Repair.entry_type}
_PART = 8 << 20
_LOOK = 1 << 16


class Odd(NamedTuple):
    """A line that has to be checked in detail."""

    number: int
    """Line number in its part, from 1."""
    offset: int
    before: Header | None
    """Header of the line before it, if that verifies."""


class Part(NamedTuple):
    """The result of scanning a run of whole lines."""

    lines: int
    end: int
    """Offset after the last one; −1 if there is none."""
    odd: list[Odd]
    seen: set[str]
    """Those of the wanted ids that were found."""


if TYPE_CHECKING:
    Scan = Callable[[str], Iterator[Part]]
    """Maps the name of a phase to its parts in order; raises NotFound and OSError."""


def scanned(file: PhaseFile, start: int, end: int | None, wanted: Collection[str]) -> Part:
    """Scan the whole lines of a phase between two offsets at which lines begin."""
    before = _before(file, start)
    odd, seen, count, behind = [], set(), 0, -1
    for count, (offset, line) in enumerate(file.lines(start, end), 1):
        behind = offset + len(line) + 1
        header = _sound(line, before)
        if header is None:
            odd.append(Odd(count, offset, before))
            header = _header(line)
        elif header.id in wanted:
            seen.add(header.id)
        before = header
    return Part(count, behind, odd, seen)


def _before(file: PhaseFile, start: int) -> Header | None:
    return next((_header(line) for _, line in file.lines_back(start)), None)


def _header(line: bytes) -> Header | None:
    try:
        return lines.verify(line)
    except TapeError:
        return None


def _sound(line: bytes, before: Header | None) -> Header | None:
    """Return the header of a line without faults; None if the line has to be checked in detail."""
    if before is None or (b"$" in line and BLOB in line):  # searching for one byte is far faster
        return None
    header = _header(line)
    if header is None or header.type in _NOTED or line[header.data] != OBJECT:
        return None
    follows = header.parent_id == before.id and header.n == before.n + 1
    return header if follows and header.time > before.time and is_moment(header.time) else None


def _cuts(file: PhaseFile) -> Iterator[tuple[int, int | None]]:
    """Yield the bounds of parts; the last one ends at the end of the file, even if that grows."""
    start, size = 0, file.size()
    while size - start > 2 * _PART and (end := _line_start(file, start + _PART, size)):
        yield start, end
        start = end
    yield start, None


def _line_start(file: PhaseFile, offset: int, size: int) -> int:
    """Return the offset of the first line after `offset`; 0 if there is none."""
    for at in range(offset, size, _LOOK):
        cut = file.read(at, min(at + _LOOK, size)).find(b"\n")
        if cut >= 0:
            return at + cut + 1
    return 0


@contextmanager
def scanning(
    phases: Phases, names: Sequence[str], wanted: Collection[str], jobs: int
) -> Iterator[Scan]:
    """Yield a function that returns the parts of a phase, scanned by up to `jobs` processes."""

    def alone(name: str) -> Iterator[Part]:
        with phases.open(name) as file:
            for start, end in _cuts(file):
                yield scanned(file, start, end, wanted)

    bounds = _bounds(phases, names) if jobs > 1 else {}
    if not bounds:
        yield alone
        return
    with _processes(phases, wanted, jobs, bounds) as parts:
        yield parts


def _bounds(phases: Phases, names: Sequence[str]) -> dict[str, list[tuple[int, int | None]]]:
    """Return the bounds of the parts of each phase; empty if processes do not pay."""
    bounds, size = {}, 0
    for name in names:
        try:
            with phases.open(name) as file:
                bounds[name] = list(_cuts(file))
                size += file.size()
        except (TapeError, OSError):
            bounds[name] = [(0, None)]  # reported when it is scanned
    return bounds if size > LARGE else {}


@contextmanager
def _processes(
    phases: Phases,
    wanted: Collection[str],
    jobs: int,
    bounds: Mapping[str, Sequence[tuple[int, int | None]]],
) -> Iterator[Scan]:
    """Scan with processes that share the open folder: they are forked from this one."""
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 (large tapes alone pay)
    from multiprocessing import get_context  # noqa: PLC0415 (the same)

    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("fork"), initializer=_begin, initargs=(phases, wanted)
    )
    try:
        todo: dict[str, list[Future[Part]]] = {
            name: [pool.submit(_in_process, name, *bound) for bound in some]
            for name, some in bounds.items()
        }

        def parts(name: str) -> Iterator[Part]:
            for future in todo.pop(name):
                yield future.result()

        yield parts
    finally:
        pool.shutdown(cancel_futures=True)


_MINE: tuple[Phases, Collection[str]] | None = None
"""The state of a scanning process: what it was forked with."""


def _begin(phases: Phases, wanted: Collection[str]) -> None:
    import signal  # noqa: PLC0415 (in such a process alone)

    global _MINE  # noqa: PLW0603 (a process of a pool has no other way)
    _MINE = phases, wanted
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles interrupts


def _in_process(name: str, start: int, end: int | None) -> Part:
    assert _MINE is not None
    phases, wanted = _MINE
    with phases.open(name) as file:
        return scanned(file, start, end, wanted)


def processors() -> int:
    """Return the default number of processes: one per processor, at most four."""
    import multiprocessing  # noqa: PLC0415 (asked for by the command line alone)

    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return min(os.cpu_count() or 1, 4)
