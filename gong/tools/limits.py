"""Settings of tools: where results are cut, and how commands run (values only).

The configuration uses these types as tables of config.toml.

Cutting long text: the beginning, the end, or one line of it, with exact counts (pure).

Lines are what stands between line feeds, so a final one opens an empty last line. Bytes are those
of UTF-8, line feeds included, and a cut never falls inside a character.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable


Direction = Literal["head", "tail"]
"""Which end of a text is kept."""
PositiveCount = Annotated[int, Meta(ge=1)]
"""At least one."""

MAX_LINES = 2000
MAX_BYTES = 51_200
RETENTION_DAYS = 7.0
"""Age in days at which saved files are deleted, if they are not on a tape."""
MAX_TIMEOUT_MS = 600_000
"""Maximum timeout of any command in milliseconds."""


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
    retention_days: Annotated[float, Meta(ge=0)] = RETENTION_DAYS
    """Age in days at which saved files are deleted, if they are not on a tape."""
    storage_dir: str | None = None
    """Folder of saved files without a tape; None is one among temporary files."""
    tools: dict[str, TruncationOverride] = field(default_factory=dict)
    """Settings of single tools, by name."""


class ToolSettings(Struct, frozen=True):
    """Settings of the built-in tools."""

    command_prefix: str = ""
    """Lines that bash runs before every command."""
    default_timeout_ms: PositiveCount | None = None
    """Timeout of a command that sets none; None is the tool's own default."""
    max_timeout_ms: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_MS)] = MAX_TIMEOUT_MS
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


MAX_LINE_CHARS = 500
KILOBYTE = 1024
MAX_KEPT_BYTES = 1 << 20
"""Bytes of a text that a result keeps beside the part the model saw."""
CONTINUATION = 0b1000_0000
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
    source = _TextSource.from_text(text, max_lines, max_bytes)
    if source.fits():
        return source.whole()
    count = source.count_fitting(source.lines)
    kept = b"\n".join(source.lines[:count])
    return source.cut(kept, count, first_too_long=not count)


def truncate_tail(
    text: str, max_lines: int | None = MAX_LINES, max_bytes: int | None = MAX_BYTES
) -> TruncatedText:
    """Keep whole lines from the end; the end of the last one when it alone is too long."""
    source = _TextSource.from_text(text, max_lines, max_bytes)
    if source.fits():
        return source.whole()
    count = source.count_fitting(reversed(source.lines))
    if count:
        return source.cut(b"\n".join(source.lines[-count:]), count)
    return source.cut(_take_last_bytes(source.lines[-1], max_bytes or 0), 1, last_partial=True)


def truncate_line(line: str, max_chars: int = MAX_LINE_CHARS) -> TruncatedText:
    """Keep the first `max_chars` characters of a line, with a mark that it was cut."""
    long = len(line) > max_chars
    content = f"{line[:max_chars]}... [truncated]" if long else line
    return TruncatedText(
        content=content,
        truncated=long,
        truncated_by="chars" if long else None,
        total_lines=1,
        total_bytes=len(encode_text(line)),
        output_lines=1,
        output_bytes=len(encode_text(content)),
        last_line_partial=long,
        max_lines=None,
        max_bytes=None,
    )


def keep_full_text(text: str, rest: str = "the rest is not saved") -> str:
    """Return what a result keeps of a text the model saw only a part of.

    That is all of it up to MAX_KEPT bytes; of a longer one the beginning, and a line that says how
    much there was and, as `rest`, where the others are.
    """
    size = len(text) if text.isascii() else len(encode_text(text))
    if size <= MAX_KEPT_BYTES:
        return text
    start = encode_text(text[:MAX_KEPT_BYTES])[:MAX_KEPT_BYTES].decode("utf-8", "ignore")
    return f"{start}\n\n[{MAX_KEPT_BYTES} of {size} bytes: {rest}]"


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


@dataclass(frozen=True, slots=True)
class _TextSource:
    """A text to be cut, and the limits it is held against."""

    data: bytes
    lines: list[bytes]
    max_lines: int | None
    max_bytes: int | None

    @classmethod
    def from_text(cls, text: str, max_lines: int | None, max_bytes: int | None) -> _TextSource:
        data = encode_text(text)
        return cls(data, data.split(b"\n"), max_lines, max_bytes)

    def fits(self) -> bool:
        few = self.max_lines is None or len(self.lines) <= self.max_lines
        return few and (self.max_bytes is None or len(self.data) <= self.max_bytes)

    def count_fitting(self, lines: Iterable[bytes]) -> int:
        """Return how many from the start of `lines` stay inside both limits."""
        count, size = 0, -1
        for line in lines:
            size += 1 + len(line)
            if count == self.max_lines or (self.max_bytes is not None and size > self.max_bytes):
                break
            count += 1
        return count

    def whole(self) -> TruncatedText:
        return self._build_result(self.data, len(self.lines))

    def cut(
        self, kept: bytes, count: int, *, first_too_long: bool = False, last_partial: bool = False
    ) -> TruncatedText:
        result = self._build_result(kept, count)
        by_lines = count == self.max_lines and not last_partial
        return replace(
            result,
            truncated=True,
            truncated_by="lines" if by_lines else "bytes",
            first_line_exceeds_limit=first_too_long,
            last_line_partial=last_partial,
        )

    def _build_result(self, kept: bytes, count: int) -> TruncatedText:
        return TruncatedText(
            content=kept.decode("utf-8", "surrogatepass"),
            truncated=False,
            total_lines=len(self.lines),
            total_bytes=len(self.data),
            output_lines=count,
            output_bytes=len(kept),
            max_lines=self.max_lines,
            max_bytes=self.max_bytes,
        )


def _take_last_bytes(line: bytes, max_bytes: int) -> bytes:
    """Return the end of a line, from the first whole character on."""
    start = len(line) - max_bytes
    while start < len(line) and line[start] & 0b1100_0000 == CONTINUATION:
        start += 1
    return line[start:]
