"""Limits of tool results as values: what is set, what each tool and model family has, and sizes.

The configuration uses the settings as tables of config.toml. `truncation` cuts by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping


OutputForm = Literal["merged", "split"]
"""How bash returns standard output and error: as they came, or each by itself."""
Direction = Literal["head", "tail"]
"""Which end of a text is kept."""
StrategyName = Literal["lines_and_bytes", "lines", "bytes", "json_items"]
"""What is counted where a result is cut, see `truncation.STRATEGIES`."""
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
    strategy: StrategyName | None = None


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
    strategy: StrategyName = "lines_and_bytes"
    """What is counted: lines and bytes, one of them, or the items of a JSON array."""
    tools: dict[str, TruncationOverride] = field(default_factory=dict)
    """Settings of single tools, by name."""


class ToolSettings(Struct, frozen=True):
    """Settings of the built-in tools."""

    command_prefix: str = ""
    """Lines that bash runs before every command."""
    bash_output: OutputForm = "merged"
    """Standard output and error of the tool bash: merged as they came, or split."""
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


KILOBYTE = 1024
MAX_KEPT_BYTES = 1 << 20
"""Bytes of a text that a result keeps beside the part the model saw, where no tape keeps it."""
MAX_STORED_BYTES = 64 * MAX_KEPT_BYTES
"""Bytes of lines of files that a tape keeps: the files are still there, and pages follow pages."""
MAX_WHOLE_BYTES = 64 * MAX_KEPT_BYTES
"""Bytes of a file that is taken into memory whole: to be changed, or because it is no text."""
FULL_BYTES = 5 * 1024 * 1024
"""Longer output than this stays in its file, or blob, only."""


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
