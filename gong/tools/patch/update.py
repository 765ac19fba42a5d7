"""A file with the chunks of a hunk put in (pure; bytes in, bytes out).

Context lines keep their own bytes, whatever was overlooked to find them; lines that come in end
as the file's first line does; a file that is not empty ends with a line end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .hunks import ChunkLine
from .lines import split_file_lines
from .nearest import describe_difference, quote_lines
from .seek import SeekLines, seek_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hunks import Chunk, UpdateFile
    from .lines import FileLines

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
        if chunk.old:
            cursor = place.end
        if place.overlooked:
            notes.append(f"{hunk.path}:{place.start + 1} matched apart from {place.overlooked}.")
    return PatchedFile(file.join_lines(_merge_lines(file, placed)), tuple(failures), tuple(notes))


def _place_chunk(
    chunk: Chunk, file: FileLines, lines: SeekLines, cursor: int, path: str
) -> _PlacedLines | _NoPlace:
    start = _find_contexts_end(chunk, lines, cursor)
    if isinstance(start, str):
        near = describe_difference(lines, (start,), (), cursor)
        return _NoPlace(f"Failed to find context '{start}' in {path}\n{near}")
    body: Sequence[ChunkLine] = chunk.lines
    while old := _list_old_lines(body):
        match = seek_lines(lines, old, start, at_end=chunk.at_end)
        if not match and start > cursor:
            # The line of the context is often said again as the first of the chunk.
            match = seek_lines(lines, old, start - 1)
        if match:
            new = _build_incoming_lines(body, file, match.start)
            return _PlacedLines(match.start, match.start + len(old), new, match.overlooked)
        if old[-1]:
            near = describe_difference(lines, old, chunk.new, start)
            return _NoPlace(f"Failed to find expected lines in {path}:\n{quote_lines(old)}\n{near}")
        body = _drop_last_blank(body)
    at = start if start > cursor and not chunk.at_end else _find_append_line(file)
    return _PlacedLines(at, at, _build_incoming_lines(body, file, at))


def _find_contexts_end(chunk: Chunk, lines: SeekLines, cursor: int) -> int | str:
    """Return the line behind the contexts, `cursor` when there are none; one not found.

    A context that is passed already, such as the class of the chunk before, is one found where
    lines are still to be found below it.
    """
    for context in chunk.contexts:
        found = seek_lines(lines, (context,), cursor)
        if found:
            cursor = found.start + 1
        elif not (_RANGE.fullmatch(context) or (chunk.old and seek_lines(lines, (context,), 0))):
            return context
    return cursor


def _list_old_lines(body: Sequence[ChunkLine]) -> list[str]:
    return [line.text for line in body if line.sign != "+"]


def _build_incoming_lines(body: Sequence[ChunkLine], file: FileLines, index: int) -> list[str]:
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


def _drop_last_blank(body: Sequence[ChunkLine]) -> Sequence[ChunkLine]:
    """Return the lines without the last old one, which is blank, and the last new one if it is.

    Models put a blank line between chunks, or take the end of the file for one.
    """
    place = max(n for n, line in enumerate(body) if line.sign != "+")
    kept = [ChunkLine("+", "")] if body[place].sign == " " else []
    changed = [*body[:place], *kept, *body[place + 1 :]]
    last = max((n for n, line in enumerate(changed) if line.sign != "-"), default=None)
    if last is not None and changed[last] == ChunkLine("+", ""):
        del changed[last]
    return changed


def _find_append_line(file: FileLines) -> int:
    """Return where lines go that come to the end: before a last line without a character."""
    last_is_empty = bool(file.texts) and file.texts[-1] + file.ends[-1] == "\n"
    return len(file.texts) - last_is_empty


def _merge_lines(file: FileLines, placed: Sequence[_PlacedLines]) -> list[str]:
    whole, merged, done = file.whole, [], 0
    for place in sorted(placed, key=lambda one: one.start):
        merged += whole[done : place.start] + place.lines
        done = max(done, place.end)
    return merged + whole[done:]
