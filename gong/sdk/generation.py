"""Answers in one call for scripts: text, streams, typed objects, with tools run between calls.

This loop of model and tools is not the agent's (`gong.agent.loop`), because a script has none of
what that one reads and writes: its step takes the request from the path of a tape, and records
each answer, start and result there; it asks a policy, acts in an environment, compacts, and takes
steering. Here a step is a value, its tools are functions of the caller, and nothing is stored.
Both share what a step is made of: `StreamAccumulator`, `stream_with_retries`,
`Response.is_paused`.

| after an answer | then |
|---|---|
| calls, all of tools with `execute`, and rounds left | run them, send the results, call again |
| a pause of the provider, without calls | send it back, call again |
| anything else, or `stop_when` returns true | end |

Each model call is retried separately; a stream is never retried after its first event, nor an
object that does not match its schema. Limits in time hold while something of the answer is waited
for, never while its reader works.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from random import random
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.context.view import Message
from tape.model.entries import Text, read_arguments
from tape.text import clean_words

from ..errors import Aborted, ConfigurationError, ModelError, RequestTimeout
from ..llm.accumulate import StreamAccumulator
from ..llm.client import Client
from ..llm.models import check_options
from ..llm.partial_json import parse_partial_arguments
from ..llm.picture_sources import Pictures
from ..llm.retry import RetryPolicy, stream_with_retries
from ..llm.types import (
    Request,
    Response,
    StreamFailure,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
)
from ..setting_values import check_names
from .functions import Tool, run_calls
from .objects import build_response_format, check_object_schema, parse_object
from .results import GenerateResult, StepFinish, StepResult, StreamResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from tape.model.entries import Content

    from ..llm.types import Provider, StreamEvent
    from .functions import FunctionResult, Repair
    from .objects import JsonSchema


_T = TypeVar("_T")


class AnswerDeadline:
    """Limits of one answer and its steps; times are in seconds, None for no limit."""

    def __init__(
        self,
        model: str,
        whole: float | None = None,
        step: float | None = None,
        abort: asyncio.Event | None = None,
    ) -> None:
        self.abort = abort
        self._model, self._whole, self._step = model, whole, step
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._watch: asyncio.Task[bool] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._over: ModelError | None = None

    def __enter__(self) -> Self:
        """Begin to count, and to listen."""
        self._set_timer("whole", self._whole, "was not done")
        if self.abort is not None:
            self._watch = asyncio.ensure_future(self.abort.wait())
            self._watch.add_done_callback(
                lambda watch: (
                    None if watch.cancelled() else self._stop_waiting(self._build_abort_error())
                )
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Count and listen no longer."""
        for timer in self._timers.values():
            timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def begin_step(self) -> None:
        """Restart the timer of a step."""
        self._set_timer("step", self._step, "was not done with a step")

    async def wait(self, what: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of `what()`; raises RequestTimeout if a timer ran out.

        Raises Aborted if the caller aborted.
        """
        if self.abort is not None and self.abort.is_set():
            self._over = self._over or self._build_abort_error()
        if self._over is not None:
            raise self._over
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        asked_before = task.cancelling()
        self._waiting = task
        try:
            return await what()
        except asyncio.CancelledError:
            # a cancel of the caller's own goes on, also when it comes together with ours
            if self._over is not None and task.uncancel() <= asked_before:
                raise self._over from None
            raise
        finally:
            self._waiting = None

    def _set_timer(self, name: str, seconds: float | None, what: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()
        if seconds is not None:
            error = RequestTimeout(f"{self._model} {what} within {seconds:g} s")
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(seconds, self._stop_waiting, error)

    def _build_abort_error(self) -> Aborted:
        return Aborted(f"the answer of {self._model} was stopped")

    def _stop_waiting(self, error: ModelError) -> None:
        if self._over is None:
            self._over = error
            if self._waiting is not None:
                self._waiting.cancel()


_GIVEN = {"model", "messages", "tools"}
_REQUEST_FIELDS = [name for name in Request.__struct_fields__ if name not in _GIVEN]
"""Fields of Request that `stream_text` has no argument of its own for."""
_default_clients: list[Client] = []
"""The default client: at most one, created on first use."""


def set_default_client(client: Client | None) -> None:
    """Set the default client; None resets it to one made from the environment."""
    _default_clients[:] = [] if client is None else [client]


def get_default_client() -> Client:
    """Return the default client."""
    if not _default_clients:
        _default_clients.append(Client.from_env())
    return _default_clients[0]


def stream_text(
    model: str,
    *,
    prompt: str | None = None,
    pictures: Sequence[str | Path | bytes] = (),
    messages: Sequence[Message] | None = None,
    tools: Sequence[Tool] = (),
    max_tool_rounds: int = 1,
    stop_when: Callable[[Sequence[StepResult]], bool] | None = None,
    repair_tool_call: Repair | None = None,
    max_retries: int = 2,
    timeout: float | None = None,
    step_timeout: float | None = None,
    abort_signal: asyncio.Event | None = None,
    client: Client | None = None,
    provider_options: Mapping[str, Mapping[str, Any]] | None = None,
    **request: Any,
) -> StreamResult:
    """Start an answer of `provider/model` to a prompt or to messages, one of the two.

    `pictures` go with the prompt, each as `Pictures.image` takes it. Calls of tools with `execute`
    are run and sent back, at most `max_tool_rounds` times; 0 leaves them to the caller, as one call
    of a tool without `execute` does. `repair_tool_call` is given a call that cannot run, and why,
    and returns a better one or None. `provider_options` are by provider: fields of the body that
    only it knows; ConfigurationError for one that gong sets itself. `request` takes the other
    fields of Request: system, tool_choice, max_tokens, temperature, top_p, reasoning_effort,
    metadata, options, …; ConfigurationError for an unknown one.

    Seconds are limited by `timeout`, tools and all, and by `step_timeout` for each model call with
    its tools; `abort_signal` stops when it is set. Iterating raises ModelError: RequestTimeout,
    Aborted and the rest. Whatever stops it, cancelling and closing too, closes the connection.
    """
    check_names(request, _REQUEST_FIELDS)
    client = client or get_default_client()
    provider, name = client.resolve(model)
    if pictures and (prompt is None or messages is not None):
        raise ConfigurationError("pictures go with a prompt; in messages they are blocks")
    if (prompt is None) == (messages is None):
        raise ConfigurationError("give either a prompt or messages")
    attachments = Pictures()
    if own := (provider_options or {}).get(provider.name):
        check_options(own, provider.api, provider.name)
        request = {"options": Raw(msgspec.json.encode(own)), **request}
    if messages is None:
        words = Text(clean_words(prompt or ""))
        messages = (Message("user", (words, *map(attachments.image, pictures))),)
    if pictures:
        request = {"load": attachments.load, **request}
    if isinstance(system := request.get("system"), str):
        request = {**request, "system": clean_words(system)}
    first_request = Request(
        model=name,
        messages=tuple(messages),
        tools=tuple(tool.to_spec() for tool in tools),
        **request,
    )
    rounds = _ToolRounds(
        call=partial(client.stream, provider=provider),
        policy=RetryPolicy(max_retries=max_retries),
        tools=tools,
        most=max_tool_rounds,
        stop_when=stop_when,
        repair=repair_tool_call,
        bounds=AnswerDeadline(model, timeout, step_timeout, abort_signal),
    )
    return StreamResult(rounds.stream_events(first_request), rounds.answers)


async def generate(model: str, **how: Any) -> GenerateResult:
    """Return the whole answer; `how` is what `stream_text` takes.

    Raises ModelError, as iterating a stream does.
    """
    stream = stream_text(model, **how)
    try:
        return await stream.result()
    finally:
        await stream.close()


async def generate_object(model: str, kind: type | JsonSchema, **how: Any) -> GenerateResult:
    """Return an answer whose `output` is a value of `kind`: a Struct, dataclass or TypedDict.

    A JSON Schema gives a dict. Providers that can are held to its schema, others to a tool call.
    Raises NoObject, which is never tried again, and what `generate` raises.
    """
    client = how.pop("client", None) or get_default_client()
    provider, _ = client.resolve(model)
    kind_request = _choose_object_request(provider, kind)
    result = await generate(model, client=client, max_tool_rounds=0, **kind_request, **how)
    text = _get_object_text(result.response)
    return GenerateResult(result.steps, parse_object(text, kind))


async def stream_object(
    model: str, kind: type | JsonSchema, **how: Any
) -> AsyncGenerator[Any, None]:
    """Yield the object as a growing dict, and at the end the value of `kind`."""
    client = how.pop("client", None) or get_default_client()
    provider, _ = client.resolve(model)
    stream = stream_text(
        model, client=client, max_tool_rounds=0, **_choose_object_request(provider, kind), **how
    )
    text = ""
    try:
        async for event in stream:
            if isinstance(event, TextDelta | ToolCallDelta):
                text += event.delta
                yield parse_partial_arguments(text)
        yield parse_object(_get_object_text((await stream.result()).response), kind)
    finally:
        await stream.close()


def _choose_object_request(provider: Provider, kind: type | JsonSchema) -> dict[str, Any]:
    """Return the part of a request that asks for an object in the provider's own way."""
    if isinstance(kind, dict):
        check_object_schema(kind)
    shape = build_response_format(kind)
    if getattr(provider, "native_objects", False):
        return {"response_format": shape}
    tool = Tool("answer", "Give the answer in this form.", kind)
    supports = getattr(provider, "supports_tool_choice", None)
    if supports is not None and not supports("named"):
        return {"tools": (tool,)}
    return {"tools": (tool,), "tool_choice": ToolChoice("named", "answer")}


def _get_object_text(response: Response) -> str:
    for call in response.tool_calls:
        return read_arguments(call)
    return response.text


@dataclass(slots=True)
class _ToolRounds:
    """Model calls and the tools between them, until one answer asks for none."""

    call: Callable[[Request], AsyncGenerator[StreamEvent, None]]
    policy: RetryPolicy
    tools: Sequence[Tool]
    most: int
    stop_when: Callable[[Sequence[StepResult]], bool] | None
    repair: Repair | None
    bounds: AnswerDeadline
    answers: list[StreamAccumulator] = field(default_factory=list)
    """Of each step, the newest last."""

    async def stream_events(
        self, request: Request
    ) -> AsyncGenerator[StreamEvent | StepFinish, None]:
        """Yield the events of all steps; raises ModelError."""
        passive = {tool.name for tool in self.tools if tool.execute is None}
        steps: list[StepResult] = []
        with self.bounds:
            while True:
                self.bounds.begin_step()
                async with aclosing(self._stream_answer(request)) as events:
                    async for event in events:
                        yield event
                response = self.answers[-1].response()
                calls = {call.name for call in response.tool_calls}
                content: Content = response.content
                results: tuple[FunctionResult, ...] = ()
                # one call of a tool without `execute` leaves all of them to the caller
                runs = bool(calls) and calls.isdisjoint(passive) and len(steps) < self.most
                if runs:
                    arguments = (
                        self.tools,
                        content,
                        request.messages,
                        self.repair,
                        self.bounds.abort,
                    )
                    run = partial(run_calls, *arguments)
                    content, results = await self.bounds.wait(run)
                steps.append(StepResult(response, results))
                yield StepFinish(steps[-1])
                if not (runs or response.is_paused) or (self.stop_when and self.stop_when(steps)):
                    return
                new_messages = (
                    Message("assistant", content),
                    *(result.to_message() for result in results),
                )
                request = replace(request, messages=(*request.messages, *new_messages))

    async def _stream_answer(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        answer = StreamAccumulator(f"c_{token_hex(4)}")
        self.answers.append(answer)
        stream = stream_with_retries(
            *(self.call, request, self.policy),
            sleep=asyncio.sleep,
            random=random,
            on_retry=lambda *_: None,
        )
        async with aclosing(stream) as events:
            following = partial(anext, events, None)
            while (event := await self.bounds.wait(following)) is not None:
                if isinstance(event, StreamFailure):
                    raise event.error
                answer.process(event)
                yield event
