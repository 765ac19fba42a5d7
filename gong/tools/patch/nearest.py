"""What a file holds where a patch expected something else, in words a model can act on (pure)."""

from __future__ import annotations

from collections import Counter, defaultdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from .seek import normalize_line, seek_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .seek import SeekLines

SHOWN_LINES = 12
"""As many lines of a patch or a file as one failure shows."""
SHOWN_CHARACTERS = 200
COMPARED_LINES = 5_000
"""As many lines of a file as one line is compared with letter by letter."""
COMMON_LINES = 200
"""A line that stands in the file more often says little about the place."""


class _NearestPlace(NamedTuple):
    """A place in a file, and how many of the lines looked for stand there."""

    start: int
    agreeing: int


def quote_lines(lines: Sequence[str]) -> str:
    """Return lines as they are, the first of many."""
    rest = len(lines) - SHOWN_LINES
    more = [f"... ({rest} more lines)"] if rest > 0 else []
    return "\n".join([*map(_cut_line, lines[:SHOWN_LINES]), *more])


def describe_difference(
    lines: SeekLines, wanted: Sequence[str], new: Sequence[str], cursor: int
) -> str:
    """Return where in the file `wanted`, found nowhere from `cursor` on, may be meant."""
    if not lines.texts:
        return "The file is empty."
    before = seek_lines(lines, wanted, 0)
    if before:
        return (
            f"They stand at line {before.start + 1}, above the place reached: line {cursor + 1}."
            " Chunks come in the order of the file; put this one earlier."
        )
    done = seek_lines(lines, new, 0) if len(new) > 1 else None
    if done:
        return f"The lines it would put in stand at line {done.start + 1}: it may be done already."
    place = _find_nearest(lines, wanted, cursor)
    return (
        "Nothing in the file is like them."
        if place is None
        else _describe_nearest(lines, wanted, place)
    )


def _describe_nearest(lines: SeekLines, wanted: Sequence[str], place: _NearestPlace) -> str:
    there = lines.texts[place.start : place.start + len(wanted)]
    differing = next(
        n
        for n, text in enumerate(wanted)
        if n >= len(there) or normalize_line(text) != normalize_line(there[n])
    )
    number = place.start + differing + 1
    got = repr(_cut_line(there[differing])) if differing < len(there) else "the end of the file"
    return (
        f"Nearest in the file, {place.agreeing} of {len(wanted)} lines agree:\n"
        f"{_number_file_lines(lines, place.start, len(there))}\n"
        f"The first difference is at line {number}:\n"
        f"  expected {_cut_line(wanted[differing])!r}\n"
        f"  got      {got}"
    )


def _number_file_lines(lines: SeekLines, start: int, count: int) -> str:
    end = start + min(count, SHOWN_LINES)
    width = len(str(end))
    return "\n".join(f"{n + 1:>{width}} {_cut_line(lines.texts[n])}" for n in range(start, end))


def _find_nearest(lines: SeekLines, wanted: Sequence[str], cursor: int) -> _NearestPlace | None:
    """Return the place where most lines agree, the nearest to `cursor` of several."""
    votes = _count_votes(lines, [normalize_line(line) for line in wanted])
    if votes:
        index, agreeing = max(votes.items(), key=lambda one: (one[1], -abs(one[0] - cursor)))
        return _NearestPlace(index, agreeing)
    return _find_similar_line(lines, wanted, cursor)


def _count_votes(lines: SeekLines, wanted: Sequence[str]) -> Counter[int]:
    places = defaultdict(list)
    telling = {line for line in wanted if line}
    for number, line in enumerate(lines.plain):
        if line in telling:
            places[line].append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(wanted):
        found = places.get(line, ())
        if len(found) <= COMMON_LINES:
            votes.update(place - offset for place in found if place >= offset)
    return votes


def _find_similar_line(
    lines: SeekLines, wanted: Sequence[str], cursor: int
) -> _NearestPlace | None:
    """Return the place of the line that is most like the first telling one of `wanted`."""
    offset = next((n for n, line in enumerate(wanted) if line.strip()), None)
    if offset is None:
        return None
    start = max(0, min(cursor, len(lines.texts) - COMPARED_LINES))
    window = [line[:SHOWN_CHARACTERS] for line in lines.texts[start : start + COMPARED_LINES]]
    alike = get_close_matches(wanted[offset][:SHOWN_CHARACTERS], window, n=1)
    if not alike:
        return None
    return _NearestPlace(max(0, start + window.index(alike[0]) - offset), 0)


def _cut_line(line: str) -> str:
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}..."
