"""The bottom line: model · branch · share of the window · money · what goes on · what waits.

What a session uses is read when an answer ended, never while keys are typed.
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
    """What a session uses."""

    tokens: int = 0
    """Of the next call; 0 while nothing was said."""
    window: int | None = None
    cost: str = ""
    """Money of this session; empty while none is known to have been spent."""

    def words(self) -> list[str]:
        """Return what is known, for people."""
        known = [f"{round(100 * self.tokens / self.window)} %"] if self.window else []
        return [*known, self.cost] if self.cost else known


def use(session: Session) -> Use:
    """Return what the next call takes of the window, and what was spent: reads the whole view."""
    window = session.setup.model.window
    if session.recorder is None or not window:
        return Use(cost=_money(session))
    try:
        tokens = measured(next_call(session.parts())).tokens
    except (GongError, TapeError, OSError):
        return Use(cost=_money(session))  # the next prompt says what is wrong
    return Use(tokens, window, _money(session))


def use_after(before: Use, session: Session, event: Event) -> Use:
    """Return the same after an event of a run: by the provider's count, and what tools added."""
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
    """Return the line; where it is too long, money gives way first, then percent and model."""
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
