"""Answers in one call for scripts: text, streams, typed objects, with tools run on the way.

Above the client, beside the agent, which does not use it. Each model call is tried again on its
own; a stream never after its first words, and an object that does not fit never.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from random import random
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tape.blocks import Text, ToolCall
from tape.view import Message

from ..errors import ConfigurationError, RequestTimeout
from .accumulate import StreamAccumulator
from .client import Client
from .functions import Tool, run_calls
from .objects import checked, response_format
from .partial_json import arguments
from .results import GenerateResult, StepFinish, StepResult, StreamResult
from .retry import RetryPolicy, persistent
from .types import (
    Failed,
    Request,
    Response,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from .types import Provider, StreamEvent

_default: list[Client] = []
"""The client used when none is given: at most one, made at the first need."""


def set_default_client(client: Client | None) -> None:
    """Use `client` where none is given; None goes back to one made from the environment."""
    _default[:] = [] if client is None else [client]


def default_client() -> Client:
    """Return the client used where none is given."""
    if not _default:
        _default.append(Client.from_env())
    return _default[0]


def stream_text(
    model: str,
    *,
    prompt: str | None = None,
    messages: Sequence[Message] | None = None,
    tools: Sequence[Tool] = (),
    max_tool_rounds: int = 1,
    stop_when: Callable[[Sequence[StepResult]], bool] | None = None,
    max_retries: int = 2,
    client: Client | None = None,
    **request: Any,
) -> StreamResult:
    """Begin an answer of `provider/model` to a prompt or to messages, one of the two.

    Calls of tools with `execute` are run and sent back, at most `max_tool_rounds` times; 0 leaves
    them to the caller, as one call of a tool without `execute` does. `request` takes the other
    fields of Request: system, tool_choice, max_tokens, temperature, reasoning_effort, options, …
    Iterating raises ModelError. Cancelling or closing it closes the connection.
    """
    client = client or default_client()
    provider, name = client.resolve(model)
    wanted = Request(
        model=name,
        messages=_messages(prompt, messages),
        tools=tuple(tool.spec() for tool in tools),
        **request,
    )
    call = partial(_persistently, client, provider, RetryPolicy(max_retries=max_retries))
    return StreamResult(_rounds(call, wanted, tools, max_tool_rounds, stop_when))


async def generate(
    model: str,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 (of the whole, tools and all)
    **how: Any,
) -> GenerateResult:
    """Return the whole answer; `how` is what `stream_text` takes, `timeout` in seconds.

    Raises ModelError, RequestTimeout for one that took longer.
    """
    stream = stream_text(model, **how)
    try:
        async with asyncio.timeout(timeout):
            return await stream.result()
    except TimeoutError:
        raise RequestTimeout(f"{model} was not done within {timeout:g} s") from None
    finally:
        await stream.close()


async def generate_object(model: str, kind: type, **how: Any) -> GenerateResult:
    """Return an answer whose `output` is a value of `kind`: a Struct, dataclass or TypedDict.

    Providers that can are held to its schema, others to a tool call. Raises NoObject, which is
    never tried again, and what `generate` raises.
    """
    client = how.pop("client", None) or default_client()
    provider, _ = client.resolve(model)
    asked = _asked_for(provider, kind)
    result = await generate(model, client=client, max_tool_rounds=0, **asked, **how)
    text = _object_text(result.response)
    return GenerateResult(result.steps, checked(text, kind))


async def stream_object(model: str, kind: type, **how: Any) -> AsyncGenerator[Any, None]:
    """Yield the object as a growing dict, and at the end the value of `kind`."""
    client = how.pop("client", None) or default_client()
    provider, _ = client.resolve(model)
    stream = stream_text(
        model, client=client, max_tool_rounds=0, **_asked_for(provider, kind), **how
    )
    text = ""
    try:
        async for event in stream:
            if isinstance(event, TextDelta | ToolCallDelta):
                text += event.delta
                yield arguments(text)
        yield checked(_object_text((await stream.result()).response), kind)
    finally:
        await stream.close()


def _messages(prompt: str | None, messages: Sequence[Message] | None) -> tuple[Message, ...]:
    if (prompt is None) == (messages is None):
        raise ConfigurationError("give a prompt or messages, one of the two")
    return tuple(messages) if messages is not None else (Message("user", (Text(prompt or ""),)),)


def _asked_for(provider: Provider, kind: type) -> dict[str, Any]:
    """Return the part of a request that asks for an object in the provider's own way."""
    shape = response_format(kind)
    if getattr(provider, "native_objects", False):
        return {"response_format": shape}
    tool = Tool("answer", "Give the answer in this form.", kind)
    return {"tools": (tool,), "tool_choice": ToolChoice("named", "answer")}


def _object_text(response: Response) -> str:
    for call in response.tool_calls:
        return call.args_text or bytes(call.args).decode()
    return response.text


async def _rounds(
    call: Callable[[Request], AsyncGenerator[StreamEvent, None]],
    request: Request,
    tools: Sequence[Tool],
    max_tool_rounds: int,
    stop_when: Callable[[Sequence[StepResult]], bool] | None,
) -> AsyncGenerator[StreamEvent | StepFinish, None]:
    steps: list[StepResult] = []
    while True:
        answer = StreamAccumulator(f"c_{token_hex(4)}")
        async with aclosing(call(request)) as events:
            async for event in events:
                if isinstance(event, Failed):
                    raise event.error
                answer.process(event)
                yield event
        response = answer.response()
        runs = len(steps) < max_tool_rounds and _runs_here(tools, response.tool_calls)
        results = await run_calls(tools, response.tool_calls, request.messages) if runs else ()
        goes_on = runs or (response.is_paused and not response.tool_calls)
        steps.append(StepResult(response, results))
        yield StepFinish(steps[-1])
        if not goes_on or (stop_when is not None and stop_when(steps)):
            return
        said = Message("assistant", response.content)
        request = replace(
            request,
            messages=(*request.messages, said, *(result.message() for result in results)),
        )


def _runs_here(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> bool:
    """Return whether there are calls, and none of them is the caller's to run."""
    passive = {tool.name for tool in tools if tool.execute is None}
    return bool(calls) and not any(call.name in passive for call in calls)


def _persistently(
    client: Client, provider: Provider, policy: RetryPolicy, request: Request
) -> AsyncGenerator[StreamEvent, None]:
    return persistent(
        lambda asked: client.stream(asked, provider),
        request,
        policy,
        sleep=asyncio.sleep,
        random=random,
        on_retry=lambda *_: None,
    )
