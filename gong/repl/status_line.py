"""The line under the prompt: what a session uses, and which facts fit into the width."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.errors import TapeError
from tape.text import measure_width

from ..agent.events import CompactionEnd, MessageEnd, ToolExecutionEnd
from ..agent.loop import prepare_next_call
from ..context.costs import format_cost
from ..context.tokens import count_content_tokens, count_total_tokens
from ..errors import GongError
from ..policy.modes import PermissionMode
from .lines import clip_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agent.events import Event
    from ..agent.session import Session


_SHORTEST_NAME = 8
_GAP = " · "


class SessionUsage(NamedTuple):
    """The usage of a session."""

    tokens: int = 0
    """Tokens of the next call; 0 if the session is empty."""
    window: int | None = None
    cost: str = ""
    """Cost of this session as text; empty while it is zero or unknown."""

    def format_usage(self) -> list[str]:
        """Return the known values as texts."""
        known = [f"{round(100 * self.tokens / self.window)} %"] if self.window else []
        return [*known, self.cost] if self.cost else known


def measure_usage(session: Session) -> SessionUsage:
    """Return tokens of the next call and cost so far; reads the whole view."""
    window = session.run_state.find_window(session.setup.model)
    if session.recorder is None or not window:
        return SessionUsage(cost=_format_session_cost(session))
    try:
        tokens = prepare_next_call(session.build_run_context()).measure().tokens
    except (GongError, TapeError, OSError):
        return SessionUsage(cost=_format_session_cost(session))  # the next prompt reports the error
    return SessionUsage(tokens, window, _format_session_cost(session))


def update_usage(before: SessionUsage, session: Session, event: Event) -> SessionUsage:
    """Return the usage after an event: the provider's count plus the size of tool results."""
    match event:
        case MessageEnd(usage=usage):
            window = session.run_state.find_window(session.setup.model)
            return SessionUsage(
                count_total_tokens(usage) or before.tokens, window, _format_session_cost(session)
            )
        case ToolExecutionEnd(content=content):
            return before._replace(tokens=before.tokens + count_content_tokens(content))
        case CompactionEnd():
            return measure_usage(session)
    return before


def _format_session_cost(session: Session) -> str:
    spend = session.run_state.spend
    return format_cost(spend) if spend.cost else ""


def choose_next_mode(now: str, first: str) -> str:
    """Return the permission mode after `now`, in a session that began in mode `first`."""
    modes = [PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN]
    if first == PermissionMode.BYPASS:
        modes.append(PermissionMode.BYPASS)
    place = modes.index(PermissionMode(now)) if now in modes else -1
    return modes[(place + 1) % len(modes)].value


def render_status_line(
    mode: str,
    model: str,
    branch: str,
    used: SessionUsage,
    state: Sequence[str],
    waiting: int,
    columns: int,
) -> str:
    """Return the line; if it is too long, drop cost, percent, model and mode, in this order."""
    queue = [f"queue {waiting}"] if waiting else []
    known = used.format_usage()
    while True:
        facts = _GAP.join([branch, *known, *state, *queue])
        room = columns - measure_width(f"{mode}{_GAP}{_GAP}{facts}")
        if room >= _SHORTEST_NAME:
            return f"{mode}{_GAP}{clip_line(model, room)}{_GAP}{facts}"
        if not known:
            line = f"{mode}{_GAP}{facts}"
            return line if measure_width(line) <= columns else clip_line(facts, columns)
        known = known[:-1]
