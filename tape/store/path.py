"""The path from an entry back to the root, and the lines on it that can be trusted (tape.md §6).

A path is a chain of segments; a segment is the part of one phase file that is on the path. Each
phase names its base, the entry before its first one, and so leads to the next segment:

    walk_segments_back:  0003-try (head) → base in 0002-main → base in 0001-main-start → no base
                         start.origin    → base in the origin tape, or in its copy 0000-origin

Checked reading yields only lines whose hashes match and that follow one from the other. All others
are left out and reported, one text each, so that changed bytes are never taken for what was
written. What a `LineChecker` does with a line, after a good line L and k damaged ones:

| the line | result | L, k after it |
|---|---|---|
| its id does not match | left out | L, k + 1 |
| its depth n is not beyond that of L | left out: repeated or out of order | L, k |
| its parent is not L, or its n is not that of L + k + 1 | read; a gap is reported | it, 0 |
| its data does not match | left out, or read as blank if a redact entry names it | it, 0 |
| all matches | read | it, 0 |
"""

from __future__ import annotations

from functools import partial
from io import BytesIO
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Damaged, NewerFormat, NotFound, TapeError
from ..model.entries import Anchor, Branch, Place, Start
from ..model.line import (
    Entry,
    Header,
    blank_redacted_data,
    decode_lines,
    describe_missing_blob,
    has_valid_data,
    has_valid_links,
    is_data_redacted,
    read_header,
    read_id,
    read_parent_id,
    read_type,
)
from .phase import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from ..model.entries import BlobRef
    from .phase import Phases


FSCK_ADVICE = "`tape fsck` explains it"
_held: set[int] = set()
"""Digests of the runs whose lines this process has verified."""
_MAX_HELD = 1 << 15
"""How many runs are remembered: 4 GB of entries in 3 MB."""


def forget_checked_runs() -> None:
    """Forget the verified runs, so that everything is checked again; used by benchmarks."""
    _held.clear()


class LineChecker:
    """Checks the lines of one phase file, read in one direction.

    `redacted` returns the ids that redact entries of the tape name; it is called only where data
    does not match its hash. Lines that are left out are reported to `skipped`.
    """

    __slots__ = ("_damaged", "_ids", "_last", "_phase", "_redacted", "_skipped", "_way")

    def __init__(
        self,
        phase: str,
        redacted: Callable[[], AbstractSet[str]],
        skipped: Callable[[str], None],
        *,
        back: bool = False,
    ) -> None:
        self._phase, self._redacted, self._skipped = phase, redacted, skipped
        self._way = -1 if back else 1
        self._ids: AbstractSet[str] | None = None
        self._last: Header | None = None
        self._damaged = 0

    def read_run(self, start: int, data: bytes) -> tuple[bytes, Iterator[tuple[int, bytes]] | None]:
        """Return a run of whole lines as it is, or else an iterator of its checked lines.

        The iterator is None if all lines verify, as nearly always. Else it checks each line when it
        is requested, so that its report comes between those of the lines around it.
        """
        is_next = self._last is None or read_parent_id(data) == self._last.id
        # After a damaged line the count of depths decides what follows, which only `read` keeps.
        if not self._damaged and is_next and _is_valid_run(data):
            self._last = read_header(data[data.rfind(b"\n", 0, -1) + 1 :].removesuffix(b"\n"))
            return data, None
        return b"", select_checked_lines(_split_run(start, data), self)

    def read(self, offset: int, line: bytes) -> bytes | None:
        """Return a verified line; None if it is left out.

        Raises NewerFormat or OlderFormat for a line of another format.
        """
        try:
            header = read_header(line)
        except NewerFormat as error:
            raise NewerFormat(f"{self._phase}: {error}") from error
        except Damaged as error:
            # Its id is unknown, so the next line cannot name it as parent: counted instead.
            self._damaged += 1
            self._report_line(offset, line, str(error))
            return None
        # A line that was copied to another place still has valid hashes: its depth gives it away.
        if self._last is not None and (header.n - self._last.n) * self._way <= 0:
            self._report_line(offset, line, "it is repeated or out of order")
            return None
        # What follows a gap is still as it was written, so it is read, with a report of the gap.
        if not self._is_next_line(header):
            later = header if self._way > 0 else self._last or header
            self._skipped(
                f"{self._phase}: near byte {offset}: entry {later.id[:12]} does not follow from "
                f"the one before it: lines are missing or were inserted; {FSCK_ADVICE}"
            )
        self._last, self._damaged = header, 0
        if has_valid_data(line, header):
            return line
        if self._ids is None:
            self._ids = self._redacted()
        # If a redact entry names it, its data was overwritten on purpose: the entry stays, blank.
        if header.id not in self._ids:
            self._report_line(offset, line, "its data does not match its hash")
            return None
        return line if is_data_redacted(line, header) else blank_redacted_data(line, self._ids)

    def _is_next_line(self, header: Header) -> bool:
        """Return whether no line is missing between the last good line and this one."""
        last = self._last
        if last is None:
            return True
        if self._damaged:
            return (header.n - last.n) * self._way == self._damaged + 1
        earlier, later = (last, header) if self._way > 0 else (header, last)
        return later.parent_id == earlier.id

    def _report_line(self, offset: int, line: bytes, why: str) -> None:
        entry = read_id(line)[:12]
        place = f"{self._phase}: line at byte {offset} skipped"
        self._skipped(f"{place}: entry {entry}: {why}; {FSCK_ADVICE}")


def _is_valid_run(data: bytes) -> bool:
    """Return whether both hashes of each line of a run match, and each follows the one before.

    The result is remembered by the bytes, not by their place: a file that changed in any way, also
    on the medium, gives other bytes, which are checked again.
    """
    key = hash(data)  # keyed by a random number per process; takes a tenth of the time of a check
    if key in _held:
        return True
    lines = BytesIO(data).readlines()
    first = lines[0].removesuffix(b"\n")
    try:
        header = read_header(first)
    except TapeError:
        return False
    if not has_valid_data(first, header) or not has_valid_links(lines[1:], header.id):
        return False
    if len(_held) >= _MAX_HELD:
        _held.clear()
    _held.add(key)
    return True


def _split_run(start: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield offset and line, without its newline, of a run of lines at `start`."""
    for line in BytesIO(data).readlines():
        yield start, line.removesuffix(b"\n")
        start += len(line)


def select_checked_lines(
    lines: Iterator[tuple[int, bytes]], check: LineChecker
) -> Iterator[tuple[int, bytes]]:
    """Yield offset and line of the lines in `lines` that pass the check."""
    for offset, line in lines:
        checked = check.read(offset, line)
        if checked is not None:
            yield offset, checked


def select_checked_runs(
    runs: Iterator[tuple[int, bytes]], check: LineChecker
) -> Iterator[tuple[int, bytes]]:
    """Yield offset and bytes of the lines in `runs` that pass the check, as many as are together.

    Each run is of whole lines, and so is what is yielded.
    """
    for start, data in runs:
        lines = data[: data.rfind(b"\n") + 1]
        if lines:
            whole, single = check.read_run(start, lines)
            if single is None:
                yield start, whole
            else:
                yield from ((offset, line + b"\n") for offset, line in single)


def split_runs(runs: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield offset and line, without its newline, of the lines in runs."""
    for start, data in runs:
        yield from _split_run(start, data)


class Source(NamedTuple):
    """The phases and blobs of one tape."""

    tape: str
    phases: Phases
    expand: Callable[[BlobRef], str]


class Segment(NamedTuple):
    """The bytes of a phase file from `start` up to `end`: the part that is on a path."""

    source: Source
    phase: str
    end: int
    start: int = 0
    """0, except in a copied past that is read from its newest anchor on."""

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) oldest first."""
        with self.source.phases.open(self.phase) as file:
            yield from file.lines(self.start, self.end)

    def find_entries_back(
        self, types: AbstractSet[str], skipped: Callable[[str], None]
    ) -> Iterator[Entry]:
        """Yield the entries of these types newest first; report those that do not verify.

        No line of another type is checked or decoded.
        """
        marks = [b'"type":"%s"' % name.encode() for name in types]
        with self.source.phases.open(self.phase) as file:
            lines = [
                place
                for start, run in file.read_runs(self.start, self.end)
                if any(mark in run for mark in marks)
                for place in _split_run(start, run)
                if read_type(place[1]) in types
            ]
        for offset, line in reversed(lines):
            checked = self._build_checker(skipped).read(offset, line)
            if checked is not None:
                tell = partial(self._report_undecodable, skipped, offset)
                yield from decode_lines(checked, self.source.expand, tell)

    def read_checked_lines(self, skipped: Callable[[str], None]) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) of lines that verify, oldest first; report others to `skipped`."""
        return split_runs(self.read_checked_runs(skipped))

    def read_checked_runs(self, skipped: Callable[[str], None]) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, bytes) of the lines of `read_checked_lines`, many whole ones at a time."""
        with self.source.phases.open(self.phase) as file:
            yield from select_checked_runs(
                file.read_runs(self.start, self.end), self._build_checker(skipped)
            )

    def read_checked_lines_back(
        self, skipped: Callable[[str], None]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of `read_checked_lines` newest first."""
        with self.source.phases.open(self.phase) as file:
            back = takewhile(lambda place: place[0] >= self.start, file.read_lines_back(self.end))
            yield from select_checked_lines(back, self._build_checker(skipped, back=True))

    def _build_checker(self, skipped: Callable[[str], None], *, back: bool = False) -> LineChecker:
        return LineChecker(self.phase, self.source.phases.read_redacted_ids, skipped, back=back)

    def read_runs(self, skipped: Callable[[str], None]) -> Iterator[list[Entry]]:
        """Yield its entries, many at a time; report those that do not verify to `skipped`."""
        for start, lines in self.read_checked_runs(skipped):
            tell = partial(self._report_undecodable, skipped, start)
            yield decode_lines(lines, self.source.expand, tell)

    def entries(self, skipped: Callable[[str], None]) -> list[Entry]:
        """Return the entries of `read_runs` as a list."""
        entries: list[Entry] = []
        for run in self.read_runs(skipped):
            entries += run
        return entries

    def _report_undecodable(
        self, skipped: Callable[[str], None], start: int, offset: int, error: Damaged
    ) -> None:
        skipped(f"{self.phase}: line at byte {start + offset} skipped: {error}")


def read_base(entry: Entry) -> Place | None:
    """Return the place of the parent of a phase's first entry; None at a root."""
    match entry.data:
        case Branch(base=base) | Anchor(base=base):
            return base
        case Start(origin=origin):
            return origin
    raise Damaged(f"a phase begins with {entry.type}, which has no base")


def walk_segments_back(
    source: Source,
    phase: str,
    end: int,
    other: Callable[[str], Source],
    *,
    to_anchor: bool = False,
) -> Iterator[Segment]:
    """Yield the segments of the path that ends at byte `end` of `phase`, newest first.

    `other` opens an origin tape. With `to_anchor` the path ends at the newest anchor's phase.
    Raises Damaged if a base is not where it should be, NotFound if an origin is missing: what was
    yielded before is on the path.
    """
    seen: set[tuple[str, str]] = set()  # a damaged base may lead back to a phase that was read
    while (source.tape, phase) not in seen:
        seen.add((source.tape, phase))
        # A copied past is one file from the root on, without bases: the walk ends with it.
        if phase == ORIGIN:
            require_root(source)
            yield Segment(source, phase, end, _find_newest_anchor(source, end) if to_anchor else 0)
            return
        yield Segment(source, phase, end)
        first = source.phases.first(phase, describe_missing_blob)
        if first is None:
            raise Damaged(f"{phase}: it has no first entry", file=phase)
        base = read_base(first)
        if base is None or (to_anchor and isinstance(first.data, Anchor)):
            return
        if base.tape not in (None, source.tape):
            # The copy comes first: after `tape detach` the origin may be gone.
            if source.phases.has_origin:
                phase, end = ORIGIN, find_origin_end(source, base)
                continue
            try:
                source = other(base.tape or "")
            except NotFound as error:
                raise NotFound(
                    f"the tape this one was forked from ({base.tape}) is not in the store: {error}"
                ) from error
        phase, end = base.phase, find_line_end(source, base)
    raise Damaged(f"{phase}: its base leads back to itself", file=phase)


def require_root(source: Source) -> None:
    """Raise Damaged if a copied past does not begin with a root entry."""
    with source.phases.open(ORIGIN) as file:
        if read_header(file.line_at(0)).n != 0:
            raise Damaged(
                f"{ORIGIN}: its first entry is missing; {FSCK_ADVICE}", file=ORIGIN, offset=0
            )


def _find_newest_anchor(source: Source, end: int) -> int:
    """Return the offset of the newest anchor before `end` in a copied past, else 0."""
    with source.phases.open(ORIGIN) as file:
        for offset, line in file.read_lines_back(end):
            if read_type(line) == Anchor.entry_type and read_header(line).type == Anchor.entry_type:
                return offset
    return 0


def find_origin_end(source: Source, base: Place) -> int:
    """Return the end offset of a copied past; raise Damaged if it is not the base's entry."""
    with source.phases.open(ORIGIN) as file:
        tail = file.tail()
    if tail.header is None or tail.header.id != base.entry:
        raise Damaged(
            f"{ORIGIN}: it should end with entry {base.entry[:12]}", file=ORIGIN, offset=tail.offset
        )
    return tail.end


def find_line_end(source: Source, place: Place) -> int:
    """Return the offset after an entry's line; raise Damaged if another entry is there."""
    with source.phases.open(place.phase) as file:
        line = file.line_at(place.offset)
        if read_header(line).id != place.entry:
            raise Damaged(
                f"{place.phase}: byte {place.offset} should hold entry {place.entry[:12]}",
                file=place.phase,
                offset=place.offset,
            )
        return place.offset + len(line) + 1
