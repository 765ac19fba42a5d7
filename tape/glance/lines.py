"""The words of an entry from its line, read by the standard library alone.

Invariant: what is told is what `tape.index.contents` tells. Whatever is not quite as expected (a
head that the index does not know, numbers and escapes that not all take) raises ValueError instead.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from math import isinf

from ..clock import micros
from .words import ANSWERED, strings

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .excerpts import Texts
    from .ranking import Hit

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_DIGITS = 18
"""Of a whole number that fits into 64 bits for sure."""


def texts(line: bytes, hit: Hit) -> Texts:
    """Return what the line (without its newline) of a hit said, called and answered.

    Raises ValueError where it is not the line that the index holds, or of a shape nobody writes.
    """
    if not _holds(line):
        raise ValueError("its hashes do not hold")
    if _SURROGATE.search(line):
        raise ValueError("may not be well-formed text")
    try:
        entry = _OBJECTS.decode(line.decode())
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    match entry:
        case {
            "v": 1,
            "id": hit.entry,
            "n": hit.n,
            "type": hit.type,
            "time": str(time),
            "data": dict(data),
        } if micros(time) == hit.time:
            return _told(hit.type, _blocks(data.get("content", "")))
    raise ValueError("not the line that was indexed")


def _holds(line: bytes) -> bool:
    """Tell whether both hashes of a line of today's format hold, as `tape.line` computes them."""
    cut = line.find(b',"data":', 49)
    named, told = line[7:47].decode("latin-1"), line[cut - 33 : cut - 1].decode("latin-1")
    return (sha256(line[49:cut]).hexdigest()[:40], sha256(line[cut + 8 : -1]).hexdigest()[:32]) == (
        named,
        told,
    )


def _told(kind: str, blocks: list[dict[str, Any]]) -> Texts:
    match kind:
        case "user" | "context":
            return _said(blocks), "", ""
        case "assistant":
            return _said(blocks), "\n".join(_called(blocks)), ""
        case "tool.result":
            return "", "", _said(blocks, ANSWERED)
    raise ValueError("an entry of this type has no words")


def _blocks(content: object) -> list[dict[str, Any]]:
    """Return the blocks of a message; a text is one."""
    blocks = content if isinstance(content, list) else [{"text": content}]
    if not all(isinstance(block, dict) and _is_plain(block) for block in blocks):
        raise ValueError("not the blocks of a message")
    return blocks


def _is_plain(block: dict[str, Any]) -> bool:
    return all(isinstance(block.get(key, ""), str) for key in ("type", "id", "name"))


def _said(blocks: list[dict[str, Any]], most: int | None = None) -> str:
    heads = [_head(block.get("text", "")) for block in blocks]
    parts = zip(blocks, heads, strict=True)
    return "\n".join([text[:most] for b, text in parts if text and b.get("type") != "thinking"])


def _called(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block.get("type") == "tool_call":
            yield block.get("name", "")
            given = block.get("args_text")
            yield from strings(block.get("args") if given is None else _head(given))


def _head(text: object) -> str:
    """Return a text, or of a blob the beginning that stands in its place."""
    match text:
        case str():
            return text
        case {"$blob": str(), "bytes": int(), "head": str(head)}:
            return head
    raise ValueError("neither a text nor a blob")


def _whole(number: str) -> int:
    if len(number) > _DIGITS or number == "-0":
        raise ValueError("not a number of 64 bits")
    return int(number)


def _broken(number: str) -> float:
    value = float(number)
    if isinf(value):
        raise ValueError("not a number of 64 bits")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_OBJECTS = json.JSONDecoder(parse_int=_whole, parse_float=_broken, parse_constant=_constant)
