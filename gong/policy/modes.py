"""Modes of permission, by name."""

from __future__ import annotations

from enum import StrEnum

from ..errors import ConfigurationError


class PermissionMode(StrEnum):
    """What is allowed, asked about and refused where no rule says it."""

    DEFAULT = "default"
    PLAN = "plan"
    ACCEPT_EDITS = "accept_edits"
    DONT_ASK = "dont_ask"
    BYPASS = "bypass"
    LOCKED = "locked"


MODE_NOTES = {
    PermissionMode.DEFAULT: "Ask before anything is changed or run",
    PermissionMode.ACCEPT_EDITS: "Edit files unasked, ask before commands",
    PermissionMode.PLAN: "Only read, and propose a plan",
    PermissionMode.DONT_ASK: "Ask nothing; rules that deny apply",
    PermissionMode.BYPASS: "Ask nothing",
    PermissionMode.LOCKED: "Change and run nothing",
}
"""What each mode does, for people."""
_ALIASES = {"unrestricted": "bypass", "yolo": "bypass", "bypasspermissions": "bypass"}
_ALIASES |= {"acceptedits": "accept_edits", "dontask": "dont_ask"}


def parse_mode(name: str) -> PermissionMode:
    """Return the mode of a name; raises ConfigurationError for others."""
    if not isinstance(name, str):
        raise ConfigurationError(f"a permission mode is a text, not {name!r}")
    plain = name.strip().lower().replace("-", "_")
    plain = _ALIASES.get(plain.replace("_", ""), plain)
    try:
        return PermissionMode(plain)
    except ValueError:
        there = ", ".join(PermissionMode)
        raise ConfigurationError(f"unknown permission mode {name!r}: there are {there}") from None
