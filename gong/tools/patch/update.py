"""A file with the chunks of a hunk put in (pure; bytes in, bytes out).

Context lines keep their own bytes, whatever was overlooked to find them; lines that come in end
as the file's first line does; a file that is not empty ends with a line end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .hunks import Line
from .lines import text_file
from .nearest import difference, shown
from .seek import Lines, seek

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hunks import Chunk, Update
    from .lines import TextFile

_RANGE = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
"""What a unified diff says behind its `@@`: line numbers, which are not looked at."""


class Updated(NamedTuple):
    """What became of a file."""

    data: bytes
    """The file with every chunk that has a place."""
    failures: tuple[str, ...]
    """Why the others have none."""
    notes: tuple[str, ...]
    """What had to be overlooked to find places."""


class _Placed(NamedTuple):
    """Lines of a file that give way to others, which have their ends."""

    start: int
    end: int
    lines: list[str]
    overlooked: str = ""


class _Nowhere(NamedTuple):
    """Why a chunk has no place in the file."""

    reason: str


def updated(data: bytes, hunk: Update) -> Updated:
    """Return the file changed as the hunk says; UnicodeDecodeError when it is not UTF-8."""
    file = text_file(data)
    lines = Lines(file.texts)
    cursor, placed, failures, notes = 0, [], [], []
    for number, chunk in enumerate(hunk.chunks, 1):
        place = _place(chunk, file, lines, cursor, hunk.path)
        if isinstance(place, _Nowhere):
            count = f"Chunk {number} of {len(hunk.chunks)}, at line {chunk.number} of the patch."
            failures.append(f"{place.reason}\n{count}")
            continue
        placed.append(place)
        if chunk.old:
            cursor = place.end
        if place.overlooked:
            notes.append(f"{hunk.path}:{place.start + 1} matched apart from {place.overlooked}.")
    return Updated(file.with_lines(_merged(file, placed)), tuple(failures), tuple(notes))


def _place(
    chunk: Chunk, file: TextFile, lines: Lines, cursor: int, path: str
) -> _Placed | _Nowhere:
    start = _below_contexts(chunk, lines, cursor)
    if isinstance(start, str):
        near = difference(lines, (start,), (), cursor)
        return _Nowhere(f"Failed to find context '{start}' in {path}\n{near}")
    body: Sequence[Line] = chunk.lines
    while old := _old(body):
        match = seek(lines, old, start, at_end=chunk.at_end)
        if not match and start > cursor:
            # The line of the context is often said again as the first of the chunk.
            match = seek(lines, old, start - 1)
        if match:
            new = _incoming(body, file, match.start)
            return _Placed(match.start, match.start + len(old), new, match.overlooked)
        if old[-1]:
            near = difference(lines, old, chunk.new, start)
            return _Nowhere(f"Failed to find expected lines in {path}:\n{shown(old)}\n{near}")
        body = _without_last_blank(body)
    at = start if start > cursor and not chunk.at_end else _end(file)
    return _Placed(at, at, _incoming(body, file, at))


def _below_contexts(chunk: Chunk, lines: Lines, cursor: int) -> int | str:
    """Return the line behind the contexts, `cursor` when there are none; one not found.

    A context that is passed already, such as the class of the chunk before, is one found where
    lines are still to be found below it.
    """
    for context in chunk.contexts:
        found = seek(lines, (context,), cursor)
        if found:
            cursor = found.start + 1
        elif not (_RANGE.fullmatch(context) or (chunk.old and seek(lines, (context,), 0))):
            return context
    return cursor


def _old(body: Sequence[Line]) -> list[str]:
    return [line.text for line in body if line.sign != "+"]


def _incoming(body: Sequence[Line], file: TextFile, index: int) -> list[str]:
    """Return the new lines with their ends; those of context as they stand from `index` on."""
    incoming = []
    for sign, text in body:
        if sign == "+":
            incoming.append(text + file.line_end)
            continue
        if sign == " ":
            incoming.append(file.texts[index] + file.ends[index])
        index += 1
    return incoming


def _without_last_blank(body: Sequence[Line]) -> Sequence[Line]:
    """Return the lines without the last old one, which is blank, and the last new one if it is.

    Models put a blank line between chunks, or take the end of the file for one.
    """
    place = max(n for n, line in enumerate(body) if line.sign != "+")
    kept = [Line("+", "")] if body[place].sign == " " else []
    changed = [*body[:place], *kept, *body[place + 1 :]]
    last = max((n for n, line in enumerate(changed) if line.sign != "-"), default=None)
    if last is not None and changed[last] == Line("+", ""):
        del changed[last]
    return changed


def _end(file: TextFile) -> int:
    """Return where lines go that come to the end: before a last line without a character."""
    last_is_empty = bool(file.texts) and file.texts[-1] + file.ends[-1] == "\n"
    return len(file.texts) - last_is_empty


def _merged(file: TextFile, placed: Sequence[_Placed]) -> list[str]:
    whole, merged, done = file.whole, [], 0
    for place in sorted(placed, key=lambda one: one.start):
        merged += whole[done : place.start] + place.lines
        done = max(done, place.end)
    return merged + whole[done:]
