"""The judgement of a command: how dangerous it is, why, and which part is the reason."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

_SHOWN = 120  # characters of a part


class DangerLevel(IntEnum):
    """How dangerous, from low to high."""

    SAFE = 0
    """It only reads, and only what may be read."""
    ASK = 1
    """It may change something, or its effect is unknown."""
    DANGEROUS = 2
    """Its damage is irreversible."""


class Judgement(NamedTuple):
    """What was found about a command."""

    level: DangerLevel
    reason: str = ""
    """Why it is not safe."""
    part: str = ""
    """The piece of the command that is the reason, cut to 120 characters."""


def build_judgement(level: DangerLevel, reason: str, part: str) -> Judgement:
    """Return a judgement whose part is one short line."""
    part = " ".join(part.split())
    return Judgement(level, reason, part if len(part) <= _SHOWN else f"{part[: _SHOWN - 1]}…")
