"""The loop: record, view, repair, request, stream, record, run tools, repeat until done.

Every fact is an entry before anything follows from it; at each barrier of tape.md §5.4 the code
waits for the disk before it continues.

Before each model call the loop measures context usage and makes room if needed, step by step;
every step is an entry:

    =======================  =====================================  ============================
    when                     what                                   entry
    =======================  =====================================  ============================
    the model asked for it   older messages become a summary        anchor, reason `model`
    above `high_water`       older results become placeholders      custom, `gong.elided`
    above the limit          older messages become a summary,       anchor, reason `window`
                             at most twice between two answers
    still above it           long results are cut                   custom, `gong.truncated`
    the provider refuses     as above the limit, then the call is   anchor, reason `overflow`
    the length               repeated once
    =======================  =====================================  ============================
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


async def run_loop(context: RunContext) -> RunOutcome:
    """Answer the end of the path until no tool calls, steering or follow-ups are left."""
    queues, max_turns = context.queues, context.setup.model.max_turns
    turns, stop, paused = 0, "stop", False
    while True:
        for queued in () if paused else queues.take_steering():
            _inject_message(context, queued)
        if max_turns and turns >= max_turns:
            context.emit(events.TurnLimit(turns))
            return RunOutcome(stop)
        if _is_over_budget(context):
            return RunOutcome(stop)
        turns += 1
        context.emit(events.TurnStart(turns))
        prepared = prepare_next_call(context) if paused else await make_room(context)
        answer = await _request_answer(context, prepared)
        stop, paused = answer.stop, answer.is_paused
        if answer.error is not None:
            return RunOutcome(stop, answer.error)
        calls = select_tool_calls(answer.content)
        if calls:
            await run_tools(context, calls)
        context.emit(events.TurnEnd(turns, len(calls)))
        if calls or paused or queues.steering:
            continue
        if not queues.follow_ups:
            return RunOutcome(stop)
        _inject_message(context, queues.follow_ups.popleft())


def _is_over_budget(context: RunContext) -> bool:
    """Return whether the max cost is reached, with an event; warn of unknown prices."""
    state = context.state
    if not context.setup.max_cost:
        return False
    budget = CostBudget(context.setup.max_cost, state.spend)
    if budget.is_over:
        context.emit(events.CostLimit(budget.spend.cost or 0.0, budget.limit))
    elif budget.warning and not state.price_warned:
        state.price_warned = True
        context.emit(events.Warn(budget.warning))
    return budget.is_over


async def _request_answer(context: RunContext, prepared: PreparedRequest) -> Answer:
    """Make one model call; repeat it once if a changed request may be accepted."""
    answer, is_changed = await call_model(context, prepared), False
    if isinstance(answer.error, ContextLengthExceeded):
        is_changed = context.setup.compaction.auto and await shrink_context(context, "overflow")
    elif isinstance(answer.error, MalformedHistory) and not context.state.refused:
        context.state.refused = is_changed = True
        context.emit(events.Warn("the provider refused the history: retrying with a plainer one"))
    if is_changed:
        answer = await call_model(context, prepare_next_call(context))
    if answer.error is not None and (advice := find_advice(answer.error)):
        context.emit(events.Warn(advice))
    return answer


def _inject_message(context: RunContext, queued: QueuedMessage) -> None:
    context.recorder.append(Context("user", queued.origin, (Text(queued.text),)))
    context.emit(events.SteeringInjected(queued.text, queued.origin))


MIN_GAIN = 0.1
"""Minimum share of a request that an automatic compaction must free."""
MAX_COMPACTIONS_IN_ROW = 2
"""Maximum compactions between two answers."""


class ContextFill(NamedTuple):
    """How full the context window is."""

    tokens: int
    limit: int | None
    """Tokens above which a compaction is due; None if the context window is unknown."""


def measure_fill(context: RunContext) -> ContextFill:
    """Return how much of the context window the next call takes."""
    return ContextFill(measure_request(prepare_next_call(context)).tokens, _compute_limit(context))


def prepare_next_call(context: RunContext) -> PreparedRequest:
    """Return the request of the next call."""
    recorder = context.recorder
    return prepare_request(
        context.setup.model,
        context.setup.tools.specs(),
        recorder.path,
        recorder.kept,
        session=recorder.tape.id,
        load=recorder.tape.load,
        plain=context.state.refused,
    )


def measure_request(prepared: PreparedRequest) -> ContextSize:
    """Return the size of a call that is about to be made."""
    kept = prepared.view.kept
    return measure_context(prepared.request, (*kept, *prepared.view.entries), since=len(kept))


def _compute_limit(context: RunContext) -> int | None:
    settings, window = context.setup.compaction, context.setup.model.window
    limits = [] if window is None else [window - min(settings.reserve, window // 4)]
    if settings.limit is not None:
        limits.append(settings.limit)
    return min(limits, default=None)


async def make_room(context: RunContext) -> PreparedRequest:
    """Make room for the next call if needed, and return its request."""
    state, settings, window = context.state, context.setup.compaction, context.setup.model.window
    if state.focus is not None:
        focus, state.focus = state.focus, None
        try:
            await compact_branch(context, CompactionRequest("model", focus))
        except NothingToCompact as error:
            context.emit(events.Warn(str(error)))
    prepared = prepare_next_call(context)
    tokens, limit = measure_request(prepared).tokens, _compute_limit(context)
    warning = build_fill_warning(tokens, window)
    if warning and not state.warned:
        context.emit(events.Warn(warning))
    state.warned = warning is not None  # warn again after the context window had room
    if limit is None or not settings.auto:
        return prepared
    if tokens > limit:
        has_shrunk = await shrink_context(context, "window")
        return prepare_next_call(context) if has_shrunk else prepared
    entries = (*context.recorder.kept, *context.recorder.path)
    elision = decide_elision(entries, tokens, window or limit, high_water=settings.high_water)
    if elision is None:
        return prepared
    context.recorder.append(elision)
    context.emit(events.ResultsElided(tokens))
    return prepare_next_call(context)


async def shrink_context(context: RunContext, reason: str) -> bool:
    """Compact because the context window is full; return whether the request shrank."""
    recorder = context.recorder
    if context.state.in_row < MAX_COMPACTIONS_IN_ROW:
        context.state.in_row += 1
        with suppress(NothingToCompact):
            await compact_branch(context, CompactionRequest(reason, gain=MIN_GAIN))
            return True
    truncation = decide_truncation((*recorder.kept, *recorder.path))
    if truncation is None:
        return False
    recorder.append(truncation)
    context.emit(
        events.Warn("long tool results are cut in the request: the context window is full")
    )
    return True
