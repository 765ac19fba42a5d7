"""The path: from a head, parent by parent, to the newest anchor or to the root (tape.md §6).

A path is a chain of segments; a segment is the part of one phase file that is on the path. It
continues in origin tapes, unless the tape has a copy of what it shares with them. Reads only.
"""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from .checked import FSCK_ADVICE, LineChecker, select_checked_lines, select_checked_runs
from .entries import Anchor, Branch, Place, Start
from .errors import Damaged, NotFound
from .line import Entry, decode_line, decode_lines, read_header
from .payload import describe_missing_blob
from .phase import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .blocks import BlobRef
    from .phase import Phases

_ANCHOR = b'"type":"anchor","dh":"'


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

    def checked_lines(self, skipped: Callable[[str], None]) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) of lines that verify, oldest first; report others to `skipped`."""
        with self.source.phases.open(self.phase) as file:
            yield from select_checked_runs(
                file.read_runs(self.start, self.end), self._build_checker(skipped)
            )

    def checked_lines_back(self, skipped: Callable[[str], None]) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of `checked_lines` newest first."""
        with self.source.phases.open(self.phase) as file:
            back = takewhile(lambda found: found[0] >= self.start, file.lines_back(self.end))
            yield from select_checked_lines(back, self._build_checker(skipped, back=True))

    def _build_checker(self, skipped: Callable[[str], None], *, back: bool = False) -> LineChecker:
        return LineChecker(self.phase, self.source.phases.redacted_ids, skipped, back=back)

    def read_runs(self, skipped: Callable[[str], None]) -> Iterator[list[Entry]]:
        """Yield its entries, many at a time; report those that do not verify to `skipped`."""
        check = self._build_checker(skipped)
        with self.source.phases.open(self.phase) as file:
            for start, lines in file.read_runs(self.start, self.end):
                whole, single = check.read_run(start, lines)
                tell = partial(self._report_undecodable, skipped, start)
                if single is None:
                    yield decode_lines(whole, self.source.expand, tell)
                else:
                    yield list(self._decode_checked(single, skipped))

    def _decode_checked(
        self, lines: Iterator[tuple[int, bytes]], skipped: Callable[[str], None]
    ) -> Iterator[Entry]:
        for offset, line in lines:
            try:
                yield decode_line(line, self.source.expand)
            except Damaged as error:
                self._report_undecodable(skipped, 0, offset, error)

    def entries(self, skipped: Callable[[str], None]) -> list[Entry]:
        """Return the entries of `runs` in one list."""
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


def collect_segments(
    source: Source,
    phase: str,
    end: int,
    other: Callable[[str], Source],
    *,
    to_anchor: bool = False,
) -> list[Segment]:
    """Return the segments of the path that ends at byte `end` of `phase`, oldest first.

    `other` opens an origin tape. With `to_anchor` the path starts at the newest anchor's phase.
    Raises Damaged if a base is not where it should be, NotFound if an origin is missing.
    """
    found: list[Segment] = []
    seen: set[tuple[str, str]] = set()
    while True:
        if (source.tape, phase) in seen:
            raise Damaged(f"{phase}: its base leads back to itself", file=phase)
        seen.add((source.tape, phase))
        if phase == ORIGIN:
            require_root(source)
            start = _find_newest_anchor(source, end) if to_anchor else 0
            return [Segment(source, phase, end, start), *found[::-1]]
        found.append(Segment(source, phase, end))
        first = source.phases.first(phase, describe_missing_blob)
        if first is None:
            raise Damaged(f"{phase}: it has no first entry", file=phase)
        base = read_base(first)
        if base is None or (to_anchor and isinstance(first.data, Anchor)):
            return found[::-1]
        if base.tape not in (None, source.tape):
            if source.phases.has_origin:
                phase, end = ORIGIN, find_origin_end(source, base)
                continue
            source = _open_origin(other, base)
        phase, end = base.phase, find_line_end(source, base)


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
        anchors = (offset for offset, line in file.lines_back(end) if _is_anchor_line(line))
        return next(anchors, 0)


def _is_anchor_line(line: bytes) -> bool:
    return _ANCHOR in line and read_header(line).type == Anchor.entry_type


def find_origin_end(source: Source, base: Place) -> int:
    """Return the end offset of a copied past; raise Damaged if it is not the base's entry."""
    with source.phases.open(ORIGIN) as file:
        tail = file.tail()
    if tail.header is None or tail.header.id != base.entry:
        raise Damaged(
            f"{ORIGIN}: it should end with entry {base.entry[:12]}", file=ORIGIN, offset=tail.offset
        )
    return tail.end


def _open_origin(other: Callable[[str], Source], base: Place) -> Source:
    try:
        return other(base.tape or "")
    except NotFound as error:
        raise NotFound(
            f"the tape this one was forked from ({base.tape}) is not in the store: {error}"
        ) from error


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
