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

Before each turn a limit of rounds, turns or cost, or a hook, may end the run as well; at that of
rounds a person at the session is asked first.

Before each model call `context_window` makes room if needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Context, Text, ToolResult, join_texts, select_tool_calls
from tape.model.entries import Model as ModelEntry
from tape.text import format_count

from ..context.costs import CostBudget
from ..errors import ContextLengthExceeded, MalformedHistory
from ..llm.model_names import BUILT_IN_PROVIDERS
from ..tools.background import describe_ended
from ..tools.dialogue import Question, QuestionOption
from . import events
from .context_window import learn_window, make_room, shrink_context
from .documents import record_documents
from .model_call import call_model, find_advice
from .recorder import find_last_effort, find_last_model
from .tool_sources import update_tools
from .tool_step import run_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import ToolCall
    from tape.model.line import Entry

    from ..errors import ModelError, NoObject
    from .answer_form import AnswerForm
    from .events import Emit
    from .hook_points import SessionHooks
    from .model_call import Answer
    from .no_hooks import NoHooks
    from .queues import QueuedMessage, SessionQueues
    from .recorder import Recorder
    from .repetition import RepetitionGuard
    from .request import PreparedRequest
    from .run_context import RunContext, RunState
    from .session_config import SessionConfig


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
    emit, recorder = context.emit, context.recorder
    while True:
        # A paused answer goes back unchanged: words put behind it would be answered instead.
        if not paused:
            _inject_waiting(queues, state, recorder)
        rounds = await _ask_for_more_rounds(context, rounds)
        is_over = _is_over_limit(
            context.setup.config, turns, rounds, state.turns, emit
        ) or _is_over_budget(context.setup.config.max_cost, turns, state, emit)
        if is_over or not hooks.settle_turn(context.recorder):
            return RunOutcome(stop)
        turns, state.turns = turns + 1, state.turns + 1
        started_at = context.setup.clock()
        has_person = context.dialogue is not None and context.dialogue.has_person
        setup = context.setup
        await update_tools(setup.sources, setup.tools, emit, has_person=has_person)
        record_model(context)
        context.emit(events.TurnStart(turns))
        context.emit(events.AgentState("thinking", "", turns))
        # Making room would change the answer that the provider is about to continue.
        prepared = context.prepare_next_call() if paused else await make_room(context)
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
        elapsed_ms = context.measure_elapsed_ms(started_at)
        context.emit(events.TurnEnd(turns, len(calls), elapsed_ms))
        if calls and _is_going_in_circles(
            context.setup.config, state.repetition, recorder, calls, emit
        ):
            return RunOutcome(stop)
        if (calls and not state.is_settled) or paused or queues.steering:
            continue
        # A follow-up is a new input, so its rounds count from 0: the limit is per input.
        if queues.follow_ups:
            _inject_message(queues, state, recorder, queues.follow_ups.popleft())
            rounds = 0
        elif not await _keep_working(context.setup.hooks, state.form, recorder, answer, emit):
            return _finish_run(state.form, stop)


async def _keep_working(
    hooks: SessionHooks | NoHooks,
    form: AnswerForm | None,
    recorder: Recorder,
    answer: Answer,
    emit: Emit,
) -> bool:
    """Return whether a hook, or the form of the answer, has more for the model to do."""
    if await hooks.keep_working(recorder):
        return True
    words = None if form is None else form.take_text(join_texts(answer.content))
    if words is None:
        return False
    recorder.append(Context("user", "steering", (Text(words),)))
    emit(events.SteeringInjected(words, "answer_form"))
    return True


def _finish_run(form: AnswerForm | None, stop: str) -> RunOutcome:
    """Return how a run ended that has nothing left to do: perhaps without the object it needed."""
    if form is None:
        return RunOutcome(stop)
    return RunOutcome("stop") if form.error is None else RunOutcome("error", form.error)


def _inject_waiting(queues: SessionQueues, state: RunState, recorder: Recorder) -> None:
    """Tell the model what the user said, and what has ended in the background."""
    for queued in queues.take_steering():
        _inject_message(queues, state, recorder, queued)
    for command in state.background.take_ended():
        text = describe_ended(command)
        recorder.append(Context("user", "note", (Text(text),)))
        queues.emit(events.SteeringInjected(text, "background"))
    for ended in () if state.agents is None else state.agents.take_ended():
        recorder.append(Context("user", "note", (Text(ended.text),)))
        queues.emit(events.SteeringInjected(ended.text, "agent"))


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


_CONTINUE = "Continue"


async def _ask_for_more_rounds(context: RunContext, rounds: int) -> int:
    """Return the rounds that count: 0 where a person at the session continues beyond the limit.

    Words of their own go to the model, which continues with them.
    """
    limit = context.setup.config.max_tool_rounds_per_input
    if not 0 < limit <= rounds or context.dialogue is None or not context.dialogue.has_person:
        return rounds
    rounds_text = format_count(limit, "round of tool calls", "rounds of tool calls")
    question = Question(
        f"The limit of {rounds_text} for one prompt is reached. Continue?",
        (QuestionOption(_CONTINUE, "As many rounds again"), QuestionOption("Stop")),
        "Limit",
    )
    answers = await context.dialogue.ask(f"rounds_{context.state.turns}", (question,))
    words = " ".join((answers or {}).get(question.question, ()))
    if words not in {"", _CONTINUE, "Stop"}:
        context.recorder.append(Context("user", "steering", (Text(words),)))
        context.emit(events.SteeringInjected(words, "steering"))
    return rounds if words in {"", "Stop"} else 0


def _is_over_limit(
    config: SessionConfig, turns: int, rounds: int, all_turns: int, emit: Emit
) -> bool:
    """Return whether a limit of calls is reached, with an event that names it.

    `turns` and `rounds` are those of the run, `all_turns` those of the session.
    """
    reached: tuple[str, int] | None = None
    if config.max_tool_rounds_per_input and rounds >= config.max_tool_rounds_per_input:
        reached = "round", config.max_tool_rounds_per_input
    elif config.max_turns and all_turns >= config.max_turns:
        reached = "total_turns", config.max_turns
    if reached is None:
        return False
    emit(events.TurnLimit(*reached, turns))
    emit(events.AgentState("error", f"达到最大迭代次数 {reached[1]}", turns))
    return True


def _is_going_in_circles(
    config: SessionConfig,
    repetition: RepetitionGuard,
    recorder: Recorder,
    calls: Sequence[ToolCall],
    emit: Emit,
) -> bool:
    """Tell the model if it repeats its calls; return whether it did so too often."""
    if not config.enable_loop_detection:
        return False
    finding = repetition.record_calls(calls, find_results(recorder.path, calls))
    if finding is None:
        return False
    emit(events.LoopDetection(finding.message, finding.is_last))
    if finding.is_new and not finding.is_last:
        recorder.append(Context("user", "steering", (Text(finding.message),)))
        emit(events.SteeringInjected(finding.message, "loop_detection"))
    return finding.is_last


def find_results(path: Sequence[Entry], calls: Sequence[ToolCall]) -> list[ToolResult]:
    """Return the results of the newest calls on a path, in the order of the calls."""
    call_ids = {call.id for call in calls}
    by_call: dict[str, ToolResult] = {}
    for entry in reversed(path):
        if isinstance(entry.data, ToolResult) and entry.data.call_id in call_ids:
            by_call[entry.data.call_id] = entry.data
            if len(by_call) == len(call_ids):
                break
    return [by_call[call.id] for call in calls]


def _is_over_budget(max_cost: float, turns: int, state: RunState, emit: Emit) -> bool:
    """Return whether the max cost is reached, with an event; warn of unknown prices."""
    if not max_cost:
        return False
    budget = CostBudget(max_cost, state.shared_spend)
    if budget.is_over:
        emit(events.CostLimit(budget.spend.cost or 0.0, budget.limit))
        emit(events.AgentState("error", f"the cost limit of ${budget.limit:g} is reached", turns))
    elif budget.warning and not state.price_warned:
        state.price_warned = True
        emit(events.Warn(budget.warning))
    return budget.is_over


async def _request_answer(context: RunContext, prepared: PreparedRequest) -> Answer:
    """Make one model call; repeat it once if a changed request may be accepted, or for words."""
    answer, is_changed = await _call_after_hooks(context, prepared), False
    # Estimates may be wrong and windows unknown: the provider's refusal is the last check.
    if isinstance(answer.error, ContextLengthExceeded):
        window = learn_window(context.window, answer.error, prepared)
        if window is not None:
            context.state.windows[prepared.model.name] = window
            context.warn_once(_explain_window(prepared.model.name, window))
        is_changed = context.setup.compaction.auto and await shrink_context(context, "overflow")
    # Data in a provider's own form is the likeliest cause: signatures expire, hosts differ.
    elif isinstance(answer.error, MalformedHistory) and not context.state.refused:
        context.state.refused = is_changed = True
        context.emit(events.Warn("the provider refused the history: retrying with a plainer one"))
    if is_changed:
        answer = await _call_after_hooks(context, context.prepare_next_call())
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


def _explain_window(name: str, window: int) -> str:
    return (
        f"the context window of {name} is {window:,} tokens, as this overflow shows; "
        f'set context_window = {window} in [models."{name}"] to keep that'
    )


def _inject_message(
    queues: SessionQueues, state: RunState, recorder: Recorder, queued: QueuedMessage
) -> None:
    # A person who says "again" asks for the same calls: they are no circle.
    state.repetition.clear()
    entry = recorder.append(Context("user", queued.origin, (Text(queued.text),)))
    record_documents(recorder, state.documents)
    queues.record_delivery(queued, entry.id)
    queues.emit(events.SteeringInjected(queued.text, queued.origin, queued.id))
