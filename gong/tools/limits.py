"""How long results of tool variants may be, and sizes as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from ..tool_settings import DEFAULT_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..tool_settings import ToolSettings

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
