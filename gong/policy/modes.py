"""Modes of permission, parts of command lines, and decisions about parts of calls, as values."""

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


class Action(NamedTuple):
    """One part of a command line that is neither safe nor dangerous."""

    kind: Literal["run", "write", "other"]
    """A program, a redirection to files, or what no rule of words can name."""
    source: str
    """The part as it was written."""
    reason: str
    """Why it is not safe."""
    words: tuple[str, ...] = ()
    """Of a program: its words as a shell would read them, after variables that others obey."""
    paths: tuple[str, ...] = ()
    """The files a redirection writes, absolute; nothing where they are unknown."""
    shown: tuple[str, ...] = ()
    """Words that a rule has to show."""
    hidden: bool = False
    """Whether an expansion or the folder decides what it does."""
    destructive: bool = False
    """Whether it removes or throws away: it is never allowed for good by one key."""
    edits: tuple[str, ...] = ()
    """The files it changes, where it is a plain command that does no more than that."""
    code: bool = False
    """Whether its arguments are code, or make it anything: only all of its words tell."""
    reads: bool = False
    """Whether it changes nothing, and only reads elsewhere."""
    inner: tuple[Action, ...] = ()
    """What it runs, where it is a wrapper."""

    @property
    def removes(self) -> bool:
        """Whether it removes something, or runs what does."""
        return self.destructive or any(one.removes for one in self.inner)

    @property
    def text(self) -> str:
        """The words as one text, quoted."""
        return " ".join(self.words)
