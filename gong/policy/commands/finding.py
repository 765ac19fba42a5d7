"""What a part of a command line does, and how dangerous that is: a value."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple

_SHOWN_CHARS = 120


class DangerLevel(IntEnum):
    """How dangerous, from low to high."""

    SAFE = 0
    """It only reads, and only what may be read."""
    ASK = 1
    """It may change something, or its effect is unknown."""
    DANGEROUS = 2
    """Its damage is irreversible."""


WORKSPACE_REMOVAL = "removes or changes what the whole workspace folder holds"
_ASKING_REASONS = {WORKSPACE_REMOVAL, "discards changes that no commit has"}


class CommandFinding(NamedTuple):
    """One part of a command line that is not safe.

    What is asked about is what rules of permission are about, so it says what a rule has to show.
    """

    level: DangerLevel
    source: str = ""
    """The part as it was written."""
    reason: str = ""
    """Why it is not safe."""
    kind: Literal["run", "write", "other"] = "other"
    """A program, a redirection to files, or what no rule of words can name."""
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
    inner: tuple[CommandFinding, ...] = ()
    """What it runs, where it is a wrapper."""

    @property
    def removes(self) -> bool:
        """Whether it removes something, or runs what does."""
        return self.destructive or any(finding.removes for finding in self.inner)

    @property
    def text(self) -> str:
        """The words as one text, quoted."""
        return " ".join(self.words)

    @property
    def part(self) -> str:
        """The part on one line, cut to 120 characters."""
        return clip_text(self.source)

    @property
    def description(self) -> str:
        """The part, a colon, and why it is not safe."""
        return f"{self.part}: {self.reason}"

    @property
    def asks(self) -> bool:
        """Whether a person is asked about a danger: it only throws work of the folder away."""
        return self.reason in _ASKING_REASONS


def clip_text(text: str) -> str:
    """Return a text on one line, cut to 120 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
