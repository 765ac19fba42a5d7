"""What people set of tools: where results are cut, and how commands run (values; nothing else).

It stands above the configuration, which takes these shapes over as tables of config.toml.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct, field

Direction = Literal["head", "tail"]
"""Which end of a text stays."""
Count = Annotated[int, Meta(ge=1)]
"""At least one."""

MAX_LINES = 2000
MAX_BYTES = 51_200
RETENTION_DAYS = 7.0
"""Age at which kept files go, where they do not stand on a tape."""
MAX_TIMEOUT_MS = 600_000
"""Most milliseconds that any command may have."""


class Caps(NamedTuple):
    """Where a tool cuts its own text; None is no limit of lines."""

    max_lines: int | None = MAX_LINES
    max_bytes: int = MAX_BYTES


class Override(Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool, or a user for a tool, sets differently; None is as it is for all."""

    max_lines: Count | None = None
    max_bytes: Count | None = None
    direction: Direction | None = None
    enabled: bool | None = None


class Truncation(Struct, frozen=True, forbid_unknown_fields=True):
    """How results are cut; all is set."""

    max_lines: Count = MAX_LINES
    """Lines of a result that is not cut."""
    max_bytes: Count = MAX_BYTES
    """Bytes of a result that is not cut."""
    direction: Direction = "head"
    """Which part of a longer one stays."""
    enabled: bool = True
    """Whether anything is cut."""
    retention_days: Annotated[float, Meta(ge=0)] = RETENTION_DAYS
    """Age at which kept files go, where they do not stand on a tape."""
    storage_dir: str | None = None
    """Folder of kept files where there is no tape; None is one among temporary files."""
    tools: dict[str, Override] = field(default_factory=dict)
    """What is set differently for single tools, by name."""


class Tuning(Struct, frozen=True):
    """How the tools that come with the agent are made."""

    command_prefix: str = ""
    """Lines that bash reads before every command."""
    default_timeout_ms: Count | None = None
    """Time of a command that asks for none; None is what its tool is used to."""
    max_timeout_ms: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_MS)] = MAX_TIMEOUT_MS
    """Most time of a command, whatever it asks for."""
    output_limits: dict[str, Count] = field(default_factory=dict)
    """Characters of a result, by tool; bytes for read, bash, grep, find and ls."""
    line_limits: dict[str, Count] = field(default_factory=dict)
    """Lines of a result, by tool."""
    truncation: Truncation = Truncation()
    """For results that no tool cuts itself."""

    def caps(self, name: str, *, by_lines: bool = True) -> Caps:
        """Return where a tool cuts its own text; without `by_lines` only where somebody set it."""
        own = self.truncation.tools.get(name, Override())
        usual = self.truncation.max_lines if by_lines else None
        return Caps(
            self.line_limits.get(name) or own.max_lines or usual,
            self.output_limits.get(name) or own.max_bytes or self.truncation.max_bytes,
        )
