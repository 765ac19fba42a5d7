"""The status line: model · branch · context usage · cost · activity · queue.

Usage is read after each answer, never while keys are typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.errors import TapeError
from tape.render import width

from ..agent.events import CompactionEnd, MessageEnd, ToolExecutionEnd
from ..agent.window import measured, next_call
from ..context.costs import cost_text
from ..context.meter import tokens_of, total_tokens
from ..errors import GongError
from .lines import clipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agent.events import Event
    from ..agent.session import Session

_SHORTEST_NAME = 8
_GAP = " · "


class Use(NamedTuple):
    """The usage of a session."""

    tokens: int = 0
    """Tokens of the next call; 0 if the session is empty."""
    window: int | None = None
    cost: str = ""
    """Cost of this session as text; empty while it is zero or unknown."""

    def words(self) -> list[str]:
        """Return the known values as texts."""
        known = [f"{round(100 * self.tokens / self.window)} %"] if self.window else []
        return [*known, self.cost] if self.cost else known


def use(session: Session) -> Use:
    """Return tokens of the next call and cost so far; reads the whole view."""
    window = session.setup.model.window
    if session.recorder is None or not window:
        return Use(cost=_money(session))
    try:
        tokens = measured(next_call(session.parts())).tokens
    except (GongError, TapeError, OSError):
        return Use(cost=_money(session))  # the next prompt reports the error
    return Use(tokens, window, _money(session))


def use_after(before: Use, session: Session, event: Event) -> Use:
    """Return the usage after an event: the provider's count plus the size of tool results."""
    match event:
        case MessageEnd(usage=usage):
            window = session.setup.model.window
            return Use(total_tokens(usage) or before.tokens, window, _money(session))
        case ToolExecutionEnd(content=content):
            return before._replace(tokens=before.tokens + tokens_of(content))
        case CompactionEnd():
            return use(session)
    return before


def _money(session: Session) -> str:
    spend = session.pressure.spend
    return cost_text(spend) if spend.cost else ""


def bottom(
    model: str,
    branch: str,
    used: Use,
    state: Sequence[str],
    waiting: int,
    columns: int,
) -> str:
    """Return the line; if it is too long, drop the cost first, then percent, then the model."""
    queue = [f"queue {waiting}"] if waiting else []
    known = used.words()
    while True:
        facts = _GAP.join([branch, *known, *state, *queue])
        room = columns - width(facts) - len(_GAP)
        if room >= _SHORTEST_NAME:
            return f"{clipped(model, room)}{_GAP}{facts}"
        if not known:
            return clipped(facts, columns)
        known = known[:-1]
