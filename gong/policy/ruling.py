"""What rules and mode say about a call, or about a part of it, before anybody is asked: a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Outcome = Literal["allow", "ask", "deny"]
SEVERITY: dict[Outcome, int] = {"allow": 0, "ask": 1, "deny": 2}
"""The ruling about a call is the one of the highest severity about its parts."""


class Ruling(NamedTuple):
    """What the rules and the mode say about a call or a part of it."""

    decision: Outcome
    why: str = ""
    """Why it is not allowed, or which rule allows it."""
    rule: str | None = None
    """The rule that decided."""
    by: str = "mode"
    """What decided: mode, rule, session, danger, own, sandbox, hook; reading where it is free."""
    offered: tuple[str, ...] = ()
    """Rules that would allow this very call, and nothing that they do not show; for an answer."""
    text: str = ""
    """The refusal for the model."""
    can_have_rule: bool = True
    """Whether a rule may be offered for it, be it one of the whole command line."""
    once: bool = False
    """Whether a person may allow it this once although it is refused."""
    reasons: tuple[str, ...] = ()
    """Why each part of a call is asked about: the part, a colon, and what it does."""


READING = Ruling("allow", by="reading")
"""What only reads where reading is free, or changes nothing but the session."""


COVERED = Ruling("allow", by="sandbox")
"""What the border of a sandbox covers, so that nobody is asked."""


def choose_strictest(parts: Sequence[Ruling]) -> Ruling:
    """Return the first ruling of the highest severity; what only reads is the least of all."""
    return max(
        parts, key=lambda ruling: (SEVERITY[ruling.decision], ruling != READING), default=READING
    )
