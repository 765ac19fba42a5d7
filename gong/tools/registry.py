"""The tools of a session, and how a call runs.

A call goes through these steps; between the two methods the caller asks for permission and records
the start. Every error becomes a result that a model can act on; only cancellation is raised.

    | step     | in        | what happens                                | error             |
    | -------- | --------- | ------------------------------------------- | ----------------- |
    | LOOKUP   | `prepare` | the active tool of that name                | Unknown tool      |
    | VALIDATE | `prepare` | JSON → Struct; perhaps another tool is meant| Invalid arguments |
    | EXECUTE  | `run`     | the tool's body                             | Tool error        |
    | TRUNCATE | `run`     | cut once: by the tool itself, the limits of |                   |
    |          |           | its family, or the truncation service       |                   |

The schema of a tool's arguments is flat JSON Schema, and values are bent to it: models put JSON in
strings, and null where a field is left out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from tape.formats.wire import clean_value
from tape.model.entries import join_texts

from ..errors import ConfigurationError
from ..llm.types import ToolSpec
from .limits import count_bytes
from .output_storage import TapeStorage, TruncationContext, TruncationOptions, find_blob
from .tool import (
    AgentTool,
    Diversion,
    PreparedCall,
    RemovedOutput,
    ToolContext,
    ToolOutcome,
    build_failure,
    check_outcome,
)
from .truncation import TruncationEvent, limit_text
from .truncation_service import CutText, TruncationService

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from tape.model.entries import ToolCall

    from ..llm.models import ProfileName

    Middleware = Callable[[ToolOutcome, TruncationContext], Awaitable[ToolOutcome]]


JsonSchema = dict[str, Any]
"""A JSON Schema."""

_NULL = {"type": "null"}
_CONTAINERS: dict[str, type] = {"object": dict, "array": list}


@cache
def build_schema(arguments: type[msgspec.Struct]) -> JsonSchema:
    """Return a schema with an object at its root and no references.

    Null is not named as a choice: a model leaves an optional field out, and `coerce_value` takes
    nulls. It is made once for each Struct and not to be changed.
    """
    schema = msgspec.json.schema(arguments)
    flat = _flatten_schema(schema, schema["$defs"])
    flat.pop("description", None)
    return {"type": "object", "properties": {}, **flat}


def coerce_value(value: Any, schema: JsonSchema) -> Any:
    """Return `value` with JSON in strings opened and nulls of optional fields left out."""
    container = _CONTAINERS.get(schema.get("type", ""))
    if container is not None and isinstance(value, str):
        with suppress(ValueError):  # not JSON: validation names the string as what is wrong
            inner = json.loads(value, strict=False)
            value = inner if isinstance(inner, container) else value
    if isinstance(value, dict) and "properties" in schema:
        fields, required = schema["properties"], schema.get("required", ())
        return {
            name: coerce_value(item, fields.get(name, {}))
            for name, item in value.items()
            if item is not None or name in required
        }
    if isinstance(value, list) and "items" in schema:
        return [coerce_value(item, schema["items"]) for item in value]
    return value


def describe_fields(schema: JsonSchema) -> str:
    """Return the fields of an object in words: "path (string), limit (integer, optional)"."""
    required = schema.get("required", ())
    return ", ".join(
        f"{name} ({field.get('type', 'any')}{'' if name in required else ', optional'})"
        for name, field in schema["properties"].items()
    )


def _flatten_schema(node: JsonSchema, definitions: JsonSchema) -> JsonSchema:
    if "$ref" in node:
        return _flatten_schema(definitions[node["$ref"].rpartition("/")[2]], definitions)
    flat = {key: value for key, value in node.items() if key != "title"}
    if flat.get("default", ...) is None:
        del flat["default"]
    if "properties" in flat:
        fields = flat["properties"].items()
        flat["properties"] = {name: _flatten_schema(field, definitions) for name, field in fields}
    for key in ("items", "additionalProperties"):
        if isinstance(flat.get(key), dict):
            flat[key] = _flatten_schema(flat[key], definitions)
    choices = [
        _flatten_schema(choice, definitions) for choice in flat.get("anyOf", ()) if choice != _NULL
    ]
    if not choices:
        return flat
    rest = {key: value for key, value in flat.items() if key != "anyOf"}
    return {**choices[0], **rest} if len(choices) == 1 else {**rest, "anyOf": choices}


SKIPPED_TOOLS = frozenset({"web_fetch", "WebFetch"})
"""Tools whose results are left as they are: they page by themselves."""


@dataclass(frozen=True, slots=True)
class TruncationMiddleware:
    """Cuts results by a service."""

    service: TruncationService
    skip_tools: frozenset[str] = SKIPPED_TOOLS
    should_truncate: Callable[[str, ToolOutcome], bool | TruncationOptions] = lambda *_: True
    """Given a tool's name and its result: False leaves it, options are those of this call."""

    async def __call__(self, result: ToolOutcome, context: TruncationContext) -> ToolOutcome:
        """Return the result with its texts as one, cut where that is too long."""
        text = join_texts(result.content)
        if not text or result.is_measured or context.tool_name in self.skip_tools:
            return result
        decision = self.should_truncate(context.tool_name, result)
        if decision is False:
            return result
        if isinstance(decision, TruncationOptions):
            context = dataclasses.replace(context, options=decision)
        cut = await self.service.output(text, context)
        if not isinstance(cut, CutText):
            is_enabled = self.service.choose_settings(context).enabled
            return replace(result, truncated=False) if is_enabled else result
        return replace(
            result.replace_text(cut.content, text),
            kept=await find_blob(context.storage, cut.output_path),
            removed=RemovedOutput(cut.output_path, cut.removed_lines, cut.removed_bytes),
            truncated=True,
        )


TOOL_PRESETS: Mapping[str, tuple[str, ...]] = {
    "default": ("read", "write", "edit", "bash", "grep", "find", "ls"),
    "minimal": ("read", "write", "edit", "bash"),
    "readonly": ("read", "grep", "find", "ls"),
}
"""Presets of tools; names that a registry does not have are left out."""


class CallWatcher(Protocol):
    """Looks at the calls that run, and may add to their results."""

    async def begin_call(self, call: ToolCall, context: ToolContext) -> None:
        """Look at a call before it runs."""
        ...

    async def end_call(
        self, call: ToolCall, result: ToolOutcome, context: ToolContext
    ) -> ToolOutcome:
        """Return the result of a call as the model gets it."""
        ...


class ToolRegistry:
    """Tools by name, in the order they were added; all are active until some are chosen."""

    def __init__(self, tools: Iterable[AgentTool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._chosen: tuple[str, ...] | None = None
        self.registered: frozenset[str] = frozenset()
        """The tools that were added after the registry was made, as by a host."""
        self.profile: ProfileName | None = None
        """The profile whose tools are active; None for tools that were chosen."""
        self._of_profile: tuple[tuple[str, ...] | None, ProfileName] | None = None
        """The active tools before some were chosen, and their profile."""
        self.tolerated: frozenset[str] = frozenset()
        """Tools that run when they are called, though they are not offered."""
        self.truncation: Middleware = TruncationMiddleware(TruncationService())
        """Cuts the results that nothing else has cut; can be replaced."""
        self.watcher: CallWatcher | None = None
        """Looks at each call before and after it runs."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool there is."""
        return tuple(self._tools)

    @property
    def active(self) -> tuple[str, ...]:
        """The tools that the model sees and may call."""
        return self.names if self._chosen is None else self._chosen

    def register(self, tool: AgentTool) -> None:
        """Add a tool; the latest of a name wins and keeps its place."""
        self._tools[tool.name] = tool
        self.registered |= {tool.name}

    def replace_built_in(self, tool: AgentTool) -> None:
        """Put another tool in place of a built-in one; not if a host has registered that name."""
        if tool.name in self._tools and tool.name not in self.registered:
            self._tools[tool.name] = tool

    def copy(self) -> ToolRegistry:
        """Return a registry with the same tools, that can be changed by itself."""
        other = ToolRegistry(self._tools.values())
        other._chosen, other.registered = self._chosen, self.registered
        other._of_profile = self._of_profile
        other.truncation, other.watcher = self.truncation, self.watcher
        return other

    def unregister(self, name: str) -> None:
        """Remove a tool; raises ConfigurationError if there is none of that name."""
        self._require_known((name,))
        del self._tools[name]
        if self._chosen is not None:
            self._chosen = tuple(chosen for chosen in self._chosen if chosen != name)

    def get(self, name: str) -> AgentTool | None:
        """Return the tool of that name, active or not."""
        return self._tools.get(name)

    def is_safe_call(self, call: ToolCall) -> bool:
        """Return whether a call is known to read only: it may be repeated after a crash."""
        known = self.get(call.name)
        return known is not None and known.replay == "safe"

    def find_parallel_kind(self, call: ToolCall) -> str | None:
        """Return a kind of calls, of which adjacent ones may run side by side; None for one alone.

        All that read are of one kind. They are not beside sub-agents: what those write, or a wait
        for them brings, is there for the calls after them.
        """
        known = self.get(call.name)
        if known is None:
            return None
        return "read" if known.replay == "safe" else known.name if known.parallel else None

    def preset(self, name: str) -> tuple[str, ...]:
        """Return the tools of a preset that are there; ConfigurationError for an unknown one."""
        if name not in TOOL_PRESETS:
            raise ConfigurationError(
                f"Unknown preset of tools: {name}. Try {', '.join(TOOL_PRESETS)}."
            )
        return tuple(tool for tool in TOOL_PRESETS[name] if tool in self._tools)

    def validate(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names once each; ConfigurationError when one is unknown or none is given."""
        known = tuple(dict.fromkeys(names))
        if not known:
            raise ConfigurationError("No tools given. Name at least one of them.")
        self._require_known(known)
        return known

    def set_active(self, names: Iterable[str]) -> None:
        """Choose the active tools, from the next call on; refused as `validate` says.

        They are no longer those of a profile, and stay when the model changes.
        """
        chosen = self.validate(names)
        if self.profile is not None:
            self._of_profile = (self._chosen, self.profile)
        self._chosen, self.profile, self.tolerated = chosen, None, frozenset()

    def forget_choice(self) -> bool:
        """Let the tools of a profile be active again; return whether they ever were."""
        if self.profile is None and self._of_profile is not None:
            self._chosen, self.profile = self._of_profile
        return self.profile is not None

    def activate(self, names: Iterable[str]) -> None:
        """Offer these tools beside the active ones; refused as `validate` says."""
        self._chosen = self.validate((*self.active, *names))

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the definitions of the active tools, always in the same order."""
        return tuple(
            ToolSpec(
                tool.name,
                tool.description,
                msgspec.Raw(msgspec.json.encode(tool.schema or build_schema(tool.arguments))),
                tool.freeform,
            )
            for tool in map(self._tools.__getitem__, self.active)
        )

    def prepare(self, call: ToolCall) -> PreparedCall | ToolOutcome:
        """Find the tool and check the arguments; a result when the call cannot run."""
        if call.name not in self._tools or call.name not in {*self.active, *self.tolerated}:
            known = ", ".join(self.active) or "none"
            by_lower = {name.lower(): name for name in self.active}
            near = get_close_matches(call.name.lower(), by_lower, n=1)
            hint = f"did you mean {by_lower[near[0]]}? " if near else ""
            text = f"Unknown tool: {call.name}: {hint}the tools there are: {known}"
            return ToolOutcome.error(text, kind="UnknownTool")
        tool = self._tools[call.name]
        schema = build_schema(tool.arguments)
        try:
            value = _parse_arguments(call, tool)
            value = coerce_value(value, schema) if tool.schema is None else {"value": value}
            arguments = msgspec.convert(value, tool.arguments, strict=False)
        except (ValueError, RecursionError) as error:
            problem = f"Invalid arguments for tool: {tool.name}: {error}."
            expected = "a JSON object" if tool.schema else describe_fields(schema)
            text = f"{problem} Expected: {expected}"
            return ToolOutcome.error(text, kind="ValidationError")
        except BaseException as error:  # noqa: BLE001 - of the tool's own arguments
            return build_failure(tool.name, error)
        try:
            meant: object = tool.divert(arguments) if tool.divert else None
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises becomes a result
            return build_failure(tool.name, error, "its divert failed: ")
        if isinstance(meant, Diversion):
            tool, arguments = meant
        elif meant is not None:
            return check_outcome(tool.name, meant)
        return PreparedCall(tool, call, arguments)

    async def run(
        self, prepared: PreparedCall, context: ToolContext, options: TruncationOptions | None = None
    ) -> ToolOutcome:
        """Run the tool's body and cut what it did not cut itself, this time by `options`."""
        context = dataclasses.replace(context, tool=prepared.tool.name)
        if self.watcher is None:
            return await self._run_tool(prepared, context, options)
        await self.watcher.begin_call(prepared.call, context)
        result = await self._run_tool(prepared, context, options)
        return await self.watcher.end_call(prepared.call, result, context)

    async def _run_tool(
        self, prepared: PreparedCall, context: ToolContext, options: TruncationOptions | None
    ) -> ToolOutcome:
        try:
            answered: object = await prepared.tool.run(prepared.arguments, context)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises becomes a result
            return build_failure(prepared.tool.name, error)
        tool = prepared.tool
        result = check_outcome(tool.name, answered)
        if tool.limits is not None:
            text = join_texts(result.content)
            limited = text if result.is_measured else limit_text(text, tool.limits)
            if limited != text:
                result = result.replace_text(limited, text)
            _report_cut(result, context)
            return result
        about = dataclasses.replace(
            context.describe_output(),
            options=options,
            declared=tool.truncation,
            tools=self.active,
            on_event=context.on_truncation,
        )
        _report_cut(result, context)
        try:
            return await self.truncation(result, about)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - it may be the host's
            return build_failure(tool.name, error, "its result could not be cut: ")

    def _require_known(self, names: Iterable[str]) -> None:
        unknown = [name for name in names if name not in self._tools]
        if unknown:
            there = ", ".join(self._tools) or "none"
            raise ConfigurationError(f"Unknown tool: {', '.join(unknown)}. There are: {there}.")


def _report_cut(result: ToolOutcome, context: ToolContext) -> None:
    """Tell of a result that its tool cut itself, or that was cut by the limits of its family."""
    if result.full is None and result.kept is None and result.removed is None:
        return
    whole = count_bytes(result.full or "") if result.kept is None else result.kept.bytes
    cut_size = count_bytes(join_texts(result.content))
    if not getattr(result.details, "truncated", whole > cut_size):  # a page of a file, whole
        return
    path = None if result.removed is None else result.removed.truncation_path
    if result.kept is not None and isinstance(context.storage, TapeStorage):
        path = context.storage.locate_blob(result.kept)
    now = time.time_ns() // 1_000_000
    context.on_truncation(
        TruncationEvent("truncated", context.tool, whole, cut_size, now, output_path=path)
    )


def _parse_arguments(call: ToolCall, tool: AgentTool) -> Any:
    """Return the JSON of the call, control characters in strings forgiven; nothing is {}.

    Text for a tool that takes text is its argument `input`. Lone surrogates become U+FFFD, as on
    the tape.
    """
    text = bytes(call.args) if call.args_text is None else call.args_text
    try:
        value = clean_value(json.loads(text, strict=False)) if text.strip() else None
    except ValueError:
        if tool.freeform is None or call.args_text is None:
            raise
        value = clean_value(call.args_text)
    if tool.freeform is not None and isinstance(value, str):
        return {"input": value}
    return {} if value is None else value
