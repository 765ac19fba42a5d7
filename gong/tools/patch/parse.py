"""The text of a patch → its hunks, or the first line that makes no sense (pure).

Strict where codex is: its words for what is wrong are kept. Besides, `@@` lines that follow each
other are contexts of one chunk, a file may be moved without a change, and any heredoc around the
patch is taken off.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from .hunks import AddFile, Chunk, ChunkLine, DeleteFile, Hunk, InvalidPatch, Sign, UpdateFile

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGIN_MARKER, END_MARKER = "*** Begin Patch", "*** End Patch"
ADD_MARKER, DELETE_MARKER, UPDATE_MARKER = (
    "*** Add File: ",
    "*** Delete File: ",
    "*** Update File: ",
)
MOVE_MARKER, END_OF_FILE_MARKER = "*** Move to: ", "*** End of File"
ENVIRONMENT_MARKER = "*** Environment ID:"

_HEREDOC = re.compile(r"(?:(?:cat|apply_patch|applypatch)\s*)?<<\s*(['\"]?)(\w+)\1\s*")


class _PatchError(Exception):
    """Ends the reading of a patch."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.invalid = InvalidPatch(message, line)


class _PatchLines:
    """The lines between the markers, and how far they are read."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._read = 0

    @property
    def number(self) -> int:
        """The number of the next line; the begin marker is 1."""
        return self._read + 2

    @property
    def next(self) -> str | None:
        """The next line; None at the end."""
        return self._lines[self._read] if self._read < len(self._lines) else None

    def take(self) -> str:
        """Return the next line and go past it."""
        self._read += 1
        return self._lines[self._read - 1]


def parse_patch(text: str) -> tuple[Hunk, ...] | InvalidPatch:
    """Return the hunks of a patch in its order, or why it is none; no hunk at all is fine."""
    try:
        lines = _PatchLines(_cut_body(text))
        if (lines.next or "").startswith(ENVIRONMENT_MARKER) and not _take_environment(lines):
            return InvalidPatch("apply_patch environment_id cannot be empty")
        return tuple(_parse_hunks(lines))
    except _PatchError as wrong:
        return wrong.invalid


def _cut_body(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").strip().split("\n")]
    heredoc = _HEREDOC.fullmatch(lines[0])
    if heredoc and len(lines) > 3 and lines[-1].endswith(heredoc[2]):  # noqa: PLR2004 - two markers, two of the shell
        lines = lines[1:-1]
    if lines[0].strip() != BEGIN_MARKER:
        raise _PatchError(f"The first line of the patch must be '{BEGIN_MARKER}'")
    if lines[-1].strip() != END_MARKER:
        raise _PatchError(f"The last line of the patch must be '{END_MARKER}'")
    return lines[1:-1]


def _take_environment(lines: _PatchLines) -> str:
    return lines.take().removeprefix(ENVIRONMENT_MARKER).strip()


def _parse_hunks(lines: _PatchLines) -> Iterator[Hunk]:
    while lines.next is not None:
        number, header = lines.number, lines.take().strip()
        if header.startswith(ADD_MARKER):
            yield AddFile(_cut_path(header, ADD_MARKER), _take_content(lines))
        elif header.startswith(DELETE_MARKER):
            yield DeleteFile(_cut_path(header, DELETE_MARKER))
        elif header.startswith(UPDATE_MARKER):
            yield _parse_update(_cut_path(header, UPDATE_MARKER), number, lines)
        else:
            raise _PatchError(
                f"'{header}' is not a valid hunk header. Valid hunk headers:"
                f" '{ADD_MARKER}{{path}}', '{DELETE_MARKER}{{path}}', '{UPDATE_MARKER}{{path}}'",
                number,
            )


def _cut_path(header: str, marker: str) -> str:
    return header.removeprefix(marker).strip()


def _take_content(lines: _PatchLines) -> str:
    content = []
    while (lines.next or "").startswith("+"):
        content.append(lines.take()[1:] + "\n")
    return "".join(content)


def _parse_update(path: str, number: int, lines: _PatchLines) -> UpdateFile:
    moves = (lines.next or "").startswith(MOVE_MARKER)
    move_to = _cut_path(lines.take(), MOVE_MARKER) if moves else None
    chunks: list[Chunk] = []
    while lines.next is not None and not lines.next.startswith("***"):
        if lines.next.strip():
            chunks.append(_parse_chunk(lines, is_first=not chunks))
        else:
            lines.take()
    if not chunks and not move_to:
        raise _PatchError(f"Update file hunk for path '{path}' is empty", number)
    return UpdateFile(path, move_to, tuple(chunks))


def _parse_chunk(lines: _PatchLines, *, is_first: bool) -> Chunk:
    number = lines.number
    contexts = []
    while lines.next == "@@" or (lines.next or "").startswith("@@ "):
        contexts.append(lines.take()[3:])
    if lines.number == number and not is_first:
        raise _PatchError(
            "Expected update hunk to start with a @@ context marker, got:"
            f" '{lines.next}'. After a chunk comes another one, '@@' first, or the next file",
            number,
        )
    changed = tuple(_take_changed_lines(lines))
    if not changed:
        raise _PatchError(_describe_missing_lines(lines), lines.number)
    at_end = (lines.next or "").rstrip() == END_OF_FILE_MARKER
    if at_end:
        lines.take()
    return Chunk(tuple(filter(str.strip, contexts)), changed, at_end, number)


def _take_changed_lines(lines: _PatchLines) -> Iterator[ChunkLine]:
    while lines.next is not None and lines.next[:1] in {"", " ", "-", "+"}:
        line = lines.take() or " "
        yield ChunkLine(cast("Sign", line[0]), line[1:])


def _describe_missing_lines(lines: _PatchLines) -> str:
    if lines.next in {None, END_OF_FILE_MARKER}:
        return "Update hunk does not contain any lines"
    return (
        f"Unexpected line found in update hunk: '{lines.next}'. Every line should start with"
        " ' ' (context line), '+' (added line), or '-' (removed line)"
    )
