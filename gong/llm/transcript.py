"""The transcript a summariser is shown, as text and back: pure.

`written` and `read` are each other's inverse, whatever is said in between.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

SUMMARISER = "You write the summary from which a conversation continues."
"""The first sentence of every summariser's system prompt: by it the offline model knows one."""
FOCUS_PREFIX = "Pay special attention to: "
"""How the line of a summariser's request begins that names what to look at most."""
LENGTH_PREFIX = "Characters the summary may have at most: "
"""How the line of a summariser's request begins that bounds its answer."""
FAILED_PREFIX = "[error] "
"""How the text of a tool's piece begins when the call failed."""

_HEADER_MARK = "=== "
_END_LINE = "=== end"
_PIECE_HEADER = re.compile(r"=== (user|assistant|tool|summary)(?:: (.*))?\Z", re.DOTALL)
_ESCAPED_HEADER = re.compile(r"\\*=== ")


class TranscriptPiece(Struct, frozen=True):
    """One message of a transcript; `name` is the tool's."""

    role: Literal["user", "assistant", "tool", "summary"]
    text: str
    name: str = ""


def format_transcript(pieces: Iterable[TranscriptPiece]) -> str:
    """Return pieces as text that `read` takes apart again, whatever they say.

    A line `=== ROLE` or `=== ROLE: NAME` begins each, the line `=== end` ends them all; a line of
    a text that looks like one has a backslash before it.
    """
    return "\n".join([*map(_format_piece, pieces), _END_LINE])


def _format_piece(piece: TranscriptPiece) -> str:
    name = piece.name.replace("\\", "\\\\").replace("\n", "\\n")
    header = f"{_HEADER_MARK}{piece.role}: {name}" if name else f"{_HEADER_MARK}{piece.role}"
    lines = piece.text.split("\n")
    return "\n".join(
        [header, *(f"\\{line}" if _ESCAPED_HEADER.match(line) else line for line in lines)]
    )


def parse_transcript(text: str) -> tuple[TranscriptPiece, ...]:
    """Return the pieces of a transcript; what stands before and behind it is passed over."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in text.split("\n"):
        if line == _END_LINE:
            break
        header = _PIECE_HEADER.match(line)
        if header:
            found.append((header, []))
        elif found:
            found[-1][1].append(
                line[1:] if line[:1] == "\\" and _ESCAPED_HEADER.match(line) else line
            )
    return tuple(_parse_piece(header, "\n".join(lines)) for header, lines in found)


def _parse_piece(header: re.Match[str], text: str) -> TranscriptPiece:
    name = re.sub(r"\\(.)", lambda one: "\n" if one[1] == "n" else one[1], header[2] or "")
    return TranscriptPiece(header[1], text, name)  # type: ignore[arg-type]  # the pattern names the roles


def find_focus(text: str) -> str:
    """Return what a summariser's request wants looked at most; empty when it does not say."""
    return _find_line(text, FOCUS_PREFIX)


def find_length(text: str) -> int | None:
    """Return how many characters a summariser's request allows; None when it does not say."""
    said = _find_line(text, LENGTH_PREFIX)
    return int(said) if said.isdecimal() else None


def _find_line(text: str, begin: str) -> str:
    """Return the rest of the first line before the transcript that begins so."""
    for line in text.split("\n"):
        if line.startswith(begin):
            return line.removeprefix(begin).strip()
        if line.startswith(_HEADER_MARK):
            break
    return ""
