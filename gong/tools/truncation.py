"""How a long text is cut; pure. The engine of all truncation.

A result is cut once, by one of these, which choose what stays, and what is said of the rest:

    | who cuts                       | with                         | what stays            |
    | ------------------------------ | ---------------------------- | --------------------- |
    | read, grep, find, ls           | truncate_head                | whole first lines     |
    | bash                           | truncate_tail                | whole last lines      |
    | tool variant of a model family | limit_text                   | both ends, or the end |
    | the registry, any other tool   | strategy (lines and bytes)   | the end that is set   |

Lines are what is between line feeds, so a final one opens an empty last line. Bytes are those of
UTF-8, line feeds included; characters are code points. A cut never falls inside a character.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..tool_settings import MAX_BYTES, MAX_LINES, OutputCaps, TruncationSettings
from .limits import MAX_KEPT_BYTES, OutputLimits, count_bytes, encode_text, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..tool_settings import Direction, StrategyName
    from .limits import LimitMode

MAX_LINE_CHARS = 500
_CONTINUATION = 0b1000_0000
"""The two high bits of a UTF-8 byte that is not the first of its character."""


def count_fitting(sizes: Iterable[int], max_count: int | None, max_bytes: int | None) -> int:
    """Return how many parts fit, from the first on, with a byte between; None: no limit."""
    count, total = 0, -1
    for size in sizes:
        total += 1 + size
        if count == max_count or (max_bytes is not None and total > max_bytes):
            break
        count += 1
    return count


def split_limit(limit: int, mode: LimitMode) -> tuple[int, int]:
    """Return how many of `limit` parts stay at the beginning and at the end."""
    first = limit // 2 if mode == "head_tail" else 0
    return first, limit - first


class TruncatedText(Struct, frozen=True, kw_only=True):
    """The rest of a cut text, and the original size; a limit of None means no limit."""

    content: str
    truncated: bool
    truncated_by: Literal["lines", "bytes", "chars"] | None = None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool = False
    first_line_exceeds_limit: bool = False
    max_lines: int | None
    max_bytes: int | None


def truncate_head(
    text: str, max_lines: int | None = MAX_LINES, max_bytes: int | None = MAX_BYTES
) -> TruncatedText:
    """Keep whole lines from the beginning; nothing when the first alone is too long."""
    return _truncate_text(text, max_lines, max_bytes, "head")


def truncate_tail(
    text: str, max_lines: int | None = MAX_LINES, max_bytes: int | None = MAX_BYTES
) -> TruncatedText:
    """Keep whole lines from the end; the end of the last one when it alone is too long."""
    return _truncate_text(text, max_lines, max_bytes, "tail")


def _truncate_text(
    text: str, max_lines: int | None, max_bytes: int | None, direction: Direction
) -> TruncatedText:
    data = encode_text(text)
    lines = data.split(b"\n")
    few = max_lines is None or len(lines) <= max_lines
    whole = few and (max_bytes is None or len(data) <= max_bytes)
    sizes = map(len, lines if direction == "head" else reversed(lines))
    kept_bytes, count = data, count_fitting(sizes, max_lines, max_bytes)
    partial = direction == "tail" and not count
    if partial:
        kept_bytes, count = _cut_bytes(lines[-1], max_bytes or 0, "tail"), 1
    elif not whole:
        kept_bytes = b"\n".join(lines[:count] if direction == "head" else lines[-count:])
    by_lines = count == max_lines and not partial
    return TruncatedText(
        content=kept_bytes.decode("utf-8", "surrogatepass"),
        truncated=not whole,
        truncated_by=None if whole else "lines" if by_lines else "bytes",
        total_lines=len(lines),
        total_bytes=len(data),
        output_lines=count,
        output_bytes=len(kept_bytes),
        last_line_partial=partial,
        first_line_exceeds_limit=not count,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def truncate_line(line: str, max_chars: int = MAX_LINE_CHARS, at: int = 0) -> TruncatedText:
    """Keep the first `max_chars` characters of a line, with a mark that it was cut.

    Where what is looked for begins at `at`, behind half of them, those around it are kept.
    """
    long = len(line) > max_chars
    start = max(min(at - max_chars // 2, len(line) - max_chars), 0)
    content = line
    if long:
        before = "[truncated] ..." if start else ""
        after = "... [truncated]" if start + max_chars < len(line) else ""
        content = f"{before}{line[start : start + max_chars]}{after}"
    return TruncatedText(
        content=content,
        truncated=long,
        truncated_by="chars" if long else None,
        total_lines=1,
        total_bytes=count_bytes(line),
        output_lines=1,
        output_bytes=count_bytes(content),
        last_line_partial=long,
        max_lines=None,
        max_bytes=None,
    )


def _cut_bytes(data: bytes, max_bytes: int, direction: Direction) -> bytes:
    """Return the first or the last bytes, as many as are whole characters."""
    head = direction == "head"
    at = max_bytes if head else len(data) - max_bytes
    while 0 < at < len(data) and data[at] & 0b1100_0000 == _CONTINUATION:
        at += -1 if head else 1
    return data[:at] if head else data[max(at, 0) :]


def keep_full_text(text: str, rest: str = "the rest is not saved", size: int | None = None) -> str:
    """Return what a result keeps of a text the model saw only a part of.

    That is all of it up to MAX_KEPT_BYTES; of a longer one the beginning, and a line that says how
    much there was and, as `rest`, where the others are. `size` is that of the whole in bytes where
    `text` is only its beginning.
    """
    if size is None:
        size = len(text) if text.isascii() else count_bytes(text)
    if size <= MAX_KEPT_BYTES:
        return text
    start = _cut_bytes(encode_text(text[:MAX_KEPT_BYTES]), MAX_KEPT_BYTES, "head")
    beginning = start.decode("utf-8", "surrogatepass")
    return f"{beginning}\n\n[{MAX_KEPT_BYTES} of {size} bytes: {rest}]"


class NotedText(NamedTuple):
    """The head of a text, with what is said of its cuts after it."""

    content: str
    cut: TruncatedText
    noted: bool
    """Whether anything is said."""


def cut_with_notices(
    text: str, caps: OutputCaps, before: Sequence[str] = (), after: Sequence[str] = ()
) -> NotedText:
    """Cut a text to its head, and add notices: those before and after that of this cut."""
    cut = truncate_head(text, *caps)
    notices = [*before, *([describe_cap_reached(cut)] if cut.truncated else []), *after]
    content = f"{cut.content}\n\n[{'. '.join(notices)}]" if notices else cut.content
    return NotedText(content, cut, bool(notices))


def describe_cap_reached(cut: TruncatedText) -> str:
    """Return what is said of a text that was cut."""
    if cut.truncated_by == "lines":
        return f"{cut.max_lines} lines limit reached"
    return f"{format_size(cut.max_bytes or 0)} limit reached"


def describe_limit_reached(limit: int, what: str, name: str) -> str:
    """Return what is said where there may be more than was asked for."""
    return f"{limit} {what} limit reached. Use {name}={limit * 2} for more, or refine pattern"


def limit_text(text: str, limits: OutputLimits) -> str:
    """Return the text cut by characters and then by lines, each cut said in its place.

    Characters go first because they bound everything: two lines may be ten megabytes each.
    """
    return limit_joined_ends(text, text, len(text), text.count("\n") + 1, limits)


def limit_joined_ends(head: str, tail: str, chars: int, lines: int, limits: OutputLimits) -> str:
    """Return `limit_text` of a text of which only both ends are at hand, with its exact counts.

    Both ends have `limits.chars` characters at least, or are the whole text.
    """
    removed, cut = chars - limits.chars, tail
    if removed > 0:
        first, last = split_limit(limits.chars, limits.mode)
        which = f"{removed} characters were removed from the middle."
        if not first:
            which = f"First {removed} characters were removed."
        parts = (head[:first], _WARNING.format(which), tail[len(tail) - last :])
        cut = "\n\n".join(parts[not first :])
    return cut if limits.lines is None else _limit_lines(cut, lines, limits.lines)


_WARNING = (
    "[WARNING: Tool output was truncated. {} The full output is available in the event stream."
    " If you need to see specific parts, re-run the tool with more targeted parameters.]"
)


def _limit_lines(text: str, total: int, limit: int) -> str:
    """Keep half of the lines from each end.

    Where the cut takes the warning of the one before it with it, all that is left are whole lines
    of the text as it came, and the number says how many of its `total` are missing.
    """
    lines = text.split("\n")
    if min(len(lines), total) <= limit:  # a notice of the cut before it makes no line too many
        return text
    before, after = split_limit(limit, "head_tail")
    first, last = lines[:before], lines[len(lines) - after :]
    start = _WARNING.partition("{")[0]
    warned = any(line.startswith(start) for line in (*first, *last))
    lost = any(line.startswith(start) for line in lines) and not warned
    omitted = (total if lost else len(lines)) - limit
    return "\n".join((*first, f"[... {omitted} lines omitted ...]", *last))


class KeptText(NamedTuple):
    """What is left of a text, and how much went: lines or bytes, never both."""

    content: str
    removed_lines: int | None = None
    removed_bytes: int | None = None


class TruncationEvent(Struct, frozen=True):
    """What became of one text; sizes in bytes, the time in milliseconds since 1970."""

    type: Literal["truncated", "skipped", "error"]
    tool_name: str
    original_size: int
    truncated_size: int
    timestamp: int
    output_path: str | None = None
    error: str | None = None


class TruncationStrategy(Protocol):
    """A way to cut a text; what it raises leaves the text whole."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether a text is to be cut."""
        ...

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Return what stays of a text, and how many lines or bytes were left out."""
        ...


class LinesAndBytesStrategy:
    """Cuts at whichever limit comes first: whole lines, or a part of one that is too long alone.

    It is the strategy where none is set, and the base of others.
    """

    name = "lines_and_bytes"

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many lines or bytes; the end of the last line opens no other."""
        too_many = content.removesuffix("\n").count("\n") + 1 > config.max_lines
        return too_many or count_bytes(content) > config.max_bytes

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep the end that the configuration names; count bytes when there were too many."""
        total = count_bytes(content)
        lines, limit = content.removesuffix("\n"), config.max_bytes
        left = _truncate_text(lines, config.max_lines, limit, config.direction)
        text = left.content
        if left.first_line_exceeds_limit:
            text = _cut_bytes(encode_text(content), limit, "head").decode("utf-8", "surrogatepass")
        if left.truncated_by == "bytes" or total > limit:
            return KeptText(text, removed_bytes=total - count_bytes(text))
        return KeptText(text, removed_lines=left.total_lines - left.output_lines)


class LinesStrategy(LinesAndBytesStrategy):
    """Cuts whole lines, however long each of them is."""

    name = "lines"

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many lines."""
        return super().needs_truncation(content, replace(config, max_bytes=sys.maxsize))

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep lines at the end that the configuration names."""
        return super().truncate(content, replace(config, max_bytes=sys.maxsize))


class BytesStrategy:
    """Cuts where the bytes are full, also inside a line, but not inside a character."""

    name = "bytes"

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many bytes."""
        return count_bytes(content) > config.max_bytes

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep bytes at the end that the configuration names."""
        data = encode_text(content)
        rest = _cut_bytes(data, config.max_bytes, config.direction)
        return KeptText(rest.decode("utf-8", "surrogatepass"), removed_bytes=len(data) - len(rest))


class JsonItemsStrategy(LinesAndBytesStrategy):
    """Keeps whole items of a JSON array, a line of the limit each; all else as its base does.

    What is left of an array is one again, so that a program can read it.
    """

    name = "json_items"

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many items, or too many lines or bytes in all."""
        too_many = len(_parse_items(content)) > config.max_lines
        return too_many or super().needs_truncation(content, config)

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep items as long as they fit; removed lines are removed items."""
        items, tail = _parse_items(content), config.direction == "tail"
        sizes = (
            count_bytes(_dump_items([item])) - len("[]") - 1
            for item in (items[::-1] if tail else items)
        )
        count = count_fitting(sizes, config.max_lines, config.max_bytes - len("[\n]") - 1)
        if not count:
            return super().truncate(content, config)
        items_left = items[-count:] if tail else items[:count]
        return KeptText(_dump_items(items_left), removed_lines=len(items) - count)


def _parse_items(content: str) -> list[Any]:
    """Return the items of a JSON array; none for any other text."""
    with suppress(ValueError, RecursionError):
        value = json.loads(content) if content.lstrip().startswith("[") else None
        return value if isinstance(value, list) else []
    return []


def _dump_items(items: list[Any]) -> str:
    return json.dumps(items, indent=2, ensure_ascii=False)


STRATEGIES: Mapping[StrategyName, TruncationStrategy] = {
    "lines_and_bytes": LinesAndBytesStrategy(),
    "lines": LinesStrategy(),
    "bytes": BytesStrategy(),
    "json_items": JsonItemsStrategy(),
}
"""The strategies that can be set."""
