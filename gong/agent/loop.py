"""The loop: record, view, repair, request, stream, record, run tools, repeat until done.

The caller passes in all its parts. Every fact is an entry before anything follows from it. At each
barrier of tape.md §5.4 the code waits for the disk before it continues.

Before each model call: measure context usage, and make room if needed.

First, older tool results become placeholders, in batches. Then older messages become a summary, at
most twice in a row. If that is too little, long results are cut. Every step is an entry.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Context, Text, select_tool_calls

from ..context.costs import CostBudget
from ..context.tokens import ContextSize, build_fill_warning, measure_context
from ..context.trim import decide_elision, decide_truncation
from ..errors import ContextLengthExceeded, MalformedHistory, NothingToCompact
from . import events
from .compaction import CompactionRequest, compact_branch
from .model_call import call_model, find_advice
from .run_context import PreparedRequest, prepare_request
from .tool_step import run_tools

if TYPE_CHECKING:
    from ..errors import ModelError
    from .model_call import Answer
    from .run_context import QueuedMessage, RunContext


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


MIN_GAIN = 0.1
"""Minimum share of a request that an automatic compaction must free."""
MAX_COMPACTIONS_IN_ROW = 2
"""Maximum compactions between two answers."""


class ContextFill(NamedTuple):
    """How full the context window is."""

    tokens: int
    limit: int | None
    """Tokens above which a compaction is due; None if the context window is unknown."""


def measure_fill(parts: RunContext) -> ContextFill:
    """Return how much of the context window the next call takes."""
    return ContextFill(measure_request(prepare_next_call(parts)).tokens, _compute_limit(parts))


def prepare_next_call(parts: RunContext) -> PreparedRequest:
    """Return the request of the next call."""
    record = parts.record
    return prepare_request(
        parts.model,
        parts.tools.specs(),
        record.path,
        record.kept,
        session=parts.session,
        load=record.load,
        plain=parts.pressure.refused,
    )


def measure_request(made: PreparedRequest) -> ContextSize:
    """Return the size of a call that is about to be made."""
    kept = made.view.kept
    return measure_context(made.request, (*kept, *made.view.entries), since=len(kept))


def _compute_limit(parts: RunContext) -> int | None:
    room, window = parts.room, parts.model.window
    limits = [] if window is None else [window - min(room.reserve, window // 4)]
    if room.limit is not None:
        limits.append(room.limit)
    return min(limits, default=None)


async def make_room(parts: RunContext) -> PreparedRequest:
    """Make room for the next call if needed, and return its request."""
    pressure = parts.pressure
    if pressure.focus is not None:
        focus, pressure.focus = pressure.focus, None
        try:
            await compact_branch(parts, CompactionRequest("model", focus))
        except NothingToCompact as error:
            parts.emit(events.Warn(str(error)))
    made = prepare_next_call(parts)
    tokens, limit = measure_request(made).tokens, _compute_limit(parts)
    _warn_nearly_full(parts, tokens)
    if limit is None or not parts.room.auto:
        return made
    if tokens > limit:
        return prepare_next_call(parts) if await shrink_context(parts, "window") else made
    aside = decide_elision(
        (*parts.record.kept, *parts.record.path),
        tokens,
        parts.model.window or limit,
        high_water=parts.room.high_water,
    )
    if aside is None:
        return made
    parts.record.append(aside)
    parts.emit(events.ResultsElided(tokens))
    return prepare_next_call(parts)


async def shrink_context(parts: RunContext, reason: str) -> bool:
    """Compact because the context window is full; return whether the request shrank."""
    pressure = parts.pressure
    if pressure.in_row < MAX_COMPACTIONS_IN_ROW:
        pressure.in_row += 1
        with suppress(NothingToCompact):
            await compact_branch(parts, CompactionRequest(reason, gain=MIN_GAIN))
            return True
    cut = decide_truncation((*parts.record.kept, *parts.record.path))
    if cut is None:
        return False
    parts.record.append(cut)
    parts.emit(events.Warn("long tool results are cut in the request: the context window is full"))
    return True


def _warn_nearly_full(parts: RunContext, tokens: int) -> None:
    """Warn once that the context window is nearly full; warn again after it had room."""
    text = build_fill_warning(tokens, parts.model.window)
    if text and not parts.pressure.warned:
        parts.emit(events.Warn(text))
    parts.pressure.warned = text is not None
