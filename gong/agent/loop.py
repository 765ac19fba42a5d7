"""The loop: record, view, repair, request, stream, record, run tools, repeat until done.

Every fact is an entry before anything follows from it; at each barrier of tape.md §5.4 the code
waits for the disk before it continues. What follows an answer, the first line that fits:

    ================================================  ====================================
    the answer, and what waits                        then
    ================================================  ====================================
    it failed, also after one repeated call           the run ends with the error
    it neither says nor calls anything                the call is repeated, once
    its calls are the third finding of a repetition   the run ends
    it has calls, none with the object that the run   another turn
    has to end with; or steering waits
    the provider paused it                            another turn, nothing put in between
    a follow-up waits                                 it becomes a prompt; another turn
    a hook or the answer's form wants more            another turn
    nothing of these                                  the run ends
    ================================================  ====================================

Before each turn a limit of rounds, turns or cost, or a hook, may end the run as well.

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

import asyncio
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tape.model.entries import Context, Text, ToolResult, join_texts, select_tool_calls
from tape.model.entries import Model as ModelEntry

from ..context.costs import CostBudget
from ..context.tokens import NEARLY_FULL_SHARE, build_fill_warning
from ..context.trim import decide_elision, decide_truncation
from ..errors import (
    CompactionCancelled,
    ContextLengthExceeded,
    MalformedHistory,
    NothingToCompact,
)
from ..llm.model_names import BUILT_IN_PROVIDERS
from ..llm.provider_errors import find_window_in_error
from ..policy.decision import format_error_line
from ..tools.background import describe_ended
from . import events
from .compaction import CompactionRequest, compact_branch
from .documents import AttachedDocument, record_documents
from .model_call import call_model, find_advice
from .recorder import find_last_effort, find_last_model
from .repetition import RepetitionGuard
from .request import PreparedRequest, prepare_request
from .tool_step import run_tools

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tape.model.entries import ToolCall
    from tape.model.line import Entry

    from ..errors import ModelError, NoObject
    from .answer_form import AnswerForm
    from .model_call import Answer
    from .queues import QueuedMessage
    from .run_context import RunContext
    from .setup import ToolSource

T = TypeVar("T")


class RunOutcome(NamedTuple):
    """How a run ended."""

    stop_reason: str
    """The stop reason of the newest answer (tape.md §3)."""
    error: ModelError | NoObject | None = None


async def run_loop(context: RunContext) -> RunOutcome:
    """Answer the end of the path until no tool calls, steering or follow-ups are left."""
    queues, state = context.queues, context.state
    turns = rounds = 0
    stop, paused = "stop", False
    hooks = context.setup.hooks
    state.begin_run(context.setup.config.loop_detection_window)
    while True:
        # A paused answer goes back unchanged: words put behind it would be answered instead.
        if not paused:
            _inject_waiting(context)
        is_over = _is_over_limit(context, turns, rounds) or _is_over_budget(context)
        if is_over or not hooks.settle_turn(context.recorder):
            return RunOutcome(stop)
        turns, state.turns = turns + 1, state.turns + 1
        begun = context.setup.clock()
        await _update_tools(context)
        record_model(context)
        context.emit(events.TurnStart(turns))
        context.emit(events.AgentState("thinking", "", turns))
        # Making room would change the answer that the provider is about to continue.
        prepared = prepare_next_call(context) if paused else await make_room(context)
        answer = await _request_answer(context, prepared)
        stop, paused = answer.stop, answer.is_paused
        if answer.error is not None:
            return RunOutcome(stop, answer.error)
        calls = select_tool_calls(answer.content)
        if calls:
            rounds += 1
            names = ", ".join(call.name for call in calls)
            context.emit(events.AgentState("tool_calling", names, turns))
            await run_tools(context, calls, is_cut=stop == "length")
        elapsed_ms = context.measure_elapsed_ms(begun)
        context.emit(events.TurnEnd(turns, len(calls), elapsed_ms))
        if calls and _is_going_in_circles(context, calls):
            return RunOutcome(stop)
        if (calls and not state.is_settled) or paused or queues.steering:
            continue
        # A follow-up is a new input, so its rounds count from 0: the limit is per input.
        if queues.follow_ups:
            _inject_message(context, queues.follow_ups.popleft())
            rounds = 0
        elif not await _keep_working(context, answer):
            return _finish_run(state.form, stop)


async def _update_tools(context: RunContext) -> None:
    """Let the sources of tools bring theirs up to date, and say what is wrong with them."""
    has_person = context.dialogue is not None and context.dialogue.has_person
    for source in context.setup.sources:
        offer = partial(source.offer, context.setup.tools, has_person=has_person)
        for remark in await _ask_source(context, source, offer) or ():
            context.emit(events.Warn(str(remark)))


async def _ask_source(
    context: RunContext, source: ToolSource, ask: Callable[[], Awaitable[T]]
) -> T | None:
    """Return what a source of tools answers; one that fails is named, and ends nothing."""
    try:
        return await ask()
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - code of others
        name = type(source).__name__
        failure = format_error_line(error)
        context.emit(events.Warn(f"the source of tools {name} failed: {failure}"))
        return None


async def attach_mentions(context: RunContext, prompt: str) -> None:
    """Give the model what a prompt names of the sources of tools."""
    for source in context.setup.sources:
        read = await _ask_source(context, source, partial(source.read_mentions, prompt))
        if read is None:
            continue
        documents, remarks = read
        record_documents(context.recorder, [AttachedDocument(*one) for one in documents])
        for remark in remarks:
            context.emit(events.Warn(remark))


async def _keep_working(context: RunContext, answer: Answer) -> bool:
    """Return whether a hook, or the form of the answer, has more for the model to do."""
    form = context.state.form
    if await context.setup.hooks.keep_working(context.recorder):
        return True
    told = None if form is None else form.take_text(join_texts(answer.content))
    if told is None:
        return False
    context.recorder.append(Context("user", "steering", (Text(told),)))
    context.emit(events.SteeringInjected(told, "answer_form"))
    return True


def _finish_run(form: AnswerForm | None, stop: str) -> RunOutcome:
    """Return how a run ended that has nothing left to do: perhaps without the object it needed."""
    if form is None:
        return RunOutcome(stop)
    return RunOutcome("stop") if form.error is None else RunOutcome("error", form.error)


def _inject_waiting(context: RunContext) -> None:
    """Tell the model what the user said, and what has ended in the background."""
    for queued in context.queues.take_steering():
        _inject_message(context, queued)
    for command in context.state.background.take_ended():
        text = describe_ended(command)
        context.recorder.append(Context("user", "note", (Text(text),)))
        context.emit(events.SteeringInjected(text, "background"))
    for ended in () if context.state.agents is None else context.state.agents.take_ended():
        context.recorder.append(Context("user", "note", (Text(ended.text),)))
        context.emit(events.SteeringInjected(ended.text, "agent"))


def record_model(context: RunContext) -> None:
    """Record model, effort and permission mode of the next call where they are new."""
    context.record_mode()
    model, effort = context.setup.model, context.setup.config.effort
    path = context.recorder.path
    last = find_last_model(path)
    has_new_effort = effort is not None and effort != find_last_effort(path)
    if (
        last != model.name
        and context.window is None
        and context.setup.compaction.auto
        and model.provider not in BUILT_IN_PROVIDERS
    ):
        context.warn_once(
            f"the context window of {model.name} is unknown: it is learned when the conversation "
            f'no longer fits; or set context_window in [models."{model.name}"] of config.toml'
        )
    if has_new_effort or (last is not None and last != model.name):
        context.recorder.append(ModelEntry(model.provider, model.id, effort))


def _is_over_limit(context: RunContext, turns: int, rounds: int) -> bool:
    """Return whether a limit of calls is reached, with an event that names it."""
    config = context.setup.config
    reached: tuple[str, int] | None = None
    if config.max_tool_rounds_per_input and rounds >= config.max_tool_rounds_per_input:
        reached = "round", config.max_tool_rounds_per_input
    elif config.max_turns and context.state.turns >= config.max_turns:
        reached = "total_turns", config.max_turns
    if reached is None:
        return False
    context.emit(events.TurnLimit(*reached, turns))
    context.emit(events.AgentState("error", f"达到最大迭代次数 {reached[1]}", turns))
    return True


def _is_going_in_circles(context: RunContext, calls: Sequence[ToolCall]) -> bool:
    """Tell the model if it repeats its calls; return whether it did so too often."""
    if not context.setup.config.enable_loop_detection:
        return False
    results = find_results(context.recorder.path, calls)
    found = context.state.repetition.record_calls(calls, results)
    if found is None:
        return False
    context.emit(events.LoopDetection(found.message, found.is_last))
    if found.is_new and not found.is_last:
        context.recorder.append(Context("user", "steering", (Text(found.message),)))
        context.emit(events.SteeringInjected(found.message, "loop_detection"))
    return found.is_last


def find_results(path: Sequence[Entry], calls: Sequence[ToolCall]) -> list[ToolResult]:
    """Return the results of the newest calls on a path, in the order of the calls."""
    wanted = {call.id for call in calls}
    found: dict[str, ToolResult] = {}
    for entry in reversed(path):
        if isinstance(entry.data, ToolResult) and entry.data.call_id in wanted:
            found[entry.data.call_id] = entry.data
            if len(found) == len(wanted):
                break
    return [found[call.id] for call in calls]


def _is_over_budget(context: RunContext) -> bool:
    """Return whether the max cost is reached, with an event; warn of unknown prices."""
    state = context.state
    if not context.setup.config.max_cost:
        return False
    budget = CostBudget(context.setup.config.max_cost, state.shared_spend)
    if budget.is_over:
        context.emit(events.CostLimit(budget.spend.cost or 0.0, budget.limit))
    elif budget.warning and not state.price_warned:
        state.price_warned = True
        context.emit(events.Warn(budget.warning))
    return budget.is_over


async def _request_answer(context: RunContext, prepared: PreparedRequest) -> Answer:
    """Make one model call; repeat it once if a changed request may be accepted, or for words."""
    answer, is_changed = await _call_after_hooks(context, prepared), False
    # Estimates may be wrong and windows unknown: the provider's refusal is the last check.
    if isinstance(answer.error, ContextLengthExceeded):
        learn_window(context, answer.error, prepared)
        is_changed = context.setup.compaction.auto and await shrink_context(context, "overflow")
    # Data in a provider's own form is the likeliest cause: signatures expire, hosts differ.
    elif isinstance(answer.error, MalformedHistory) and not context.state.refused:
        context.state.refused = is_changed = True
        context.emit(events.Warn("the provider refused the history: retrying with a plainer one"))
    if is_changed:
        answer = await _call_after_hooks(context, prepare_next_call(context))
    elif answer.is_wordless:
        context.emit(events.Warn(f"{prepared.model.provider} sent an answer without words · try 2"))
        answer = await _call_after_hooks(context, prepared.mark_repair_recorded())
    if answer.error is not None and (advice := find_advice(answer.error)):
        context.emit(events.Warn(advice))
    return answer


async def _call_after_hooks(context: RunContext, prepared: PreparedRequest) -> Answer:
    request = await context.setup.hooks.change_request(context.recorder, prepared.request)
    prepared = prepared._replace(request=request)
    if (form := context.state.form) is not None:
        forces_calls = prepared.model.forces_calls
        shaped = form.begin_turn(prepared.request, forces_calls=forces_calls)
        prepared = prepared._replace(request=shaped)
    return await call_model(context, prepared)


_LEARNED_SHARE = 0.95
"""Share of a request that did not fit that is taken for the context window, if nothing names it."""


def learn_window(
    context: RunContext, error: ContextLengthExceeded, prepared: PreparedRequest
) -> None:
    """Remember the context window that an overflow shows: the one it names, else an estimate.

    An estimate is taken only for an unknown one.
    """
    model, known = prepared.model, context.window
    learned = find_window_in_error(str(error))
    if learned is None and known is None:
        learned = int(prepared.measure().tokens * _LEARNED_SHARE)
    if learned is not None and (known is None or learned < known):
        context.state.windows[model.name] = learned
        context.warn_once(
            f"the context window of {model.name} is {learned:,} tokens, as this overflow shows; "
            f'set context_window = {learned} in [models."{model.name}"] to keep that'
        )


def _inject_message(context: RunContext, queued: QueuedMessage) -> None:
    # A person who says "again" asks for the same calls: they are no circle.
    context.state.repetition = RepetitionGuard(context.setup.config.loop_detection_window)
    entry = context.recorder.append(Context("user", queued.origin, (Text(queued.text),)))
    record_documents(context.recorder, context.state.documents)
    context.queues.record_delivery(queued, entry.id)
    context.emit(events.SteeringInjected(queued.text, queued.origin, queued.id))


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
    """Return how much of the context window the next call takes; estimated near the limit only."""
    prepared, limit = prepare_next_call(context), _compute_limit(context)
    size = prepared.history.size
    return ContextFill(size.measure_near(prepared.request, inf if limit is None else limit), limit)


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
        fold=context.state.fold,
        effort=context.setup.config.effort,
        max_output=context.setup.config.max_output_tokens,
    )


def _compute_limit(context: RunContext) -> int | None:
    settings, window = context.setup.compaction, context.window
    limits = [] if window is None else [window - min(settings.reserve, window // 4)]
    if settings.limit is not None:
        limits.append(settings.limit)
    return min(limits, default=None)


def _find_lowest_mark(context: RunContext, limit: int | None) -> float:
    """Return the tokens up to which `make_room` does nothing."""
    settings, window = context.setup.compaction, context.window
    marks = [inf] if window is None else [NEARLY_FULL_SHARE * window]
    if limit is not None and settings.auto:
        marks += [limit, settings.high_water * (window or limit)]
    return min(marks)


async def make_room(context: RunContext) -> PreparedRequest:
    """Make room for the next call if needed, and return its request."""
    state, settings, window = context.state, context.setup.compaction, context.window
    if state.focus is not None:
        focus, state.focus = state.focus, None
        try:
            await compact_branch(context, CompactionRequest("model", focus))
        except NothingToCompact as error:
            context.emit(events.Warn(str(error)))
    prepared, limit = prepare_next_call(context), _compute_limit(context)
    tokens, mark = (
        prepared.history.size.compute_bound(prepared.request),
        _find_lowest_mark(context, limit),
    )
    if tokens > mark:  # else nothing depends on how many they are
        tokens = prepared.history.size.measure_near(prepared.request, mark)
    warning = build_fill_warning(tokens, window)
    if warning and not state.warned:
        context.emit(events.Warn(warning))
    state.warned = warning is not None  # warn again after the context window had room
    if limit is None or not settings.auto:
        return prepared
    # A summary is due at once; elided results alone would only postpone it by a turn or two.
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
    # A view that stays too large, because of one huge result, must not be summarised for ever.
    if context.state.in_row < MAX_COMPACTIONS_IN_ROW:
        context.state.in_row += 1
        try:
            await compact_branch(context, CompactionRequest(reason, gain=MIN_GAIN))
        except CompactionCancelled as error:
            context.emit(events.Warn(str(error)))
            return False
        except NothingToCompact:
            pass
        else:
            return True
    truncation = decide_truncation((*recorder.kept, *recorder.path))
    if truncation is None:
        return False
    recorder.append(truncation)
    context.emit(
        events.Warn("long tool results are cut in the request: the context window is full")
    )
    return True
