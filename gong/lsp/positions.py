"""Places in a text as language servers count them, and as people do; pure.

A server counts lines and columns from 0, and columns in units of an encoding; people count both
from 1, and columns in characters. What lies beyond the text becomes its nearest place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

Encoding = Literal["utf-8", "utf-16", "utf-32"]
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_ASTRAL = 0x10000


class Spot(NamedTuple):
    """A place in a text, as people count it."""

    line: int
    column: int


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends, as servers count them."""
    return _LINE_ENDS.split(text)


def count_units(text: str, encoding: Encoding) -> int:
    """Return the length of a text in units of an encoding."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "replace"))
    return len(text) + sum(ord(letter) >= _ASTRAL for letter in text)


def to_position(lines: list[str], spot: Spot, encoding: Encoding) -> dict[str, int]:
    """Return a place as a server counts it."""
    line = min(max(spot.line, 1), len(lines))
    before = lines[line - 1][: max(spot.column - 1, 0)]
    return {"line": line - 1, "character": count_units(before, encoding)}


def to_spot(lines: list[str], position: dict[str, int], encoding: Encoding) -> Spot:
    """Return a place of a server as people count it; of a text that is not known, as it is."""
    number, units = max(position["line"], 0), max(position["character"], 0)
    if number >= len(lines):
        return Spot(number + 1, units + 1)
    line = lines[number]
    if encoding == "utf-32" or line.isascii():
        return Spot(number + 1, min(units, len(line)) + 1)
    for column, letter in enumerate(line):
        if units <= 0:
            return Spot(number + 1, column + 1)
        units -= count_units(letter, encoding)
    return Spot(number + 1, len(line) + 1)


def find_symbol(lines: list[str], symbol: str, line: int | None) -> Spot | None:
    """Return where a text has a name, in the given line if there is one; None where it has none."""
    word = re.compile(rf"(?<!\w){re.escape(symbol)}(?!\w)")
    numbers = range(1, len(lines) + 1)
    for number in numbers if line is None else [line] if line in numbers else []:
        if match := word.search(lines[number - 1]):
            last = symbol.rfind(".") + 1  # of `module.name` the name is meant
            return Spot(number, match.start() + last + 1)
    return None


def to_uri(path: str) -> str:
    """Return the address of a file."""
    return Path(path).as_uri()


def to_path(uri: str) -> str | None:
    """Return the path of the file at an address; None where it is of something else."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    is_file = parts.scheme == "file" and parts.netloc in {"", "localhost"} and "\0" not in path
    is_file = is_file and not (parts.query or parts.fragment)
    return path if is_file else None
