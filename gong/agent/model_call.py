"""One model call: build the request from the path, stream the answer, record it.

A title for a new session, made from its first prompt by a cheap model.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from tape.context.repair import is_repair_recorded
from tape.context.view import Message
from tape.model.entries import Assistant, Error, Failure, SideUsage, Text
from tape.text import shorten_to_width, to_single_line

from ..errors import (
    ContentFiltered,
    ContextLengthExceeded,
    MalformedHistory,
    ModelError,
    StreamError,
)
from ..llm.accumulate import StreamAccumulator
from ..llm.provider_errors import is_silent_overflow
from ..llm.types import (
    ReasoningDelta,
    Request,
    StreamEvent,
    StreamStart,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from . import events
from .run_context import AgentModel, RunContext, measure_elapsed_ms, record_abort

if TYPE_CHECKING:
    from tape.model.entries import Content, Repair

    from .run_context import PreparedRequest


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


def find_advice(error: ModelError) -> str | None:
    """Return advice for an error that would recur with each prompt, else ""."""
    return next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), None)


async def call_model(parts: RunContext, made: PreparedRequest) -> Answer:
    """Make one model call from the current path, and record the answer or failure."""
    _record_repair(parts, made.repair)
    parts.record.barrier()
    answer = StreamAccumulator(parts.call_prefix())
    begun = parts.clock()
    try:
        async with aclosing(parts.model.stream(made.request)) as stream:
            async for event in stream:
                answer.process(event)
                _emit_update(parts, event)
    except asyncio.CancelledError:
        _record_stopped_answer(parts, answer, measure_elapsed_ms(parts, begun))
        raise
    return _record_answer(parts, answer, measure_elapsed_ms(parts, begun))


def _record_repair(parts: RunContext, done: Repair | None) -> None:
    """Record the repairs of a request before it is sent."""
    if done is not None and not is_repair_recorded(done, parts.record.path):
        parts.record.append(done)
        parts.emit(events.HistoryRepaired(len(done.injected), len(done.dropped), done.why))


def _emit_update(parts: RunContext, event: StreamEvent) -> None:
    match event:
        case StreamStart(model=model):
            parts.emit(events.MessageStart(model))
        case TextDelta(index=index, delta=delta):
            parts.emit(events.MessageUpdate("text", index, delta))
        case ReasoningDelta(index=index, delta=delta):
            parts.emit(events.MessageUpdate("thinking", index, delta))
        case ToolCallStart(index=index, name=name):
            parts.emit(events.MessageUpdate("tool_call", index, "", name))
        case ToolCallDelta(index=index, delta=delta):
            parts.emit(events.MessageUpdate("tool_call", index, delta))
        case _:
            pass


def _build_assistant(
    parts: RunContext, answer: StreamAccumulator, content: Content, stop: str, duration_ms: int
) -> Assistant:
    cost = parts.model.cost(answer.usage)
    parts.pressure.count_usage(answer.usage, cost)
    return Assistant(
        content=content,
        provider=parts.model.provider,
        api=parts.model.api,
        endpoint=parts.model.endpoint,
        model=parts.model.id,
        stop_reason=stop,
        raw_stop=answer.finish.raw_stop if answer.finish else None,
        usage=answer.usage,
        cost=cost,
        response_id=answer.response_id,
        duration_ms=duration_ms,
        partial=answer.finish is None,
        error=_describe_failure(answer),
    )


def _describe_failure(answer: StreamAccumulator) -> Failure | None:
    """Return the error text of an answer, or the provider's reason for refusing it."""
    error, finish = answer.error, answer.finish
    if error is None and finish is not None and finish.why:
        return Failure(ContentFiltered.__name__, finish.why)
    return Failure(type(error).__name__, str(error)) if error else None


def _record_stopped_answer(parts: RunContext, answer: StreamAccumulator, duration_ms: int) -> None:
    """Record the text of a stopped answer; record nothing if it had none."""
    content = answer.partial()
    if content:
        parts.record.append(_build_assistant(parts, answer, content, "aborted", duration_ms))
    record_abort(parts)


def _record_answer(parts: RunContext, answer: StreamAccumulator, duration_ms: int) -> Answer:
    error = answer.error
    if error is None:
        error = answer.error = _find_silent_fault(parts.model, answer)
    if error is not None:
        return _record_failed_answer(parts, answer, error, duration_ms)
    response = answer.response()
    entry = parts.record.append(
        _build_assistant(parts, answer, response.content, response.stop_reason, duration_ms)
    )
    parts.record.barrier()
    parts.pressure.in_row = 0
    parts.emit(events.MessageEnd(entry.id, response.content, response.stop_reason, response.usage))
    if response.stop_reason == "content_filter":
        parts.emit(events.Warn(_describe_refusal(parts.model, answer)))
    for remark in parts.pressure.take_new_remarks(response.warnings):
        parts.emit(events.Warn(remark))
    return Answer(response.content, response.stop_reason, is_paused=response.is_paused)


def _find_silent_fault(model: AgentModel, answer: StreamAccumulator) -> ModelError | None:
    """Return an error that the provider did not report, else ""."""
    if answer.finish is None:
        return StreamError("the answer ended before it was complete", provider=model.provider)
    if not is_silent_overflow(answer.finish.stop_reason, answer.usage, model.window):
        return None
    return ContextLengthExceeded(
        f"the conversation did not fit {model.provider}/{model.id}, which takes {model.window:,} "
        "tokens: its host cut it without an error",
        provider=model.provider,
    )


def _describe_refusal(model: AgentModel, answer: StreamAccumulator) -> str:
    why = answer.finish.why if answer.finish else None
    return f"{model.provider} stopped this answer: " + (why or "its filter rejected it")


def _record_failed_answer(
    parts: RunContext, answer: StreamAccumulator, error: ModelError, duration_ms: int
) -> Answer:
    content = answer.partial()
    if content:
        parts.record.append(_build_assistant(parts, answer, content, "error", duration_ms))
    parts.record.append(Error(type(error).__name__, str(error), error.retryable, error.status))
    parts.record.barrier()
    return Answer(content, "error", error)


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


async def name_session(parts: RunContext, model: AgentModel, prompt: str) -> str | None:
    """Give the tape a title, unless it has one; return it, or None if none was set.

    A failure or timeout of the model is ignored.
    """
    tape = parts.record.tape
    if tape.refs().title is not None:
        return None
    try:
        async with asyncio.timeout(_TITLE_SECONDS):
            said = await _request_title(parts, model, prompt)
    except (ModelError, TimeoutError):
        return None
    title = shorten_to_width(to_single_line(said).strip(" \"'.。“”#*"), TITLE_COLUMNS)
    if not title or tape.refs().title is not None:
        return None
    tape.rename(title)
    return title


async def _request_title(parts: RunContext, model: AgentModel, prompt: str) -> str:
    request = Request(
        model=model.id,
        messages=(Message("user", (Text(prompt[:_TITLE_PROMPT_CHARS]),)),),
        system=_TITLE_SYSTEM,
        max_tokens=_TITLE_TOKENS,
    )
    answer = StreamAccumulator(parts.call_prefix())
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            answer.process(event)
    response = answer.response()
    cost = model.cost(response.usage)
    parts.pressure.count_usage(response.usage, cost)
    parts.record.append(SideUsage("title", model.provider, model.id, response.usage, cost=cost))
    return response.text
