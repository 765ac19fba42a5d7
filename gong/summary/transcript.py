r"""The transcript that a summariser reads: as pieces, and as text. Pure.

`format_transcript` and `parse_transcript` are each other's inverse, whatever the texts contain:

    === user
    Fix it.
    \=== user: a line that only looks like a header has a backslash before it
    === tool: bash
    [error] no such file
    === end
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FAILED_PREFIX = "[error] "
"""Start of the text of a tool's piece if the call failed."""
HEADER_MARK = "=== "
"""Start of the line before each piece."""
_END_LINE = "=== end"
_PIECE_HEADER = re.compile(r"=== (user|assistant|tool|summary)(?:: (.*))?\Z", re.DOTALL)
_ESCAPED_HEADER = re.compile(r"\\*=== ")
_ESCAPED_CHARACTER = re.compile(r"\\(.)")
_JOINED = 1_000
"""Pieces that are joined at once."""


class TranscriptPiece(Struct, frozen=True, gc=False):
    """One message of a transcript; `name` is the tool's."""

    role: Literal["user", "assistant", "tool", "summary"]
    text: str
    name: str = ""


def format_transcript(pieces: Iterable[TranscriptPiece]) -> str:
    """Return pieces as text that `read` takes apart again, whatever they say.

    A line `=== ROLE` or `=== ROLE: NAME` begins each, the line `=== end` ends them all; a line of
    a text that looks like one has a backslash before it.
    """
    rest = iter(pieces)
    parts = []
    while part := "".join(map(_format_piece, islice(rest, _JOINED))):  # a list of all is as large
        parts.append(part)
    return "".join((*parts, _END_LINE))


def measure_transcript(pieces: Iterable[TranscriptPiece]) -> int:
    """Return the characters of the transcript of pieces, without building it."""
    return sum(map(len, map(_format_piece, pieces))) + len(_END_LINE)


def _format_piece(piece: TranscriptPiece) -> str:
    name = piece.name.replace("\\", "\\\\").replace("\n", "\\n")
    header = f"{HEADER_MARK}{piece.role}: {name}" if name else HEADER_MARK + piece.role
    text = piece.text
    if HEADER_MARK in text:
        text = "\n".join(
            f"\\{line}" if _ESCAPED_HEADER.match(line) else line for line in text.split("\n")
        )
    return f"{header}\n{text}\n"


def parse_transcript(text: str) -> tuple[TranscriptPiece, ...]:
    """Return the pieces of a transcript; text before and after it is ignored."""
    pieces: list[TranscriptPiece] = []
    role: Any = None
    name, lines = "", list[str]()
    for line in _iter_lines(text):
        if header := _PIECE_HEADER.match(line) if line.startswith(HEADER_MARK) else None:
            if role is not None:
                pieces.append(TranscriptPiece(role, "\n".join(lines), name))
            role = header[1]  # the pattern names the roles
            name = _ESCAPED_CHARACTER.sub(
                lambda escape: "\n" if escape[1] == "n" else escape[1], header[2] or ""
            )
            lines.clear()
        elif line == _END_LINE:
            break
        else:
            lines.append(line[1:] if line[:1] == "\\" and _ESCAPED_HEADER.match(line) else line)
    if role is not None:
        pieces.append(TranscriptPiece(role, "\n".join(lines), name))
    return tuple(pieces)


def _iter_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, which may be many millions, without a list of them."""
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield text[begin:end]
        begin = end + 1
    yield text[begin:]
