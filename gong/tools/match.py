"""Where a text stands in a file, and the file with it replaced (pure; bytes in, bytes out).

Only matched spans change: every byte outside them stays as it is. CRLF and LF match each other; a
lone carriage return is text. What is put in gets the line ends of the file, told by its first.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .likeness import Span, find_lookalike_spans
from .text_files import strip_byte_order_mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .text_files import TextFile


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """A file with one span of it replaced."""

    before: bytes
    after: bytes
    start: int
    """Where the span begins, in both."""
    old_end: int
    """Where it ends in `before`."""
    new_end: int
    """Where it ends in `after`."""


class TextPlaces(NamedTuple):
    """Where a text stands."""

    spans: tuple[Span, ...]
    """Those that may be replaced: as it is where it so stands, else what looks like it."""
    total: int
    """How many there are in all, counting what only looks like it."""
    exact: bool
    """Whether the spans hold the text as it is, but for line ends."""


def find_text(text: str, wanted: str) -> TextPlaces:
    """Return where `wanted` stands in `text`; looks alone count too when it comes to being unique.

    What is found as it is is never taken for something that only looks like it.
    """
    wanted = strip_byte_order_mark(wanted)
    exact = _find_exact_spans(text, wanted)
    similar = find_lookalike_spans(text, wanted)
    return TextPlaces(
        tuple(exact or similar), len(exact) + _count_apart(similar, exact), bool(exact)
    )


def replace_spans(file: TextFile, spans: Sequence[Span], new: str) -> FileReplacement:
    """Return the file with `new` in place of each span; they stand in order and do not overlap."""
    text = file.text
    new = _to_unix_line_ends(new).replace("\n", _detect_line_end(text))
    first, last = spans[0].start, spans[-1].end
    kept = (text[one.end : other.start] for one, other in pairwise(spans))
    middle = new + "".join(part + new for part in kept)
    before, after = file.to_bytes(text), file.to_bytes(text[:first] + middle + text[last:])
    start = len(file.mark) + len(file.encode_piece(text[:first]))
    rest = len(file.encode_piece(text[last:]))
    return FileReplacement(before, after, start, len(before) - rest, len(after) - rest)


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but their line ends."""
    return _to_unix_line_ends(one) == _to_unix_line_ends(other)


def _find_exact_spans(text: str, wanted: str) -> list[Span]:
    pattern = "\r?\n".join(map(_escape_literal, _to_unix_line_ends(wanted).split("\n")))
    return [Span(*found.span()) for found in re.finditer(pattern, text)]


def _count_apart(spans: Sequence[Span], others: Sequence[Span]) -> int:
    """Return how many spans overlap none of the others; both stand in order."""
    ends = [other.end for other in others]
    count = 0
    for span in spans:
        nearest = bisect_right(ends, span.start)
        count += nearest == len(others) or others[nearest].start >= span.end
    return count


def _escape_literal(part: str) -> str:
    return re.escape(part).replace("\\\r", "\\\r(?!\n)")


def _to_unix_line_ends(text: str) -> str:
    return strip_byte_order_mark(text).replace("\r\n", "\n")


def _detect_line_end(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
