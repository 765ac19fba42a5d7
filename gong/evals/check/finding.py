"""What a check finds in a trajectory, and what it is asked to look for: values."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

FindingKind = Literal[
    "no-result",
    "two-results",
    "no-call",
    "edit-before-read",
    "outside-root",
    "over-cost",
    "unknown-cost",
    "over-turns",
]
MEANINGS: dict[FindingKind, str] = {
    "no-result": "a call has no result",
    "two-results": "a call has more than one result",
    "no-call": "a result answers no call",
    "edit-before-read": "a file was changed that the session had neither read nor written",
    "outside-root": "a file outside of the root was written or removed",
    "over-cost": "it cost more than it may",
    "unknown-cost": "what it cost is not known, so that no limit can be kept",
    "over-turns": "it took more turns than it may",
}


class TrajectoryFinding(Struct, frozen=True):
    """One thing that is wrong, and where."""

    kind: FindingKind
    entry: str
    """The entry as its source names it: its id there, or #N; of a sub-agent behind its name."""
    tool: str = ""
    """The tool of the call."""
    detail: str = ""
    """Which file, or how much, in words."""


class CheckLimits(NamedTuple):
    """What is asked of a trajectory."""

    roots: tuple[str, ...] = ()
    """Absolute folders where it may write; none for the folder where the session began."""
    max_cost: float = 0.0
    """USD; 0 is no limit."""
    max_turns: int = 0
    """Answers of the model, without those of sub-agents; 0 is no limit."""
