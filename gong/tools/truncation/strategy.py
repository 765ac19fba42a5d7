"""Strategies of the truncation service: whether a text is too long, and what of it stays (pure)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..truncate import CONTINUATION, encode_text, truncate_head, truncate_tail

if TYPE_CHECKING:
    from .values import TruncationSettings


class KeptText(NamedTuple):
    """What is left of a text, and how much went: lines or bytes, never both."""

    content: str
    removed_lines: int | None = None
    removed_bytes: int | None = None


class TruncationStrategy(Protocol):
    """A way of cutting."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether the text is over a limit."""
        ...

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Cut a text that is."""
        ...


def count_lines(content: str) -> int:
    """Return the number of lines; the end of the last one opens no other."""
    return content.removesuffix("\n").count("\n") + 1


def count_bytes(content: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(encode_text(content))


class LinesAndBytesStrategy:
    """Cuts at whichever limit comes first: whole lines, or a part of one that is too long alone."""

    name = "default"

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many lines or bytes."""
        too_many = count_lines(content) > config.max_lines
        return too_many or count_bytes(content) > config.max_bytes

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep the end that the configuration names; count bytes when there were too many."""
        total = count_bytes(content)
        cut = truncate_tail if config.direction == "tail" else truncate_head
        left = cut(content.removesuffix("\n"), config.max_lines, config.max_bytes)
        kept = left.content
        if left.first_line_exceeds_limit:
            kept = _take_first_bytes(content, config.max_bytes)
        if left.truncated_by == "bytes" or total > config.max_bytes:
            return KeptText(kept, removed_bytes=total - count_bytes(kept))
        return KeptText(kept, removed_lines=left.total_lines - left.output_lines)


class JsonItemsStrategy:
    """Keeps whole items of a JSON array, a line of the limit each; all else as by default.

    What is left of an array is one again, so that a program can read it.
    """

    name = "json-array"

    def __init__(self) -> None:
        self._otherwise = LinesAndBytesStrategy()

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many items, or too many lines or bytes in all."""
        items = _parse_items(content)
        too_many = items is not None and len(items) > config.max_lines
        return too_many or self._otherwise.needs_truncation(content, config)

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep items as long as they fit; removed lines are removed items."""
        items = _parse_items(content)
        if items is None:
            return self._otherwise.truncate(content, config)
        tail = config.direction == "tail"
        count = _count_fitting_items(items[::-1] if tail else items, config)
        if not count:
            return self._otherwise.truncate(content, config)
        kept = items[-count:] if tail else items[:count]
        return KeptText(_dump_items(kept), removed_lines=len(items) - count)


def _parse_items(content: str) -> list[Any] | None:
    if not content.lstrip().startswith("["):
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None  # no JSON: text like any other
    return value if isinstance(value, list) else None


def _count_fitting_items(items: list[Any], config: TruncationSettings) -> int:
    """Return how many of the first items stay within both limits."""
    size, count = count_bytes("[\n]"), 0
    for item in items[: config.max_lines]:
        size += count_bytes(_dump_items([item])) - count_bytes("[]")
        if size > config.max_bytes:
            break
        count += 1
    return count


def _dump_items(items: list[Any]) -> str:
    return json.dumps(items, indent=2, ensure_ascii=False)


def _take_first_bytes(content: str, max_bytes: int) -> str:
    data = encode_text(content)
    end = min(max_bytes, len(data))
    while 0 < end < len(data) and data[end] & 0b1100_0000 == CONTINUATION:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")
