"""Where two paths diverge: their newest common entry, and the entries of each side since.

    a: 0001-main-start ─── 0004-main-compaction        common: 0001 up to the fork
    b: 0001-main-start ─┬─ 0003-try                    a: rest of 0001, 0004    b: 0003

Found by the phases of the paths: the newest that both have. Only against the copied past of a
detached tape entries are compared, by their ids. A path that breaks off is used as far as it can be
read.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from ..model.line import describe_missing_blob, read_id
from ..store.phase import ORIGIN
from ..store.refs import Head, read_head_at
from .graph import READ_ERRORS, PhaseKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store.path import Segment, Source
    from ..store.tape import Tape


class PathTo(NamedTuple):
    """The path to an entry, oldest first, as far as it can be read."""

    segments: tuple[Segment, ...]
    broken: str | None = None
    """Why earlier entries cannot be read; None if the path is complete."""


class MergeBase(NamedTuple):
    """The common part of two paths, and the rest of each."""

    base: Head | None
    """The newest common entry; None if there is none."""
    source: Source | None
    """The source that entry is read from."""
    common: tuple[Segment, ...]
    """The path to it, oldest first, as far as it can be read."""
    a: tuple[Segment, ...]
    """The segments of the first path since, oldest first; all if there is no common entry."""
    b: tuple[Segment, ...]
    broken: tuple[str, ...] = ()
    """Why a path could not be read to its beginning, if that can matter."""


def read_path_to(tape: Tape, head: Head) -> PathTo:
    """Return the path to a head, also if an earlier part is damaged or missing."""
    segments: list[Segment] = []
    try:
        for segment in tape.walk_path_back(head):
            segments.insert(0, segment)
    except READ_ERRORS as error:
        return PathTo(tuple(segments), str(error))
    return PathTo(tuple(segments))


def find_merge_base(a: PathTo, b: PathTo) -> MergeBase:
    """Return where two paths diverge, each given oldest first."""
    ends = {_build_segment_key(segment): number for number, segment in enumerate(a.segments)}
    for at_b in reversed(range(len(b.segments))):
        at_a = ends.get(_build_segment_key(b.segments[at_b]))
        if at_a is not None:
            end = min(a.segments[at_a].end, b.segments[at_b].end)
            return _build_merge_base(a.segments, at_a, end, b.segments, at_b, end)
    broken = tuple(text for text in (a.broken, b.broken) if text)
    copied = any(segment.phase == ORIGIN for segment in (*a.segments[:1], *b.segments[:1]))
    if copied and not broken:
        pairs = zip(_iter_path_entries(a.segments), _iter_path_entries(b.segments), strict=False)
        same = deque(takewhile(lambda pair: pair[0][2] == pair[1][2], pairs), maxlen=1)
        for (at_a, end_a, _), (at_b, end_b, _) in same:  # the newest with the same id, if any
            return _build_merge_base(a.segments, at_a, end_a, b.segments, at_b, end_b)
    return MergeBase(None, None, (), a.segments, b.segments, broken)


def _build_segment_key(segment: Segment) -> PhaseKey:
    return PhaseKey(segment.source.tape, segment.phase)


def _iter_path_entries(segments: Sequence[Segment]) -> Iterator[tuple[int, int, str]]:
    """Yield of each entry the number of its segment, where its line ends, and its id."""
    for number, segment in enumerate(segments):
        for offset, line in segment.lines():
            yield number, offset + len(line) + 1, read_id(line)


def _build_merge_base(
    a: Sequence[Segment], at_a: int, end_a: int, b: Sequence[Segment], at_b: int, end_b: int
) -> MergeBase:
    shared = a[at_a]
    with shared.source.phases.open(shared.phase) as file:
        offset, _ = next(file.read_lines_back(end_a))
    first = shared.source.phases.first(shared.phase, describe_missing_blob)
    branch = getattr(first and first.data, "branch", None)  # "" where nothing says
    name = branch if isinstance(branch, str) else ""
    base = read_head_at(shared.source.phases, name, shared.phase, offset)
    common = (*a[:at_a], shared._replace(end=end_a))
    return MergeBase(
        base,
        shared.source,
        common,
        _cut_segments_since(a, at_a, end_a),
        _cut_segments_since(b, at_b, end_b),
    )


def _cut_segments_since(segments: Sequence[Segment], number: int, end: int) -> tuple[Segment, ...]:
    rest = segments[number]._replace(start=end)
    return (*((rest,) if rest.start < rest.end else ()), *segments[number + 1 :])
