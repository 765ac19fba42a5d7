"""Where a text stands in a file, and the file with it replaced (pure; bytes in, bytes out).

Only the matched span changes: every byte outside it stays as it is. CRLF and LF match each other;
a lone carriage return is text. What is put in gets the line ends of the file, told by its first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .text_files import BOM
from .truncate import encoded

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file with one span of it replaced."""

    before: bytes
    after: bytes
    start: int
    """Where the span begins, in both."""
    old_end: int
    """Where it ends in `before`."""
    new_end: int
    """Where it ends in `after`."""


def spans(data: bytes, text: str) -> Sequence[tuple[int, int]]:
    """Return where `text` stands in `data`, first byte and the one after the last."""
    pattern = b"\r?\n".join(map(_literal, _unix(text).split(b"\n")))
    return [found.span() for found in re.finditer(pattern, data)]


def replaced(data: bytes, span: tuple[int, int], text: str) -> Replacement:
    """Return `data` with `text` in place of the span."""
    start, end = span
    new = _unix(text).replace(b"\n", _line_end(data))
    return Replacement(data, data[:start] + new + data[end:], start, end, start + len(new))


def same(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but their line ends."""
    return _unix(one) == _unix(other)


def _literal(part: bytes) -> bytes:
    return re.escape(part).replace(b"\\\r", b"\\\r(?!\n)")


def _unix(text: str) -> bytes:
    return encoded(text).removeprefix(BOM).replace(b"\r\n", b"\n")


def _line_end(data: bytes) -> bytes:
    first = data.find(b"\n")
    return b"\r\n" if first > 0 and data[first - 1 : first] == b"\r" else b"\n"
