"""The tools a session has, and the way of a call through them.

A call goes LOOKUP → VALIDATE (`prepare`), then EXECUTE → TRUNCATE (`run`). Between the two the
loop asks for leave and records the start. Whatever goes wrong becomes a result a model can act
on; only cancellation passes through.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tape.blocks import Text, text_of

from ..errors import ConfigurationError
from ..llm.types import ToolSpec
from .schema import coerced, described, schema_of
from .tool import Tool, ToolContext, ToolResult
from .truncate import MAX_BYTES, encoded, format_size, truncate_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tape.blocks import ToolCall

PRESETS: Mapping[str, tuple[str, ...]] = {
    "default": ("read", "write", "edit", "bash", "grep", "find", "ls"),
    "minimal": ("read", "write", "edit", "bash"),
    "readonly": ("read", "grep", "find", "ls"),
}
"""Named choices of tools; names a registry does not have are left out of its own."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run."""

    tool: Tool
    """What runs."""
    call: ToolCall
    """What the model asked."""
    arguments: msgspec.Struct
    """An instance of `tool.arguments`."""


class Registry:
    """Tools by name, in the order they came; all are active until some are chosen."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._chosen: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool there is."""
        return tuple(self._tools)

    @property
    def active(self) -> tuple[str, ...]:
        """The tools the model is told of and may call."""
        return self.names if self._chosen is None else self._chosen

    def register(self, tool: Tool) -> None:
        """Add a tool; the latest of a name wins and keeps its place."""
        self._tools[tool.name] = tool

    def unregister(self, name: str) -> None:
        """Take a tool away; ConfigurationError when there is none of that name."""
        self._require((name,))
        del self._tools[name]
        if self._chosen is not None:
            self._chosen = tuple(one for one in self._chosen if one != name)

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, active or not."""
        return self._tools.get(name)

    def preset(self, name: str) -> tuple[str, ...]:
        """Return the tools of a preset that are there; ConfigurationError for an unknown one."""
        if name not in PRESETS:
            raise ConfigurationError(f"Unknown preset of tools: {name}. Try {', '.join(PRESETS)}.")
        return tuple(one for one in PRESETS[name] if one in self._tools)

    def validate(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names once each; ConfigurationError when one is unknown or none is given."""
        wanted = tuple(dict.fromkeys(names))
        if not wanted:
            raise ConfigurationError("No tools given. Name at least one of them.")
        self._require(wanted)
        return wanted

    def set_active(self, names: Iterable[str]) -> None:
        """Choose the active tools, from the next call on; refused as `validate` says."""
        self._chosen = self.validate(names)

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the active tools as a model is told of them, always in the same order."""
        return tuple(_spec(self._tools[name]) for name in self.active)

    def prepare(self, call: ToolCall) -> Prepared | ToolResult:
        """Find the tool and check the arguments; a result when the call cannot run."""
        if call.name not in self.active:
            known = ", ".join(self.active) or "none"
            return ToolResult.error(f"Unknown tool: {call.name}: the tools there are: {known}")
        tool = self._tools[call.name]
        schema = schema_of(tool.arguments)
        try:
            value = coerced(_parsed(call), schema)
            return Prepared(tool, call, msgspec.convert(value, tool.arguments, strict=False))
        except (ValueError, RecursionError) as error:
            return ToolResult.error(
                f"Invalid arguments for tool: {tool.name}: {error}. Expected: {described(schema)}"
            )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolResult:
        """Run the tool's body and cut what it did not cut itself."""
        try:
            result = await prepared.tool.run(prepared.arguments, context)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises, the model hears of it
            said = str(error) or type(error).__name__
            return ToolResult.error(f"Tool error ({prepared.tool.name}): {said}")
        return _bounded(result)

    def _require(self, names: Iterable[str]) -> None:
        unknown = [name for name in names if name not in self._tools]
        if unknown:
            there = ", ".join(self._tools) or "none"
            raise ConfigurationError(f"Unknown tool: {', '.join(unknown)}. There are: {there}.")


def _spec(tool: Tool) -> ToolSpec:
    parameters = msgspec.Raw(msgspec.json.encode(schema_of(tool.arguments)))
    return ToolSpec(tool.name, tool.description, parameters)


def _parsed(call: ToolCall) -> Any:
    """Return the JSON of the call, control characters in strings forgiven; nothing is {}."""
    text = bytes(call.args) if call.args_text is None else call.args_text
    value = json.loads(text, strict=False) if text.strip() else None
    return {} if value is None else value


def _bounded(result: ToolResult) -> ToolResult:
    """Cut the text of a result over 2000 lines or 51 200 bytes, unless its details speak of it."""
    text = text_of(result.content)
    cut = truncate_head(text.removesuffix("\n"))
    if not cut.truncated or hasattr(result.details, "truncated"):
        return result
    shown = cut.content or encoded(text)[:MAX_BYTES].decode("utf-8", "ignore")
    notice = (
        f"[Output cut: {format_size(len(encoded(shown)))} of {format_size(cut.total_bytes)},"
        f" {cut.output_lines} of {cut.total_lines} lines. Ask for less to see the rest.]"
    )
    others = tuple(block for block in result.content if not isinstance(block, Text))
    return replace(result, content=(Text(f"{shown}\n\n{notice}"), *others), full=text)
