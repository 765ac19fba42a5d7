"""The text of a patch → its hunks, or the first line that makes no sense (pure).

Strict where codex is: its words for what is wrong are kept. Besides, `@@` lines that follow each
other are contexts of one chunk, a file may be moved without a change, and any heredoc around the
patch is taken off.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from .hunks import Add, Chunk, Delete, Hunk, Invalid, Line, Sign, Update

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, DELETE, UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
MOVE, END_OF_FILE = "*** Move to: ", "*** End of File"
ENVIRONMENT = "*** Environment ID:"

_HEREDOC = re.compile(r"(?:(?:cat|apply_patch|applypatch)\s*)?<<\s*(['\"]?)(\w+)\1\s*")


class _Wrong(Exception):
    """Ends the reading of a patch."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.invalid = Invalid(message, line)


class _Lines:
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


def parse(text: str) -> tuple[Hunk, ...] | Invalid:
    """Return the hunks of a patch in its order, or why it is none; no hunk at all is fine."""
    try:
        lines = _Lines(_body(text))
        if (lines.next or "").startswith(ENVIRONMENT) and not _environment(lines):
            return Invalid("apply_patch environment_id cannot be empty")
        return tuple(_hunks(lines))
    except _Wrong as wrong:
        return wrong.invalid


def _body(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").strip().split("\n")]
    heredoc = _HEREDOC.fullmatch(lines[0])
    if heredoc and len(lines) > 3 and lines[-1].endswith(heredoc[2]):  # noqa: PLR2004 - two markers, two of the shell
        lines = lines[1:-1]
    if lines[0].strip() != BEGIN:
        raise _Wrong(f"The first line of the patch must be '{BEGIN}'")
    if lines[-1].strip() != END:
        raise _Wrong(f"The last line of the patch must be '{END}'")
    return lines[1:-1]


def _environment(lines: _Lines) -> str:
    return lines.take().removeprefix(ENVIRONMENT).strip()


def _hunks(lines: _Lines) -> Iterator[Hunk]:
    while lines.next is not None:
        number, header = lines.number, lines.take().strip()
        if header.startswith(ADD):
            yield Add(_path(header, ADD), _content(lines))
        elif header.startswith(DELETE):
            yield Delete(_path(header, DELETE))
        elif header.startswith(UPDATE):
            yield _update(_path(header, UPDATE), number, lines)
        else:
            raise _Wrong(
                f"'{header}' is not a valid hunk header. Valid hunk headers:"
                f" '{ADD}{{path}}', '{DELETE}{{path}}', '{UPDATE}{{path}}'",
                number,
            )


def _path(header: str, marker: str) -> str:
    return header.removeprefix(marker).strip()


def _content(lines: _Lines) -> str:
    content = []
    while (lines.next or "").startswith("+"):
        content.append(lines.take()[1:] + "\n")
    return "".join(content)


def _update(path: str, number: int, lines: _Lines) -> Update:
    moves = (lines.next or "").startswith(MOVE)
    move_to = _path(lines.take(), MOVE) if moves else None
    chunks: list[Chunk] = []
    while lines.next is not None and not lines.next.startswith("***"):
        if lines.next.strip():
            chunks.append(_chunk(lines, is_first=not chunks))
        else:
            lines.take()
    if not chunks and not move_to:
        raise _Wrong(f"Update file hunk for path '{path}' is empty", number)
    return Update(path, move_to, tuple(chunks))


def _chunk(lines: _Lines, *, is_first: bool) -> Chunk:
    number = lines.number
    contexts = []
    while lines.next == "@@" or (lines.next or "").startswith("@@ "):
        contexts.append(lines.take()[3:])
    if lines.number == number and not is_first:
        raise _Wrong(
            "Expected update hunk to start with a @@ context marker, got:"
            f" '{lines.next}'. After a chunk comes another one, '@@' first, or the next file",
            number,
        )
    changed = tuple(_changed(lines))
    if not changed:
        raise _Wrong(_without_lines(lines), lines.number)
    at_end = (lines.next or "").rstrip() == END_OF_FILE
    if at_end:
        lines.take()
    return Chunk(tuple(filter(str.strip, contexts)), changed, at_end, number)


def _changed(lines: _Lines) -> Iterator[Line]:
    while lines.next is not None and lines.next[:1] in {"", " ", "-", "+"}:
        line = lines.take() or " "
        yield Line(cast("Sign", line[0]), line[1:])


def _without_lines(lines: _Lines) -> str:
    if lines.next in {None, END_OF_FILE}:
        return "Update hunk does not contain any lines"
    return (
        f"Unexpected line found in update hunk: '{lines.next}'. Every line should start with"
        " ' ' (context line), '+' (added line), or '-' (removed line)"
    )
