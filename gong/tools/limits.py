"""Limits of tool results: what is set (values), and how a long text is cut (pure).

The configuration uses the settings as tables of config.toml. A result is cut once, by one of

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
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

from msgspec import Meta, Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


Direction = Literal["head", "tail"]
"""Which end of a text is kept."""
PositiveCount = Annotated[int, Meta(ge=1)]
"""At least one."""
Count = Annotated[int, Meta(ge=0)]
"""A number of things, often with 0 for no limit."""
Amount = Annotated[float, Meta(ge=0, le=1e9)]
"""Seconds or US dollars; no amount is infinite."""
Share = Annotated[float, Meta(ge=0, le=1)]
"""A part of a whole."""

MAX_LINES = 2000
MAX_BYTES = 51_200
RETENTION_DAYS = 7.0
"""Age in days at which saved files are deleted, if they are not on a tape."""
MAX_TIMEOUT_MS = 600_000
"""Maximum timeout of any command in milliseconds."""
Timeout = Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_MS)]
"""A timeout of a command in milliseconds."""


class OutputCaps(NamedTuple):
    """Where a tool cuts its own text; None is no limit of lines."""

    max_lines: int | None = MAX_LINES
    max_bytes: int = MAX_BYTES


class TruncationOverride(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of one tool; None is the setting for all tools."""

    max_lines: PositiveCount | None = None
    max_bytes: PositiveCount | None = None
    direction: Direction | None = None
    enabled: bool | None = None


class TruncationSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How results are cut; all is set."""

    max_lines: PositiveCount = MAX_LINES
    """Lines of a result that is not cut."""
    max_bytes: PositiveCount = MAX_BYTES
    """Bytes of a result that is not cut."""
    direction: Direction = "head"
    """Which part of a longer result is kept."""
    enabled: bool = True
    """Whether results are cut."""
    retention_days: Amount = RETENTION_DAYS
    """Age in days at which saved files are deleted, if they are not on a tape."""
    storage_dir: str | None = None
    """Folder of saved files without a tape; None is one among temporary files."""
    tools: dict[str, TruncationOverride] = field(default_factory=dict)
    """Settings of single tools, by name."""


class ToolSettings(Struct, frozen=True):
    """Settings of the built-in tools."""

    command_prefix: str = ""
    """Lines that bash runs before every command."""
    default_timeout_ms: Timeout | None = None
    """Timeout of a command that sets none; None is the tool's own default."""
    max_timeout_ms: Timeout = MAX_TIMEOUT_MS
    """Maximum timeout of a command, whatever it asks for."""
    output_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum characters of a result, by tool; bytes for read, bash, grep, find and ls."""
    line_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum lines of a result, by tool."""
    truncation: TruncationSettings = TruncationSettings()
    """Limits for results that their tool does not cut."""

    def caps(self, name: str, *, by_lines: bool = True) -> OutputCaps:
        """Return the limits of a tool's own text; without `by_lines`, lines only if set."""
        own = self.truncation.tools.get(name, TruncationOverride())
        usual = self.truncation.max_lines if by_lines else None
        return OutputCaps(
            self.line_limits.get(name) or own.max_lines or usual,
            self.output_limits.get(name) or own.max_bytes or self.truncation.max_bytes,
        )


DEFAULT_SETTINGS = ToolSettings()
"""The settings where nothing is set."""
LINE_CAPS, NO_LINE_CAPS = OutputCaps(), OutputCaps(None)
"""The usual limits, with one of lines and without."""

LimitMode = Literal["head_tail", "tail"]
"""What stays: both ends of a text, or its end."""


class OutputLimits(NamedTuple):
    """How long a result of a tool variant may be."""

    chars: int
    mode: LimitMode
    lines: int | None = None


FAMILY_LIMITS: Mapping[str, OutputLimits] = {
    "read_file": OutputLimits(50_000, "head_tail"),
    "shell": OutputLimits(30_000, "head_tail", 256),
    "grep": OutputLimits(20_000, "tail", 200),
    "glob": OutputLimits(20_000, "tail", 500),
    "edit_file": OutputLimits(10_000, "tail"),
    "apply_patch": OutputLimits(10_000, "tail"),
    "write_file": OutputLimits(1_000, "tail"),
    "spawn_agent": OutputLimits(20_000, "head_tail"),
}
"""Limits by the tool's name in model families; settings override them."""
FAMILY_LIMIT_NAMES: Mapping[str, str] = {"grep_search": "grep", "replace": "edit_file"}
"""Name of a tool variant in the table of limits, if it differs."""


def choose_family_limits(name: str, settings: ToolSettings = DEFAULT_SETTINGS) -> OutputLimits:
    """Return the limits of a tool variant; settings, under either name, override the table."""
    listed = FAMILY_LIMIT_NAMES.get(name, name)
    limits = FAMILY_LIMITS[listed]
    for label in (listed, name):
        limits = limits._replace(
            chars=settings.output_limits.get(label, limits.chars),
            lines=settings.line_limits.get(label, limits.lines),
        )
    return limits


MAX_LINE_CHARS = 500
KILOBYTE = 1024
MAX_KEPT_BYTES = 1 << 20
"""Bytes of a text that a result keeps beside the part the model saw, where no tape keeps it."""
MAX_STORED_BYTES = 64 * MAX_KEPT_BYTES
"""Bytes of lines of files that a tape keeps: the files are still there, and pages follow pages."""
MAX_WHOLE_BYTES = 64 * MAX_KEPT_BYTES
"""Bytes of a file that is taken into memory whole: to be changed, or because it is no text."""
FULL_BYTES = 5 * 1024 * 1024
"""Longer output than this stays in its file, or blob, only."""


_CONTINUATION = 0b1000_0000
"""The two high bits of a UTF-8 byte that is not the first of its character."""


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
    kept_bytes, count, size = data, 0, -1
    for line in lines if direction == "head" else reversed(lines):
        size += 1 + len(line)
        if count == max_lines or (max_bytes is not None and size > max_bytes):
            break
        count += 1
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
    removed = chars - limits.chars
    if removed <= 0:
        cut = tail
    elif limits.mode == "tail":
        warning = _WARNING.format(f"First {removed} characters were removed.")
        cut = f"{warning}\n\n{tail[len(tail) - limits.chars :]}"
    else:
        half = limits.chars // 2
        warning = _WARNING.format(f"{removed} characters were removed from the middle.")
        cut = f"{head[:half]}\n\n{warning}\n\n{tail[len(tail) - (limits.chars - half) :]}"
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
    first, last = lines[: limit // 2], lines[len(lines) - (limit - limit // 2) :]
    start = _WARNING.partition("{")[0]
    warned = any(line.startswith(start) for line in (*first, *last))
    lost = any(line.startswith(start) for line in lines) and not warned
    omitted = (total if lost else len(lines)) - limit
    return "\n".join((*first, f"[... {omitted} lines omitted ...]", *last))


def format_size(size: int) -> str:
    """Return a number of bytes as people read it: 512B, 50.0KB, 1.5MB."""
    if size < KILOBYTE:
        return f"{size}B"
    if size < KILOBYTE**2:
        return f"{size / KILOBYTE:.1f}KB"
    return f"{size / KILOBYTE**2:.1f}MB"


def format_limit(size: int) -> str:
    """Return a limit of bytes as descriptions say it: 50KB."""
    return format_size(size).replace(".0", "")


def encode_text(text: str) -> bytes:
    """Return the UTF-8 of `text`, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def count_bytes(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(encode_text(text))


class KeptText(NamedTuple):
    """What is left of a text, and how much went: lines or bytes, never both."""

    content: str
    removed_lines: int | None = None
    removed_bytes: int | None = None


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

    It is the strategy of the truncation service, and the base of others.
    """

    name = "lines and bytes"

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


class JsonItemsStrategy(LinesAndBytesStrategy):
    """Keeps whole items of a JSON array, a line of the limit each; all else as its base does.

    What is left of an array is one again, so that a program can read it.
    """

    name = "JSON items"

    def needs_truncation(self, content: str, config: TruncationSettings) -> bool:
        """Whether there are too many items, or too many lines or bytes in all."""
        too_many = len(_parse_items(content)) > config.max_lines
        return too_many or super().needs_truncation(content, config)

    def truncate(self, content: str, config: TruncationSettings) -> KeptText:
        """Keep items as long as they fit; removed lines are removed items."""
        items, tail = _parse_items(content), config.direction == "tail"
        size, count = len("[\n]"), 0
        for item in (items[::-1] if tail else items)[: config.max_lines]:
            size += count_bytes(_dump_items([item])) - len("[]")
            if size > config.max_bytes:
                break
            count += 1
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
