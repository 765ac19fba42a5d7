"""One model call: build the request from the path, stream the answer, record it.

What an answer leaves on the tape depends on how it ended:

    ==================  ============================================  ==========================
    end                 entries                                       `Answer`
    ==================  ============================================  ==========================
    complete            assistant                                     its stop reason, no error
    repeats itself      assistant `stop`, partial                     stop, no error
    stopped by user     assistant `aborted` (if it has text)          none: CancelledError
    failed, cut short,  assistant `error` (if it has text), error     `error` and the ModelError
    or silently cut
    ==================  ============================================  ==========================

A new session gets its title from its first prompt by a second, cheap model, in the background.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw

from tape.context.repair import STOPPED
from tape.context.view import Message
from tape.errors import TapeError
from tape.model.entries import (
    NO_JSON,
    Assistant,
    Error,
    Failure,
    Repair,
    Text,
    is_wordless,
)
from tape.render.sources import list_sources
from tape.text import shorten_to_width, to_single_line

from ..errors import (
    ContentFiltered,
    ContextLengthExceeded,
    GongError,
    MalformedHistory,
    ModelError,
    StreamError,
)
from ..llm.provider_errors import is_silent_overflow
from ..llm.types import (
    Finish,
    ReasoningDelta,
    Request,
    Response,
    StreamEvent,
    StreamStart,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from . import events
from .repetition import REPEATED_TEXT, TextGuard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from tape.model.entries import Content
    from tape.model.line import Entry

    from ..llm.accumulate import StreamAccumulator
    from ..tools.registry import ToolRegistry
    from .events import Emit
    from .model import AgentModel
    from .recorder import Recorder
    from .request import PreparedRequest
    from .run_context import AskModel, RunContext


_ADVICE: dict[type[ModelError], str] = {
    ContextLengthExceeded: (
        "the conversation is too long for this model: compact it (/compact), continue with one "
        "that takes more (-m), or from an earlier entry (--fork REF@ENTRY)"
    ),
    MalformedHistory: (
        "this provider does not accept the conversation: continue with another model "
        "(-m), or from an earlier entry (--fork REF@ENTRY)"
    ),
}


class Answer(NamedTuple):
    """The result of one model call."""

    content: Content
    stop: str
    error: ModelError | None = None
    is_paused: bool = False
    """Whether the provider paused: sending the answer back unchanged continues it."""
    is_wordless: bool = False
    """Whether it came whole and neither says nor calls anything."""


def find_advice(error: ModelError) -> str | None:
    """Return advice for an error that would recur with each prompt, else None."""
    return next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), None)


async def call_model(context: RunContext, prepared: PreparedRequest) -> Answer:
    """Make one model call, and record the repairs of its request and the answer or failure."""
    recorder, model = context.recorder, prepared.model
    if prepared.history.unrecorded is not None:
        _record_repair(recorder, prepared.history.unrecorded, context.emit)
    if prepared.remark is not None:
        context.warn_once(prepared.remark)
    recorder.barrier()
    answer = context.state.answer = context.start_answer()
    started_at = context.setup.clock()

    def build_assistant(content: Content, stop: str) -> Assistant:
        elapsed_ms = context.measure_elapsed_ms(started_at)
        assistant = _build_assistant(model, answer, content, stop, elapsed_ms)
        context.state.count_usage(assistant.usage, assistant.cost)
        return assistant

    try:
        repeats = await _stream_answer(
            context.stream_with_retries(model, prepared.request),
            answer,
            context.emit,
            guards=context.setup.config.enable_loop_detection,
        )
    except asyncio.CancelledError:
        if content := answer.partial():
            recorder.append(build_assistant(content, "aborted"))
        raise
    finally:
        context.state.answer = None
    if repeats:
        return _record_repetition(recorder, build_assistant(answer.partial(), "stop"), context.emit)
    if answer.error is None:
        answer.error = _find_silent_fault(model, answer)
    if answer.error is None:
        response = answer.response()
        assistant = build_assistant(response.content, response.stop_reason)
        tools, finish = context.setup.tools, answer.finish
        recorded = _record_answer(recorder, tools, response, assistant, finish, context.emit)
        context.state.in_row = 0
        context.warn_once(*response.warnings)
        return recorded
    error, content = answer.error, answer.partial()
    if content:
        recorder.append(build_assistant(content, "error"))
    recorder.append(Error(type(error).__name__, str(error), error.retryable, error.status))
    recorder.barrier()
    return Answer(content, "error", error)


def _record_repair(recorder: Recorder, repair: Repair, emit: Emit) -> None:
    if _is_damage(repair, (*recorder.kept, *recorder.path)):
        emit(events.HistoryRepaired(len(repair.injected), len(repair.dropped), repair.why))
    recorder.append(repair)


def _is_damage(repair: Repair, entries: Sequence[Entry]) -> bool:
    """Return whether a repair has to do with more than what the user stopped.

    What the newest repair among the entries says was reported before.
    """
    reported = Repair("results")
    stopped = set()
    for entry in entries:
        if isinstance(entry.data, Repair) and entry.data.kind == "results":
            reported = entry.data
        elif isinstance(entry.data, Assistant) and entry.data.stop_reason == "aborted":
            stopped.add(entry.id)
    injected = {*repair.injected} - {*reported.injected}
    dropped = {*repair.dropped} - {*reported.dropped}
    return any(result.text != STOPPED for result in injected) or not dropped <= stopped


async def _stream_answer(
    source: AsyncGenerator[StreamEvent, None],
    answer: StreamAccumulator,
    emit: Emit,
    *,
    guards: bool,
) -> bool:
    """Collect an answer and show it; return whether it was ended because it repeats itself.

    With `guards` it is ended then.
    """
    arguments, guard = _ArgumentsParser(answer), TextGuard()
    async with aclosing(source) as stream:
        async for event in stream:
            answer.process(event)
            if (update := arguments.build_update(event)) is not None:
                emit(update)
            if (
                guards
                and isinstance(event, TextDelta | ReasoningDelta)
                and guard.add_piece(event.index, event.delta)
            ):
                return True
    return False


class _ArgumentsParser:
    """Makes updates of an answer, with the arguments of each call so far.

    The arguments are parsed again whenever their text has grown by an eighth, so that all parses of
    a call together read about nine times its text.
    """

    def __init__(self, answer: StreamAccumulator) -> None:
        self._answer = answer
        self._lengths: dict[int, int] = {}
        """Characters of each call's arguments so far."""
        self._next: dict[int, int] = {}
        """At how many of them they are parsed next."""

    def build_update(self, event: StreamEvent) -> events.Event | None:
        """Return what front ends get of an event of a provider's stream."""
        match event:
            case StreamStart(model=model):
                return events.MessageStart(model)
            case TextDelta(index=index, delta=delta):
                return events.MessageUpdate("text", index, delta)
            case ReasoningDelta(index=index, delta=delta):
                return events.MessageUpdate("thinking", index, delta)
            case ToolCallStart(index=index, name=name):
                return events.MessageUpdate("tool_call", index, "", name)
            case ToolCallDelta(index=index, delta=delta):
                length = self._lengths[index] = self._lengths.get(index, 0) + len(delta)
                arguments = NO_JSON
                if length >= self._next.get(index, 1):
                    self._next[index] = length + length // 8 + 1
                    arguments = Raw(msgspec.json.encode(self._answer.arguments(index)))
                return events.MessageUpdate("tool_call", index, delta, arguments=arguments)
        return None


def _build_assistant(
    model: AgentModel, answer: StreamAccumulator, content: Content, stop: str, duration_ms: int
) -> Assistant:
    """Return an answer as it is recorded."""
    finish, failure = answer.finish, None
    if answer.error is not None:
        failure = Failure(type(answer.error).__name__, str(answer.error))
    elif finish is not None and finish.why:  # the provider's reason for refusing it
        failure = Failure(ContentFiltered.__name__, finish.why)
    return Assistant(
        content=content,
        provider=model.provider,
        api=model.api,
        endpoint=model.endpoint,
        model=model.id,
        stop_reason=stop,
        raw_stop=finish.raw_stop if finish else None,
        usage=answer.usage,
        cost=model.cost(answer.usage),
        response_id=answer.response_id,
        duration_ms=duration_ms,
        partial=finish is None,
        error=failure,
    )


def _record_answer(
    recorder: Recorder,
    tools: ToolRegistry,
    response: Response,
    assistant: Assistant,
    finish: Finish | None,
    emit: Emit,
) -> Answer:
    """Record a complete answer, and emit it."""
    content, stop, calls = response.content, response.stop_reason, response.tool_calls
    entry = recorder.append(assistant)
    # A tool with effects must never have run for an answer that a power cut then takes away.
    if not calls or not all(map(tools.is_safe_call, calls)):
        # For calls that only read, the barrier behind their results is enough.
        recorder.barrier()
    emit(events.MessageEnd(entry.id, content, stop, response.usage, list_sources(content)))
    if stop == "content_filter":
        why = (finish.why if finish else None) or "its filter rejected it"
        emit(events.Warn(f"{assistant.provider} stopped this answer: {why}"))
    is_ended = stop in {"stop", "tool_calls"} and not response.is_paused
    has_nothing = is_ended and is_wordless(content)
    return Answer(content, stop, is_paused=response.is_paused, is_wordless=has_nothing)


def _record_repetition(recorder: Recorder, assistant: Assistant, emit: Emit) -> Answer:
    """Record an answer that was ended because it repeats itself, and tell so."""
    entry = recorder.append(assistant)
    recorder.barrier()
    emit(events.MessageEnd(entry.id, assistant.content, "stop", assistant.usage))
    emit(events.LoopDetection(REPEATED_TEXT, stopped=True, what="text"))
    return Answer(assistant.content, "stop")


_CUTTING_PROVIDERS = frozenset({"zai"})
"""Providers that answer a prompt above the context window after cutting it, without an error."""


def _find_silent_fault(model: AgentModel, answer: StreamAccumulator) -> ModelError | None:
    """Return an error that the provider did not report, else None."""
    if answer.finish is None:
        return StreamError("the answer ended before it was complete", provider=model.provider)
    if not is_silent_overflow(
        answer.finish.stop_reason,
        answer.usage,
        model.window,
        cuts_prompts=model.provider in _CUTTING_PROVIDERS,
    ):
        return None
    return ContextLengthExceeded(
        f"the conversation did not fit {model.name}, which takes {model.window:,} "
        "tokens: its host cut it without an error",
        provider=model.provider,
    )


TITLE_COLUMNS = 60
"""Maximum columns of a title."""
_TITLE_SYSTEM = (
    "You name conversations. Answer with a title of three to six words for the one that begins "
    "with these words, in their language: no quotes, no full stop, nothing else."
)
_TITLE_PROMPT_CHARS = 2_000
"""Maximum characters of the prompt that the model sees."""
_TITLE_SECONDS = 15
_TITLE_TOKENS = 2_000
"""Maximum tokens of a title, and of the model's thinking before it."""


async def name_session(
    recorder: Recorder, model: AgentModel, ask_model: AskModel, prompt: str, emit: Emit
) -> None:
    """Give a session without a title one, by a model's answer to its first prompt.

    A failure or timeout of the model is ignored, and a tape that cannot be written: nothing waits
    for a title.
    """
    request = Request(
        model=model.id,
        messages=(Message("user", (Text(prompt[:_TITLE_PROMPT_CHARS]),)),),
        system=_TITLE_SYSTEM,
        max_tokens=_TITLE_TOKENS,
    )
    with suppress(GongError, TimeoutError, TapeError, OSError):
        async with asyncio.timeout(_TITLE_SECONDS):
            text, usage = await ask_model(model, "title", request)
        recorder.append(usage)
        title = shorten_to_width(to_single_line(text).strip(" \"'.。“”#*"), TITLE_COLUMNS)
        if title and recorder.tape.refs().title is None:
            recorder.tape.rename(title)
            emit(events.SessionNamed(title))


def is_first_prompt(path: Sequence[Entry], entry: Entry) -> bool:
    """Return whether a prompt is the first one of a new session, but for some without an answer."""
    earlier = (past.data for past in path if past.n < entry.n)
    return path[0].n == 0 and not any(
        isinstance(data, Assistant) and data.stop_reason not in {"error", "aborted"}
        for data in earlier
    )
