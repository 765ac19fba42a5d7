"""A file with the chunks of a hunk put in (pure; bytes in, bytes out).

Where the lines of a chunk are in the file is looked for in four passes over the whole range, each
weaker than the one before: as they are, without blanks at their ends, without indentation, with
typographic characters made plain. In a pass the earliest place wins; a weaker pass never overrules
a stronger one. `cursor` is the line after the chunk before, where the next one may begin:

    | chunk                          | looked for                                    |
    | ------------------------------ | --------------------------------------------- |
    | contexts                       | each below the one before, then the old lines |
    | old lines                      | from the contexts, or the cursor, on          |
    | at the end of the file         | as the last lines first                       |
    | old lines not found, last blank| again without it                              |
    | no old lines (any more)        | at the contexts, else at the end              |

Context lines keep their own bytes, whatever was overlooked to find them: a last line without a line
end stays so. Lines that come in end as the file's first line does. Where there is no place, words
say what the file holds instead, so that a model can act on them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from tape.lookalikes import replace_lookalikes

from ..text_files import BOM
from .parse import ChunkLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .parse import PatchChunk, UpdateFile


@dataclass(frozen=True, slots=True)
class FileLines:
    """A file in lines."""

    bom: bytes
    """The mark before the text, mostly none."""
    texts: Sequence[str]
    """The lines without their ends; a lone carriage return is text."""
    ends: Sequence[str]
    """The end of each; "" for a last line that the file leaves without one."""
    line_end: str
    """How the first line ends, and so do lines that come in."""

    @property
    def whole(self) -> list[str]:
        """The lines with their ends."""
        return [text + end for text, end in zip(self.texts, self.ends, strict=True)]

    def join_lines(self, lines: Sequence[str]) -> bytes:
        """Return the file with these lines, each with its end, in place of its own.

        A line that had none and is not the last any more gets one.
        """
        *inner, last = lines or [""]
        ended = [line if line.endswith("\n") else line + self.line_end for line in inner]
        return self.bom + "".join([*ended, last]).encode()


def split_file_lines(data: bytes) -> FileLines:
    """Return the lines of a file; UnicodeDecodeError when it is not UTF-8."""
    bom = BOM if data.startswith(BOM) else b""
    *pieces, last = data.removeprefix(bom).decode("utf-8").split("\n")
    ends = ["\r\n" if piece.endswith("\r") else "\n" for piece in pieces]
    texts = [piece.removesuffix("\r") for piece in pieces]
    line_end = ends[0] if ends else "\n"
    if last:
        texts.append(last)
        ends.append("")
    return FileLines(bom, texts, ends, line_end)


def normalize_line(line: str) -> str:
    """Return a line without blanks at its ends, typographic characters made plain."""
    return replace_lookalikes(line.strip())


_PASSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", str),
    ("blanks at the ends of lines", str.rstrip),
    ("indentation", str.strip),
    ("indentation and typographic characters", normalize_line),
)
"""What each pass overlooks, and how it sees a line."""


class SeekMatch(NamedTuple):
    """A place where lines were found."""

    start: int
    overlooked: str
    """What differs and was overlooked; "" when nothing was."""


class SeekLines:
    """The lines of a file, without their ends, as each pass sees them."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.texts = lines
        self._seen: dict[str, list[str]] = {}

    @property
    def plain(self) -> list[str]:
        """The lines as the last pass sees them."""
        return self.view_lines(len(_PASSES) - 1)

    def view_lines(self, number: int) -> list[str]:
        """Return the lines as pass `number` sees them."""
        name, view = _PASSES[number]
        if name not in self._seen:
            self._seen[name] = [view(line) for line in self.texts]
        return self._seen[name]


def seek_lines(
    lines: SeekLines, pattern: Sequence[str], start: int, *, at_end: bool = False
) -> SeekMatch | None:
    """Return the position of `pattern` from line `start` (0-based) on; an empty one is at `start`.

    `at_end` tries the last lines of the file first.
    """
    last = len(lines.texts) - len(pattern)
    if not pattern:
        return SeekMatch(start, "")
    if at_end and last > start:
        match = _seek_in_passes(lines, pattern, last)
        # Models mark the end of the file where it is not: then it is an ordinary place.
        if match:
            return match
    return _seek_in_passes(lines, pattern, start)


def _seek_in_passes(lines: SeekLines, pattern: Sequence[str], start: int) -> SeekMatch | None:
    # All of the file in one pass before the next: an exact place far below is meant sooner than a
    # near one that differs in indentation.
    for number, (overlooked, view) in enumerate(_PASSES):
        index = _index_lines(lines.view_lines(number), [view(line) for line in pattern], start)
        if index is not None:
            return SeekMatch(index, overlooked)
    return None


def _index_lines(lines: list[str], pattern: list[str], start: int) -> int | None:
    """Return the first position of `pattern`, which is not empty, from `start` on."""
    end = len(lines) - len(pattern) + 1
    while start < end:
        try:
            start = lines.index(pattern[0], start, end)
        except ValueError:
            return None
        if lines[start : start + len(pattern)] == pattern:
            return start
        start += 1
    return None


SHOWN_LINES = 12
"""As many lines of a patch or a file as one failure shows."""
SHOWN_CHARACTERS = 200
COMPARED_LINES = 5_000
"""As many lines of a file as one line is compared with letter by letter."""
COMMON_LINES = 200
"""A line that occurs more often in the file says little about the position."""


class _NearestPlace(NamedTuple):
    """A place in a file, and how many of the lines looked for agree there."""

    start: int
    agreeing: int


def quote_lines(lines: Sequence[str]) -> str:
    """Return lines as they are, the first of many."""
    rest = len(lines) - SHOWN_LINES
    more = [f"... ({rest} more lines)"] if rest > 0 else []
    return "\n".join([*map(_cut_line, lines[:SHOWN_LINES]), *more])


def describe_difference(
    lines: SeekLines, expected: Sequence[str], new: Sequence[str], cursor: int
) -> str:
    """Return where in the file `expected`, found nowhere from `cursor` on, may be meant."""
    if not lines.texts:
        return "The file is empty."
    before = seek_lines(lines, expected, 0)
    if before:
        return (
            f"They stand at line {before.start + 1}, above the place reached: line {cursor + 1}."
            " Chunks come in the order of the file; put this one earlier."
        )
    done = seek_lines(lines, new, 0) if len(new) > 1 else None
    if done:
        return f"The lines it would put in stand at line {done.start + 1}: it may be done already."
    place = _find_nearest(lines, expected, cursor)
    return (
        "Nothing in the file is like them."
        if place is None
        else _describe_nearest(lines, expected, place)
    )


def _describe_nearest(lines: SeekLines, expected: Sequence[str], place: _NearestPlace) -> str:
    there = lines.texts[place.start : place.start + len(expected)]
    differing = next(
        n
        for n, text in enumerate(expected)
        if n >= len(there) or normalize_line(text) != normalize_line(there[n])
    )
    number = place.start + differing + 1
    end = place.start + min(len(there), SHOWN_LINES)
    width = len(str(end))
    rows = (f"{n + 1:>{width}} {_cut_line(lines.texts[n])}" for n in range(place.start, end))
    listing = "\n".join(rows)
    actual = repr(_cut_line(there[differing])) if differing < len(there) else "the end of the file"
    return (
        f"Nearest in the file, {place.agreeing} of {len(expected)} lines agree:\n"
        f"{listing}\n"
        f"The first difference is at line {number}:\n"
        f"  expected {_cut_line(expected[differing])!r}\n"
        f"  got      {actual}"
    )


def _find_nearest(lines: SeekLines, expected: Sequence[str], cursor: int) -> _NearestPlace | None:
    """Return the place where most lines agree, the nearest to `cursor` of several."""
    votes = _count_votes(lines, [normalize_line(line) for line in expected])
    if votes:
        index, agreeing = max(votes.items(), key=lambda vote: (vote[1], -abs(vote[0] - cursor)))
        return _NearestPlace(index, agreeing)
    return _find_similar_line(lines, expected, cursor)


def _count_votes(lines: SeekLines, expected: Sequence[str]) -> Counter[int]:
    """Return start lines, each with how many lines agree if `expected` begins there.

    Each line of `expected` votes for the start that its own places in the file imply:

        file    0 a   1 b   2 c   3 a   4 x   5 c
        wanted  a, b, c
        votes   a: 0 and 3     b: 1 - 1 = 0     c: 2 - 2 = 0 and 5 - 2 = 3

    Line 0 has three votes, line 3 two.
    """
    places = defaultdict(list)
    expected_lines = {line for line in expected if line}
    for number, line in enumerate(lines.plain):
        if line in expected_lines:
            places[line].append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(expected):
        starts = places.get(line, ())
        if len(starts) <= COMMON_LINES:
            votes.update(place - offset for place in starts if place >= offset)
    return votes


def _find_similar_line(
    lines: SeekLines, expected: Sequence[str], cursor: int
) -> _NearestPlace | None:
    """Return the place of the line that is most like the first telling one of `expected`."""
    offset = next((n for n, line in enumerate(expected) if line.strip()), None)
    if offset is None:
        return None
    start = max(0, min(cursor, len(lines.texts) - COMPARED_LINES))
    window = [line[:SHOWN_CHARACTERS] for line in lines.texts[start : start + COMPARED_LINES]]
    alike = get_close_matches(expected[offset][:SHOWN_CHARACTERS], window, n=1)
    if not alike:
        return None
    return _NearestPlace(max(0, start + window.index(alike[0]) - offset), 0)


def _cut_line(line: str) -> str:
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}..."


_RANGE = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
"""What a unified diff says behind its `@@`: line numbers, which are not looked at."""


class PatchedFile(NamedTuple):
    """What became of a file."""

    data: bytes
    """The file with every chunk that has a place."""
    failures: tuple[str, ...]
    """Why the others have none."""
    notes: tuple[str, ...]
    """What had to be overlooked to find places."""


class _PlacedLines(NamedTuple):
    """Lines of a file that give way to others, which have their ends."""

    start: int
    end: int
    lines: list[str]
    overlooked: str = ""


class _NoPlace(NamedTuple):
    """Why a chunk has no place in the file."""

    reason: str


def patch_file(data: bytes, hunk: UpdateFile) -> PatchedFile:
    """Return the file changed as the hunk says; UnicodeDecodeError when it is not UTF-8."""
    file = split_file_lines(data)
    lines = SeekLines(file.texts)
    cursor, placed, failures, notes = 0, [], [], []
    for number, chunk in enumerate(hunk.chunks, 1):
        place = _place_chunk(chunk, file, lines, cursor, hunk.path)
        if isinstance(place, _NoPlace):
            count = f"Chunk {number} of {len(hunk.chunks)}, at line {chunk.number} of the patch."
            failures.append(f"{place.reason}\n{count}")
            continue
        placed.append(place)
        # An insertion may be at the end of the file; the next chunk is still searched from here.
        if chunk.old:
            cursor = place.end
        if place.overlooked:
            notes.append(f"{hunk.path}:{place.start + 1} matched apart from {place.overlooked}.")
    whole, merged, done = file.whole, [], 0
    # For the same reason the places may be out of order; `sorted` keeps the order of equal ones.
    for place in sorted(placed, key=lambda placement: placement.start):
        merged += whole[done : place.start] + place.lines
        done = max(done, place.end)
    return PatchedFile(file.join_lines(merged + whole[done:]), tuple(failures), tuple(notes))


def _place_chunk(
    chunk: PatchChunk, file: FileLines, lines: SeekLines, cursor: int, path: str
) -> _PlacedLines | _NoPlace:
    start = _find_contexts_end(chunk, lines, cursor)
    if isinstance(start, str):
        near = describe_difference(lines, (start,), (), cursor)
        return _NoPlace(f"Failed to find context '{start}' in {path}\n{near}")
    body: Sequence[ChunkLine] = chunk.lines
    while old := [line.text for line in body if line.sign != "+"]:
        match = seek_lines(lines, old, start, at_end=chunk.at_end)
        if not match and start > cursor:
            # The line of the context is often said again as the first of the chunk.
            match = seek_lines(lines, old, start - 1)
        if match:
            new = _build_incoming_lines(body, file, match.start)
            return _PlacedLines(match.start, match.start + len(old), new, match.overlooked)
        # Only a blank line at the end is dropped and looked for again; any other has to be there.
        if old[-1]:
            near = describe_difference(lines, old, chunk.new, start)
            return _NoPlace(f"Failed to find expected lines in {path}:\n{quote_lines(old)}\n{near}")
        body = _drop_last_blank(body)
    at = start
    if start == cursor or chunk.at_end:
        # At the end, before a last line without a character.
        last_is_empty = bool(file.texts) and file.texts[-1] + file.ends[-1] == "\n"
        at = len(file.texts) - last_is_empty
    return _PlacedLines(at, at, _build_incoming_lines(body, file, at))


def _find_contexts_end(chunk: PatchChunk, lines: SeekLines, cursor: int) -> int | str:
    """Return the line behind the contexts, `cursor` when there are none; one not found.

    A context that is passed already, such as the class of the chunk before, is one found where
    lines are still to be found below it.
    """
    for context in chunk.contexts:
        match = seek_lines(lines, (context,), cursor)
        if match:
            cursor = match.start + 1
        elif not (_RANGE.fullmatch(context) or (chunk.old and seek_lines(lines, (context,), 0))):
            return context
    return cursor


def _build_incoming_lines(body: Sequence[ChunkLine], file: FileLines, index: int) -> list[str]:
    """Return the new lines with their ends; those of context as they stand from `index` on."""
    incoming = []
    for sign, text in body:
        if sign == "+":
            incoming.append(text + file.line_end)
            continue
        # The file's own line, not the patch's: a pass may have overlooked its blanks or quotes.
        if sign == " ":
            incoming.append(file.texts[index] + file.ends[index])
        index += 1
    return incoming


def _drop_last_blank(body: Sequence[ChunkLine]) -> Sequence[ChunkLine]:
    """Return the lines without the last old one, which is blank, and the last new one if it is.

    Models put a blank line between chunks, or take the end of the file for one.
    """
    place = max(n for n, line in enumerate(body) if line.sign != "+")
    blank = [ChunkLine("+", "")] if body[place].sign == " " else []
    changed = [*body[:place], *blank, *body[place + 1 :]]
    last = max((n for n, line in enumerate(changed) if line.sign != "-"), default=None)
    if last is not None and changed[last] == ChunkLine("+", ""):
        del changed[last]
    return changed
