"""The loop: record, view, repair, request, stream, record, tools, and again, until nothing is left.

It is handed all its parts and owns none. Every fact is an entry before anything follows from it,
and every barrier of tape.md §5.4 stands where the code goes on to something it must not outrun.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from tape import repair
from tape.blocks import NO_JSON, Content, Text, ToolCall, tool_calls
from tape.entries import (
    Assistant,
    Context,
    Error,
    Failure,
    Payload,
    ToolResult,
    ToolStart,
)
from tape.repair import ABORTED, Target
from tape.view import Message, view

from ..errors import ModelError, StreamError
from ..llm.accumulate import StreamAccumulator
from ..llm.types import (
    ReasoningDelta,
    Request,
    StreamEvent,
    StreamStart,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from ..tools import tool
from ..tools.tool import ToolContext
from . import events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from tape.line import Entry

    from ..env.protocol import ExecutionEnvironment
    from ..policy import Policy
    from ..tools.registry import Prepared, Registry

SKIPPED = "Skipped due to queued user message"
"""What a call is answered that steering overtook."""


class Record(Protocol):
    """Where facts go: the open branch."""

    path: list[Entry]

    def append(self, payload: Payload) -> Entry:
        """Write one entry."""
        ...

    def barrier(self) -> None:
        """Return when everything appended is on the medium."""
        ...


class Queued(NamedTuple):
    """Words that wait for a border: `origin` is steering or follow_up."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Model:
    """Who answers: how to ask it, and what its answers are recorded under."""

    provider: str
    id: str
    api: str
    endpoint: str
    stream: Callable[[Request], AsyncGenerator[StreamEvent, None]]
    system: str
    """The system prompt; the same in every turn."""
    max_turns: int = 0
    """Most model calls in one run; 0 is no limit."""

    @property
    def target(self) -> Target:
        """Whom messages are repaired for."""
        return Target(self.endpoint, self.api, self.id)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop works with."""

    model: Model
    tools: Registry
    env: ExecutionEnvironment
    policy: Policy
    record: Record
    emit: Callable[[events.Event], None]
    take_steering: Callable[[], Sequence[Queued]]
    """Empties the queue of what a person said while the agent worked."""
    steering_waits: Callable[[], bool]
    take_follow_up: Callable[[], Queued | None]
    clock: Callable[[], int]
    """Microseconds since 1970."""
    call_prefix: Callable[[], str]
    """A new prefix for the ids of one answer's calls: c_ and 8 hex digits."""
    session: str
    """Tape id."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    stop_reason: str
    """Of the newest answer, as tape.md §3 names them."""
    error: ModelError | None = None
    limited: bool = False
    """True when it stopped at its limit of turns with work left."""


async def run(parts: Parts) -> Outcome:
    """Serve what stands at the end of the path until no calls, steering or follow-ups are left."""
    turns, stop = 0, "stop"
    while True:
        for queued in parts.take_steering():
            _inject(parts, queued)
        if parts.model.max_turns and turns >= parts.model.max_turns:
            parts.emit(events.TurnLimit(turns))
            return Outcome(stop, limited=True)
        turns += 1
        parts.emit(events.TurnStart(turns))
        answer = await _ask(parts)
        stop = answer.stop
        if answer.error is not None:
            return Outcome(stop, answer.error)
        calls = tool_calls(answer.content)
        if calls:
            await _run_tools(parts, calls)
        parts.emit(events.TurnEnd(turns, len(calls)))
        if calls or parts.steering_waits():
            continue
        follow_up = parts.take_follow_up()
        if follow_up is None:
            return Outcome(stop)
        _inject(parts, follow_up)


def _inject(parts: Parts, queued: Queued) -> None:
    parts.record.append(Context("user", queued.origin, (Text(queued.text),)))
    parts.emit(events.SteeringInjected(queued.text, queued.origin))


class _Answer(NamedTuple):
    """What came of one model call."""

    content: Content
    stop: str
    error: ModelError | None = None


async def _ask(parts: Parts) -> _Answer:
    """Make one model call from the path as it is now, and record what came of it."""
    request = _request(parts, _messages(parts))
    parts.record.barrier()
    answer = StreamAccumulator(parts.call_prefix())
    begun = parts.clock()
    try:
        async with aclosing(parts.model.stream(request)) as stream:
            async for event in stream:
                answer.process(event)
                _show(parts, event)
    except asyncio.CancelledError:
        _record_stopped(parts, answer, _milliseconds(parts, begun))
        raise
    return _record_answer(parts, answer, _milliseconds(parts, begun))


def _messages(parts: Parts) -> tuple[Message, ...]:
    """Return the messages of the next call; what repair did is recorded before they are sent."""
    path = parts.record.path
    repaired = repair.repair(view(path), parts.model.target)
    done = repaired.repair
    if done is not None and not repair.is_recorded(done, path):
        parts.record.append(done)
        parts.emit(events.Repaired(len(done.injected), len(done.dropped), done.why))
    return repaired.messages


def _request(parts: Parts, messages: tuple[Message, ...]) -> Request:
    return Request(
        model=parts.model.id,
        messages=messages,
        system=parts.model.system,
        tools=parts.tools.specs(),
        session=parts.session,
    )


def _show(parts: Parts, event: StreamEvent) -> None:
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


def _milliseconds(parts: Parts, begun: int) -> int:
    return max(parts.clock() - begun, 0) // 1000


def _assistant(
    parts: Parts, answer: StreamAccumulator, content: Content, stop: str, duration_ms: int
) -> Assistant:
    return Assistant(
        content=content,
        provider=parts.model.provider,
        api=parts.model.api,
        endpoint=parts.model.endpoint,
        model=parts.model.id,
        stop_reason=stop,
        raw_stop=answer.finish.raw_stop if answer.finish else None,
        usage=answer.usage,
        response_id=answer.response_id,
        duration_ms=duration_ms,
        partial=answer.finish is None,
        error=_failure(answer.error) if answer.error else None,
    )


def _failure(error: ModelError) -> Failure:
    return Failure(type(error).__name__, str(error))


def _record_stopped(parts: Parts, answer: StreamAccumulator, duration_ms: int) -> None:
    """Keep what a stopped answer really said; nothing at all when it said nothing."""
    content = answer.partial()
    if content:
        parts.record.append(_assistant(parts, answer, content, "aborted", duration_ms))
    _record_abort(parts)


def _record_abort(parts: Parts) -> None:
    parts.record.append(Error(ABORTED, "stopped by the user"))
    parts.record.barrier()


def _record_answer(parts: Parts, answer: StreamAccumulator, duration_ms: int) -> _Answer:
    error = answer.error
    if error is None and answer.finish is None:
        error = answer.error = StreamError("the answer ended before it was whole")
    if error is not None:
        return _record_failure(parts, answer, error, duration_ms)
    response = answer.response()
    entry = parts.record.append(
        _assistant(parts, answer, response.content, response.stop_reason, duration_ms)
    )
    parts.record.barrier()
    parts.emit(events.MessageEnd(entry.id, response.content, response.stop_reason, response.usage))
    return _Answer(response.content, response.stop_reason)


def _record_failure(
    parts: Parts, answer: StreamAccumulator, error: ModelError, duration_ms: int
) -> _Answer:
    content = answer.partial()
    if content:
        parts.record.append(_assistant(parts, answer, content, "error", duration_ms))
    parts.record.append(Error(type(error).__name__, str(error), error.retryable, error.status))
    parts.record.barrier()
    return _Answer(content, "error", error)


async def _run_tools(parts: Parts, calls: Sequence[ToolCall]) -> None:
    """Answer every call, in order; what steering overtakes is answered without running."""
    for group in _groups(parts.tools, calls):
        if parts.steering_waits():
            for call in group:
                _record_result(parts, _Running(call), tool.ToolResult.error(SKIPPED))
        else:
            await _run_group(parts, group)
    parts.record.barrier()


def _groups(tools: Registry, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """Return runs of calls that may go side by side: neighbours that change nothing."""
    groups: list[list[ToolCall]] = []
    safe_before = False
    for call in calls:
        known = tools.get(call.name)
        safe = known is not None and known.replay == "safe"
        if safe and safe_before:
            groups[-1].append(call)
        else:
            groups.append([call])
        safe_before = safe
    return groups


class _Running:
    """One call on its way, with the output it has shown so far."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.shown = ""
        self.begun: int | None = None
        self.started = False
        self.result: tool.ToolResult | None = None

    def aborted(self) -> tool.ToolResult:
        """Return what is known of a call that was stopped while it ran."""
        shown = f"{self.shown}\n\n" if self.shown else ""
        return tool.ToolResult.error(f"{shown}Command aborted")


async def _run_group(parts: Parts, calls: Sequence[ToolCall]) -> None:
    """Run calls side by side and record their results in call order, also when stopped."""
    running = [_Running(call) for call in calls]
    try:
        allowed = [(one, prepared) for one in running if (prepared := await _admit(parts, one))]
        if any(prepared.tool.replay == "unsafe" for _, prepared in allowed):
            parts.record.barrier()
        async with asyncio.TaskGroup() as group:
            for one, prepared in allowed:
                group.create_task(_run_one(parts, one, prepared))
    except asyncio.CancelledError:
        for one in running:
            if one.started or one.result:  # repair tells of the others that they never ran
                _record_result(parts, one, one.result or one.aborted())
        _record_abort(parts)
        raise
    for one in running:
        assert one.result is not None
        _record_result(parts, one, one.result)


async def _admit(parts: Parts, one: _Running) -> Prepared | None:
    """Look up, check and ask about a call; record its start, or give it the result that says no."""
    call = one.call
    one.begun = parts.clock()
    parts.emit(events.ToolExecutionStart(call.id, call.name, call.args))
    prepared = parts.tools.prepare(call)
    if isinstance(prepared, tool.ToolResult):
        one.result = prepared
        return None
    verdict = await parts.policy(prepared)
    if not verdict.allowed:
        one.result = tool.ToolResult.error(verdict.text)
        return None
    parts.record.append(ToolStart(call.id, call.name, replay=prepared.tool.replay))
    one.started = True
    return prepared


async def _run_one(parts: Parts, one: _Running, prepared: Prepared) -> None:
    def update(text: str) -> None:
        one.shown = (one.shown + text)[-_SHOWN:]
        parts.emit(events.ToolExecutionUpdate(one.call.id, text))

    context = ToolContext(env=parts.env, call_id=one.call.id, update=update)
    one.result = await parts.tools.run(prepared, context)


_SHOWN = 20_000  # characters of a stopped command's output that its result keeps


def _record_result(parts: Parts, one: _Running, result: tool.ToolResult) -> None:
    details = NO_JSON
    if result.details is not None:
        details = msgspec.Raw(msgspec.json.encode(result.details))
    call = one.call
    duration_ms = 0 if one.begun is None else _milliseconds(parts, one.begun)
    parts.record.append(
        ToolResult(
            call_id=call.id,
            name=call.name,
            content=result.content,
            is_error=result.is_error,
            details=details,
            duration_ms=duration_ms,
            full=result.full,
        )
    )
    parts.emit(
        events.ToolExecutionEnd(
            call_id=call.id,
            name=call.name,
            content=result.content,
            is_error=result.is_error,
            duration_ms=duration_ms,
            details=details,
            full=result.full,
        )
    )
