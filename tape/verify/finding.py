"""What verify says of a tape, one finding each."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["note", "torn", "damage"]
"""Worth knowing; the end of a file that a crash left incomplete; what does not hold."""


class Finding(Struct, frozen=True, gc=False):
    """One thing that does not hold, and where."""

    level: Level
    file: str
    """Path inside the tape."""
    line: int | None
    """Number of the line, from 1."""
    offset: int | None
    """Byte offset of the line."""
    message: str
    depends: tuple[str, ...]
    """Branches whose path leads over it."""


class Counts(Struct, gc=False):
    """How much was looked at."""

    entries: int = 0
    phases: int = 0
    blobs: int = 0


def damage(
    file: str,
    message: str,
    *,
    line: int | None = None,
    offset: int | None = None,
    on: tuple[str, ...] = (),
) -> Finding:
    """Return a finding of damage that the branches `on` depend on."""
    return Finding("damage", file, line, offset, message, on)
