"""The path: from a head, parent by parent, to the newest anchor or to the root (tape.md §6).

A path is a chain of segments, the part of one phase file that lies on it. Origin tapes are read
through. Nothing here writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .entries import Anchor, Branch, Place, Start
from .errors import Damaged, NotFound
from .line import Entry, decode_all, missing_blob, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .blocks import BlobRef
    from .phase import Phases


class Source(NamedTuple):
    """Where the phases and blobs of one tape are read."""

    tape: str
    phases: Phases
    expand: Callable[[BlobRef], str]


class Segment(NamedTuple):
    """The first `end` bytes of a phase file: the part that lies on a path."""

    source: Source
    phase: str
    end: int

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) oldest first."""
        with self.source.phases.open(self.phase) as file:
            yield from file.lines(0, self.end)

    def entries(self, skipped: Callable[[str], None]) -> list[Entry]:
        """Return its entries; what cannot be read is told to `skipped` and left out."""
        with self.source.phases.open(self.phase) as file:
            data = file.read(0, self.end)

        def tell(offset: int, error: Damaged) -> None:
            skipped(f"{self.phase}: line at byte {offset} skipped: {error}")

        return decode_all(data, self.source.expand, tell)


def base_of(entry: Entry) -> Place | None:
    """Return where the parent of a phase's first entry stands, None at a root."""
    match entry.data:
        case Branch(base=base) | Anchor(base=base):
            return base
        case Start(origin=origin):
            return origin
    raise Damaged(f"a phase begins with {entry.type}, which says no base")


def segments(
    source: Source,
    phase: str,
    end: int,
    other: Callable[[str], Source],
    *,
    to_anchor: bool = False,
) -> list[Segment]:
    """Return the segments of the path that ends at byte `end` of `phase`, oldest first.

    `other` opens an origin tape. With `to_anchor` the newest anchor's phase is the first. Raises
    Damaged when a base is not where it should be, NotFound when an origin is missing.
    """
    found: list[Segment] = []
    seen: set[tuple[str, str]] = set()
    while True:
        if (source.tape, phase) in seen:
            raise Damaged(f"{phase}: its base leads back to itself", file=phase)
        seen.add((source.tape, phase))
        found.append(Segment(source, phase, end))
        first = source.phases.first(phase, missing_blob)
        if first is None:
            raise Damaged(f"{phase}: it has no first entry", file=phase)
        base = base_of(first)
        if base is None or (to_anchor and isinstance(first.data, Anchor)):
            return found[::-1]
        if base.tape not in (None, source.tape):
            source = _origin(other, base)
        phase, end = base.phase, line_end(source, base)


def _origin(other: Callable[[str], Source], base: Place) -> Source:
    try:
        return other(base.tape or "")
    except NotFound as error:
        raise NotFound(
            f"the tape this one was forked from ({base.tape}) is not in the store: {error}"
        ) from error


def line_end(source: Source, place: Place) -> int:
    """Return the offset behind an entry's line; raise Damaged when another entry stands there."""
    with source.phases.open(place.phase) as file:
        line = file.line_at(place.offset)
        if read_header(line).id != place.entry:
            raise Damaged(
                f"{place.phase}: byte {place.offset} should hold entry {place.entry[:12]}",
                file=place.phase,
                offset=place.offset,
            )
        return place.offset + len(line) + 1
