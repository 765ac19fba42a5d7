"""Modes of permission, and decisions about parts of calls, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple

from ..errors import ConfigurationError


class PermissionMode(StrEnum):
    """What is allowed, asked about and refused where no rule says it."""

    DEFAULT = "default"
    PLAN = "plan"
    ACCEPT_EDITS = "accept_edits"
    DONT_ASK = "dont_ask"
    BYPASS = "bypass"
    LOCKED = "locked"


_ALIASES = {"unrestricted": "bypass", "yolo": "bypass", "bypasspermissions": "bypass"}
_ALIASES |= {"acceptedits": "accept_edits", "dontask": "dont_ask"}


def parse_mode(name: str) -> PermissionMode:
    """Return the mode of a name; raises ConfigurationError for others."""
    plain = name.strip().lower().replace("-", "_")
    plain = _ALIASES.get(plain.replace("_", ""), plain)
    try:
        return PermissionMode(plain)
    except ValueError:
        there = ", ".join(PermissionMode)
        raise ConfigurationError(f"unknown permission mode {name!r}: there are {there}") from None


Outcome = Literal["allow", "ask", "deny"]
SEVERITY: dict[Outcome, int] = {"allow": 0, "ask": 1, "deny": 2}
"""The decision about a call is the one of the highest severity about its parts."""


class Part(NamedTuple):
    """What was decided about one part of a call."""

    decision: Outcome
    why: str = ""
    rule: str | None = None
    by: str = "mode"
    offered: str | None = None
    """The rule that would allow this part; None where none may be offered."""
    text: str = ""


READING = Part("allow", by="reading")
"""What only reads where reading is free, or changes nothing but the session."""
