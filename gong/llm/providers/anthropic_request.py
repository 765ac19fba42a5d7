"""The body of an Anthropic Messages call, from a request: pure.

At most four prompt-cache marks: the last tool, the system prompt, and the last block of the two
newest user messages, so that the newest call finds what the one before it has stored.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from tape.blocks import NO_JSON
from tape.formats.anthropic import messages, system_text

if TYPE_CHECKING:
    from ..types import Request, ToolChoice, ToolSpec

WireObject = dict[str, Any]

_MAX_TOKENS = 16_000
_MARK = {"cache_control": {"type": "ephemeral"}}
_MARKED_MESSAGES = 2
_BUDGETS = {"low": 1024, "medium": 2048, "high": 8192, "xhigh": 16_384}
_LEAST_BUDGET = 1024
_THINKS_BY_BUDGET = re.compile(r"claude-(?:3|(?:opus|sonnet|haiku)-4(?:-[015](?!\d)|-20|$))")


def body(request: Request) -> WireObject:
    """Return the JSON object to send; `request.options` has the last word."""
    return {
        "model": request.model,
        "max_tokens": _max_tokens(request),
        "stream": True,
        **_tools(request),
        **_system(request),
        "messages": _marked(messages(request.messages)),
        **_thinking(request),
        **_sampling(request),
        **_options(request),
    }


def _max_tokens(request: Request) -> int:
    return request.max_tokens or _MAX_TOKENS


def _tools(request: Request) -> WireObject:
    if not request.tools:
        return {}
    tools = [_tool(tool) for tool in request.tools]
    tools[-1] |= _MARK
    return {"tools": tools, "tool_choice": _choice(request.tool_choice)}


def _tool(tool: ToolSpec) -> WireObject:
    schema = msgspec.json.decode(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _choice(choice: ToolChoice) -> WireObject:
    match choice.mode:
        case "auto" | "none":
            return {"type": choice.mode}
        case "required":
            return {"type": "any"}
        case "named":
            return {"type": "tool", "name": choice.name}
    assert_never(choice.mode)


def _system(request: Request) -> WireObject:
    text = system_text(request.system, request.messages)
    return {"system": [{"type": "text", "text": text, **_MARK}]} if text else {}


def _marked(turns: list[WireObject]) -> list[WireObject]:
    """Return the turns with the last block of the newest user messages marked for the cache."""
    asked = [turn for turn in turns if turn["role"] == "user"]
    for turn in asked[-_MARKED_MESSAGES:]:
        turn["content"][-1] |= _MARK
    return turns


def _thinking(request: Request) -> WireObject:
    """Return what the effort means to the model; a forced tool call excludes thinking."""
    effort = request.reasoning_effort
    if effort is None or request.tool_choice.mode in {"required", "named"}:
        return {}
    if not _THINKS_BY_BUDGET.match(request.model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    budget = min(_BUDGETS[effort], _max_tokens(request) - 1)
    if budget < _LEAST_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _sampling(request: Request) -> WireObject:
    sampling: WireObject = {}
    if request.stop_sequences:
        sampling["stop_sequences"] = list(request.stop_sequences)
    if request.temperature is not None and not _thinking(request):
        sampling["temperature"] = request.temperature
    return sampling


def _options(request: Request) -> WireObject:
    options = request.options
    return {} if options == NO_JSON else msgspec.json.decode(options, type=WireObject)
