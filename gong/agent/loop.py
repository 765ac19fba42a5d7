"""The loop: record, view, repair, request, stream, record, run tools, repeat until done.

The caller passes in all its parts. Every fact is an entry before anything follows from it. At each
barrier of tape.md §5.4 the code waits for the disk before it continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.blocks import Text, select_tool_calls
from tape.entries import Context

from ..context.costs import CostBudget
from ..errors import ContextLengthExceeded, MalformedHistory
from . import events
from .answer import call_model, find_advice
from .step import run_tools
from .window import make_room, prepare_next_call, shrink_context

if TYPE_CHECKING:
    from ..errors import ModelError
    from .answer import Answer
    from .outgoing import PreparedRequest
    from .parts import QueuedMessage, RunContext


class RunOutcome(NamedTuple):
    """How a run ended."""

    stop_reason: str
    """The stop reason of the newest answer (tape.md §3)."""
    error: ModelError | None = None


async def run_loop(parts: RunContext) -> RunOutcome:
    """Answer the end of the path until no tool calls, steering or follow-ups are left."""
    turns, stop, paused = 0, "stop", False
    while True:
        for queued in () if paused else parts.take_steering():
            _inject_message(parts, queued)
        if parts.model.max_turns and turns >= parts.model.max_turns:
            parts.emit(events.TurnLimit(turns))
            return RunOutcome(stop)
        if _is_over_budget(parts):
            return RunOutcome(stop)
        turns += 1
        parts.emit(events.TurnStart(turns))
        answer = await _request_answer(
            parts, prepare_next_call(parts) if paused else await make_room(parts)
        )
        stop, paused = answer.stop, answer.is_paused
        if answer.error is not None:
            return RunOutcome(stop, answer.error)
        calls = select_tool_calls(answer.content)
        if calls:
            await run_tools(parts, calls)
        parts.emit(events.TurnEnd(turns, len(calls)))
        if calls or paused or parts.steering_waits():
            continue
        follow_up = parts.take_follow_up()
        if follow_up is None:
            return RunOutcome(stop)
        _inject_message(parts, follow_up)


def _is_over_budget(parts: RunContext) -> bool:
    """Return whether the max cost is reached, with an event; warn of unknown prices."""
    if not parts.max_cost:
        return False
    budget = CostBudget(parts.max_cost, parts.pressure.spend)
    if budget.is_over:
        parts.emit(events.CostLimit(budget.spend.cost or 0.0, budget.limit))
    elif budget.warning and not parts.pressure.price_warned:
        parts.pressure.price_warned = True
        parts.emit(events.Warn(budget.warning))
    return budget.is_over


async def _request_answer(parts: RunContext, made: PreparedRequest) -> Answer:
    """Make one model call; repeat it once if a changed request may be accepted."""
    answer = await call_model(parts, made)
    if answer.error is not None and await _prepare_retry(parts, answer.error):
        answer = await call_model(parts, prepare_next_call(parts))
    if answer.error is not None and (hint := find_advice(answer.error)):
        parts.emit(events.Warn(hint))
    return answer


async def _prepare_retry(parts: RunContext, error: ModelError) -> bool:
    """Return whether the next request differs from the one that failed."""
    if isinstance(error, ContextLengthExceeded):
        return parts.room.auto and await shrink_context(parts, "overflow")
    if isinstance(error, MalformedHistory) and not parts.pressure.refused:
        parts.pressure.refused = True
        parts.emit(events.Warn("the provider refused the history: retrying with a plainer one"))
        return True
    return False


def _inject_message(parts: RunContext, queued: QueuedMessage) -> None:
    parts.record.append(Context("user", queued.origin, (Text(queued.text),)))
    parts.emit(events.SteeringInjected(queued.text, queued.origin))
