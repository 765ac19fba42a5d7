"""Settings of tools: where results are cut, and how commands run (values only).

The configuration uses these types as tables of config.toml.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, field

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
        """Return where a tool cuts its own text; without `by_lines` only where somebody set it."""
        own = self.truncation.tools.get(name, TruncationOverride())
        usual = self.truncation.max_lines if by_lines else None
        return OutputCaps(
            self.line_limits.get(name) or own.max_lines or usual,
            self.output_limits.get(name) or own.max_bytes or self.truncation.max_bytes,
        )
