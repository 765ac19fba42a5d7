"""Tools of `generate`: a name, a type of arguments, and an optional function to run.

Every error of a call becomes a result that the model reads; only cancellation is raised.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.context.view import Message
from tape.model.entries import Text, ToolCall, select_tool_calls

from ..errors import ConfigurationError
from ..llm.types import ToolSpec
from .objects import build_json_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tape.model.entries import Content

    Repair = Callable[[ToolCall, str], ToolCall | Awaitable[ToolCall | None] | None]
    """Returns a corrected call for one that cannot run and its error, or None."""

_TOOL_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool a model may call; without `execute` the caller runs it.

    `parameters` is a Struct, dataclass or TypedDict, whose value `execute` is given, or a JSON
    Schema of an object, for a dict. `execute` may be async, may also ask for `call_id`, `messages`
    or `abort_signal` by name, and returns a text or anything with a JSON form.
    """

    name: str
    description: str
    parameters: type | dict[str, Any]
    execute: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not _TOOL_NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"{self.name!r} is not a tool name: use letters, digits and _, at most 64"
            )
        if self.schema.get("type") != "object":
            raise ConfigurationError(f"the parameters of {self.name} must be an object")

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return (
            self.parameters
            if isinstance(self.parameters, dict)
            else build_json_schema(self.parameters)
        )

    def to_spec(self) -> ToolSpec:
        """Return the tool's definition for the model."""
        return ToolSpec(self.name, self.description, Raw(msgspec.json.encode(self.schema)))


class FunctionResult(NamedTuple):
    """The result of one call."""

    call_id: str
    name: str
    output: str
    is_error: bool = False

    def to_message(self) -> Message:
        """Return the result message for the model."""
        return Message("tool", (Text(self.output),), self.call_id, self.name, self.is_error)


async def run_calls(
    tools: Sequence[Tool],
    content: Content,
    messages: Sequence[Message],
    repair: Repair | None = None,
    abort_signal: asyncio.Event | None = None,
) -> tuple[Content, tuple[FunctionResult, ...]]:
    """Run all calls of an answer at once; return its content and the results, in their order.

    Calls that cannot run are in the content as `repair` has them; each keeps its id.
    """
    repaired = [
        await _repair_call(tools, block, repair)
        if repair and isinstance(block, ToolCall)
        else block
        for block in content
    ]
    offered = {"messages": messages, "abort_signal": abort_signal}
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_run_call(tools, call, offered))
            for call in select_tool_calls(tuple(repaired))
        ]
    return tuple(repaired), tuple(task.result() for task in tasks)


async def _repair_call(tools: Sequence[Tool], call: ToolCall, repair: Repair) -> ToolCall:
    try:
        _prepare_call(tools, call)
    except _InvalidCall as error:
        better = repair(call, str(error))
        if inspect.isawaitable(better):
            better = await better
        return call if better is None else replace(better, id=call.id, wire=call.wire)
    return call


async def _run_call(
    tools: Sequence[Tool], call: ToolCall, offered: dict[str, Any]
) -> FunctionResult:
    offered = {"call_id": call.id, "tool_call_id": call.id, **offered}
    try:
        execute, arguments = _prepare_call(tools, call)
        names = list(inspect.signature(execute).parameters)[1:]
        output = execute(arguments, **{name: offered[name] for name in names if name in offered})
        if inspect.isawaitable(output):
            output = await output
        text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    except _InvalidCall as error:
        return FunctionResult(call.id, call.name, str(error), is_error=True)
    except Exception as error:  # noqa: BLE001 (a tool's failure is the model's to read)
        return FunctionResult(call.id, call.name, f"{type(error).__name__}: {error}", is_error=True)
    return FunctionResult(call.id, call.name, text)


class _InvalidCall(Exception):
    """A call cannot run; the text says why."""


def _prepare_call(tools: Sequence[Tool], call: ToolCall) -> tuple[Callable[..., Any], Any]:
    """Return what runs and what it is given; raises _InvalidCall."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None or tool.execute is None:
        raise _InvalidCall(f"there is no tool {call.name}")
    kind = dict if isinstance(tool.parameters, dict) else tool.parameters
    data = bytes(call.args) if call.args_text is None else call.args_text
    try:
        return tool.execute, msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _InvalidCall(f"wrong arguments: {error}") from error
