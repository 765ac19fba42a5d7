"""The line under the prompt: what a session uses, and which facts fit into the width."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.errors import TapeError
from tape.text import format_seconds, measure_width

from ...agent.events import CompactionEnd, MessageEnd, ToolExecutionEnd
from ...context.tokens import count_content_tokens, count_total_tokens
from ...errors import GongError
from ...policy.modes import PermissionMode
from .lines import clip_line

if TYPE_CHECKING:
    from ...agent.events import Event
    from ...agent.session import Session


_MIN_NAME = 8
_MAX_PLACE = 30
_GAP = " · "
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TURNS_PER_SECOND = 7


class SessionUsage(NamedTuple):
    """The usage of a session."""

    tokens: int = 0
    """Tokens of the next call; 0 if the session is empty."""
    window: int | None = None

    def format_context(self) -> str:
        """Return how much of the context window is used; empty if that is unknown."""
        return f"{round(100 * self.tokens / self.window)} %" if self.window else ""


def measure_usage(session: Session) -> SessionUsage:
    """Return the tokens of the next call; reads the whole view."""
    window = session.run_state.find_window(session.setup.model)
    if session.recorder is None or not window:
        return SessionUsage()
    try:
        tokens = session.build_run_context().prepare_next_call().measure().tokens
    except (GongError, TapeError, OSError):
        return SessionUsage()  # the next prompt reports the error
    return SessionUsage(tokens, window)


def update_usage(before: SessionUsage, session: Session, event: Event) -> SessionUsage:
    """Return the usage after an event: the provider's count plus the size of tool results."""
    match event:
        case MessageEnd(usage=usage):
            window = session.run_state.find_window(session.setup.model)
            return SessionUsage(count_total_tokens(usage) or before.tokens, window)
        case ToolExecutionEnd(content=content):
            return before._replace(tokens=before.tokens + count_content_tokens(content))
        case CompactionEnd():
            return measure_usage(session)
    return before


def choose_next_mode(now: str, first: str) -> str:
    """Return the permission mode after `now`, in a session that began in mode `first`."""
    modes = [PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN]
    if first == PermissionMode.BYPASS:
        modes.append(PermissionMode.BYPASS)
    place = modes.index(PermissionMode(now)) if now in modes else -1
    return modes[(place + 1) % len(modes)].value


class StatusFacts(NamedTuple):
    """What the status line shows, each part empty or zero where there is nothing to show."""

    mode: str
    model: str
    """provider/model:effort."""
    branch: str
    used: SessionUsage = SessionUsage()
    cost: str = ""
    """What the session has cost."""
    queue: int = 0
    """Messages that wait."""
    tasks: int = 0
    """Commands in the background."""
    state: tuple[str, ...] = ()
    """What happens, and what is waited for."""
    place: str = ""
    """Where tools act, if not on this machine."""


def render_status_line(facts: StatusFacts, columns: int) -> str:
    """Return mode, model, context, cost, queue, tasks, place, branch and state, at most so wide.

    If it is too long, the provider's name is left out first; then parts are dropped in this order:
    tasks, context, model, mode, queue, cost. The model's name is shortened before it is dropped.
    """
    parts = {
        "tasks": f"tasks {facts.tasks}" if facts.tasks else "",
        "context": facts.used.format_context(),
        "mode": facts.mode,
        "queue": f"queue {facts.queue}" if facts.queue else "",
        "cost": facts.cost,
    }

    def join(model: str) -> str:
        first = (parts["mode"], model, parts["context"], parts["cost"], parts["queue"])
        place = clip_line(facts.place, _MAX_PLACE)
        rest = (parts["tasks"], place, facts.branch, *facts.state)
        return _GAP.join(part for part in (*first, *rest) if part)

    model = facts.model.partition("/")[2] or facts.model
    for dropped in ("", "tasks", "context"):
        parts |= {dropped: ""} if dropped else {}
        room = columns - measure_width(join("")) - len(_GAP)
        if room >= measure_width(facts.model):
            return join(facts.model)
        if room >= min(_MIN_NAME, measure_width(model)):
            return join(clip_line(model, room))
    for dropped in ("", "mode", "queue", "cost"):
        parts |= {dropped: ""} if dropped else {}
        if measure_width(line := join("")) <= columns:
            return line
    return clip_line(join(""), columns)


def render_activity(seconds: float, doing: str, turn: int) -> list[str]:
    """Return what the agent does: a mark that turns, how long, with which tools, in which round."""
    mark = _SPINNER[int(seconds * _TURNS_PER_SECOND) % len(_SPINNER)]
    rounds = [f"round {turn}"] if turn > 1 else []
    return [f"{mark} working {format_seconds(seconds)}", *([doing] if doing else []), *rounds]
