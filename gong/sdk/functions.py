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
from tape.model.entries import Text

from ..errors import ConfigurationError
from ..llm.types import ToolSpec
from .objects import build_json_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tape.model.entries import ToolCall

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


async def repair_calls(
    tools: Sequence[Tool], calls: Sequence[ToolCall], repair: Repair | None
) -> tuple[ToolCall, ...]:
    """Return the calls, with those that cannot run replaced by `repair`; ids are kept."""
    if repair is None:
        return tuple(calls)
    return tuple([await _repair_call(tools, call, repair) for call in calls])


async def _repair_call(tools: Sequence[Tool], call: ToolCall, repair: Repair) -> ToolCall:
    try:
        _prepare_call(tools, call)
    except _InvalidCall as error:
        better = repair(call, str(error))
        if inspect.isawaitable(better):
            better = await better
        return call if better is None else replace(better, id=call.id, wire=call.wire)
    return call


async def run_calls(
    tools: Sequence[Tool],
    calls: Sequence[ToolCall],
    messages: Sequence[Message],
    abort_signal: asyncio.Event | None = None,
) -> tuple[FunctionResult, ...]:
    """Run all calls at once and return their results in the order of the calls."""
    offered = {"messages": messages, "abort_signal": abort_signal}
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run_call(tools, call, offered)) for call in calls]
    return tuple(task.result() for task in tasks)


async def _run_call(
    tools: Sequence[Tool], call: ToolCall, offered: dict[str, Any]
) -> FunctionResult:
    try:
        execute, given = _prepare_call(tools, call)
    except _InvalidCall as error:
        return FunctionResult(call.id, call.name, str(error), is_error=True)
    try:
        output = execute(given, **_select_offered_values(execute, call, offered))
        if inspect.isawaitable(output):
            output = await output
        return FunctionResult(call.id, call.name, _encode_output(output))
    except Exception as error:  # noqa: BLE001 (a tool's failure becomes a result)
        return FunctionResult(call.id, call.name, f"{type(error).__name__}: {error}", is_error=True)


class _InvalidCall(Exception):
    """A call cannot run; the text says why."""


def _prepare_call(tools: Sequence[Tool], call: ToolCall) -> tuple[Callable[..., Any], Any]:
    """Return the function to run and its argument; raises _Unfit."""
    tool = next((one for one in tools if one.name == call.name), None)
    if tool is None or tool.execute is None:
        raise _InvalidCall(f"there is no tool {call.name}")
    try:
        return tool.execute, _decode_call_arguments(tool, call)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _InvalidCall(f"wrong arguments: {error}") from error


def _decode_call_arguments(tool: Tool, call: ToolCall) -> Any:
    kind = dict if isinstance(tool.parameters, dict) else tool.parameters
    data = bytes(call.args) if call.args_text is None else call.args_text
    return msgspec.json.decode(data, type=kind)


def _select_offered_values(
    execute: Callable[..., Any], call: ToolCall, offered: dict[str, Any]
) -> dict[str, Any]:
    offered = {"call_id": call.id, "tool_call_id": call.id, **offered}
    asked = list(inspect.signature(execute).parameters)[1:]
    return {name: value for name, value in offered.items() if name in asked}


def _encode_output(output: Any) -> str:
    return output if isinstance(output, str) else msgspec.json.encode(output).decode()
