"""Where two paths part: their newest common entry, and what each side has since.

Found by the phases the paths lead through. Only against the copied past of a detached tape entries
are compared, by their ids. A path that breaks off is used as far as it can be read.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from ..branches import Head, at
from ..path import Segment, base_of, line_end, origin_end
from ..payload import missing_blob
from ..phase import ORIGIN
from .shape import UNREADABLE, Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..entries import Place
    from ..path import Source
    from ..tape import Tape

_ID = 48
"""Bytes of a line up to the end of its id."""


class Way(NamedTuple):
    """The path to an entry, oldest first, as far as it can be read."""

    segments: tuple[Segment, ...]
    broken: str | None = None
    """Why what comes before cannot be read."""


class Parting(NamedTuple):
    """What two paths share, and what they do not."""

    base: Head | None
    """The newest common entry, None where the paths have nothing in common."""
    source: Source | None
    """Where it is read."""
    common: tuple[Segment, ...]
    """The path to it, oldest first, as far as it can be read."""
    a: tuple[Segment, ...]
    """What the first path has since, oldest first; the whole path where nothing is common."""
    b: tuple[Segment, ...]
    broken: tuple[str, ...] = ()
    """Why a path could not be read to its beginning, where that could have mattered."""


def way(tape: Tape, head: Head) -> Way:
    """Return the path to a head, also where what lies before some phase is damaged or gone."""
    found: list[Segment] = []
    try:
        for segment in _back(tape, head.phase, head.end):
            found.insert(0, segment)
    except UNREADABLE as error:
        return Way(tuple(found), str(error))
    return Way(tuple(found))


def _back(tape: Tape, phase: str, end: int) -> Iterator[Segment]:
    """Yield the segments of a path newest first; raise where it breaks off."""
    owner, seen = tape, set[Key]()
    while (key := Key(owner.id, phase)) not in seen:
        seen.add(key)
        yield Segment(owner.source, phase, end)
        first = owner.phases.first(phase, missing_blob)
        base = None if phase == ORIGIN or first is None else base_of(first)
        if base is None:
            return
        owner, phase, end = _before(owner, base)


def _before(owner: Tape, base: Place) -> tuple[Tape, str, int]:
    """Return the tape, phase and byte that a path goes on from towards its root."""
    if base.tape in (None, owner.id):
        return owner, base.phase, line_end(owner.source, base)
    origin = None if owner.phases.has_origin else owner.origin()
    if origin is None:
        return owner, ORIGIN, origin_end(owner.source, base)
    return origin, base.phase, line_end(origin.source, base)


def parting(a: Way, b: Way) -> Parting:
    """Return where two paths part, each given oldest first."""
    ends = {_key(one): number for number, one in enumerate(a.segments)}
    for at_b in reversed(range(len(b.segments))):
        at_a = ends.get(_key(b.segments[at_b]))
        if at_a is not None:
            end = min(a.segments[at_a].end, b.segments[at_b].end)
            return _parted(a.segments, at_a, end, b.segments, at_b, end)
    broken = tuple(text for text in (a.broken, b.broken) if text)
    copied = any(one.phase == ORIGIN for one in (*a.segments[:1], *b.segments[:1]))
    found = _compared(a.segments, b.segments) if copied and not broken else None
    return found or Parting(None, None, (), a.segments, b.segments, broken)


def _key(segment: Segment) -> Key:
    return Key(segment.source.tape, segment.phase)


def _compared(a: Sequence[Segment], b: Sequence[Segment]) -> Parting | None:
    """Return where two paths that begin with the same entry part, by the ids of their entries."""
    pairs = zip(_ids(a), _ids(b), strict=False)
    same = deque(takewhile(lambda pair: pair[0][2] == pair[1][2], pairs), maxlen=1)
    if not same:
        return None
    (at_a, end_a, _), (at_b, end_b, _) = same[0]
    return _parted(a, at_a, end_a, b, at_b, end_b)


def _ids(segments: Sequence[Segment]) -> Iterator[tuple[int, int, bytes]]:
    """Yield of each entry the number of its segment, where its line ends, and its id."""
    for number, segment in enumerate(segments):
        for offset, line in segment.lines():
            yield number, offset + len(line) + 1, line[:_ID]


def _parted(
    a: Sequence[Segment], at_a: int, end_a: int, b: Sequence[Segment], at_b: int, end_b: int
) -> Parting:
    shared = a[at_a]
    with shared.source.phases.open(shared.phase) as file:
        offset, _ = next(file.lines_back(end_a))
    base = at(shared.source.phases, _branch(shared), shared.phase, offset)
    common = (*a[:at_a], shared._replace(end=end_a))
    return Parting(base, shared.source, common, _since(a, at_a, end_a), _since(b, at_b, end_b))


def _branch(segment: Segment) -> str:
    """Return the branch a phase was written on, "" where that cannot be told."""
    first = segment.source.phases.first(segment.phase, missing_blob)
    branch = getattr(first and first.data, "branch", None)
    return branch if isinstance(branch, str) else ""


def _since(segments: Sequence[Segment], number: int, end: int) -> tuple[Segment, ...]:
    rest = segments[number]._replace(start=end)
    return (*((rest,) if rest.start < rest.end else ()), *segments[number + 1 :])
