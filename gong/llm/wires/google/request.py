"""Encodes a request for Gemini; pure except for its cache of encoded messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never
from urllib.parse import quote

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.formats.gemini import emit

from ..http_client import EncodedRequest
from ..json_values import (
    encode_with_array,
    list_unsent_fields,
    parse_options,
    take_server_tools,
)
from ..message_encoding import EncoderCache, HistorySelection, is_system_message

if TYPE_CHECKING:
    from ...models import Preset
    from ...types import Request, ToolChoice
    from ..json_values import WireObject

_VERSION = "v1beta"
_MODEL = re.compile(r"(?:.*/)?gemini-(?:(\d+)(?:\.(\d+))?-)?")
_SETTINGS = "generationConfig"
_BUDGETS = {"low": 1024, "medium": 2048, "high": 8192, "xhigh": 16_384}
_LEVELS = {"low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH"}
_TWO_LEVELS = re.compile(r"(?:.*/)?gemini-3-pro")


class _Generation(NamedTuple):
    """The Gemini generation of a model; None for others, the newest for an undated name."""

    major: int
    minor: int


_NONE, _NEWEST = _Generation(0, 0), _Generation(99, 0)
_FIRST_WITH_BUDGET, _FIRST_WITH_LEVEL = _Generation(2, 5), _Generation(3, 0)


def build_path(model: str) -> str:
    """Return the address of a model's streaming call, below the endpoint."""
    named = model if "/" in model else f"models/{model}"
    return f"{_VERSION}/{quote(named)}:streamGenerateContent?alt=sse"


class GoogleRequestEncoder:
    """Encodes the requests of a growing history, each message once."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._cache = EncoderCache(
            emit.build_encoder, lambda url, mime: {"fileData": {"mimeType": mime, "fileUri": url}}
        )
        self._system = HistorySelection(is_system_message)

    def encode_request(self, request: Request) -> EncodedRequest:
        """Return the call; the request's options have the last word.

        Options for the generation go over ours field by field. Raises MsgspecError for bad ones.
        """
        is_new = _find_generation(request.model) >= _FIRST_WITH_LEVEL
        form = emit.GeminiOptions(
            signed_calls=is_new,
            media_in_results=is_new,
            thinking_as_text=self.preset.quirks.thinking_as_text,
        )
        contents = self._cache.encode_messages(request, form)
        system = self._system.follow(request.messages)
        wire = build_envelope(replace(request, messages=system), self.preset)
        options = parse_options(request)
        if server_tools := take_server_tools(options):
            wire["tools"] = [*wire.get("tools", ()), *server_tools]
            if config := wire.get("toolConfig"):  # beside functions it has to be asked for
                wire["toolConfig"] = {**config, "includeServerSideToolInvocations": True}
        for more in (self.preset.body, options):
            settings = {**wire.get(_SETTINGS, {}), **more.get(_SETTINGS, {})}
            wire = {**wire, **more, **({_SETTINGS: settings} if settings else {})}
        warnings = list_unsent_fields(
            self.preset,
            request,
            metadata=(False, "its API has no place for it"),
            reasoning_effort=(
                _encode_thinking(request, self.preset) is not None,
                f"{request.model} is not known to think",
            ),
        )
        body = encode_with_array(wire, b"contents", contents)
        return EncodedRequest(build_path(request.model), body, {}, warnings)


def build_envelope(request: Request, preset: Preset) -> WireObject:
    """Return the body without its contents and options."""
    shape = request.response_format
    settings = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_tokens,
        "stopSequences": list(request.stop_sequences) or None,
        "responseMimeType": "application/json" if shape else None,
        "responseJsonSchema": shape.schema if shape else None,
        "thinkingConfig": _encode_thinking(request, preset),
    }
    wire = {
        "systemInstruction": emit.build_system_instruction(request.system, request.messages),
        **_encode_tools(request),
        _SETTINGS: {name: value for name, value in settings.items() if value is not None},
    }
    return {name: value for name, value in wire.items() if value}


def _encode_tools(request: Request) -> WireObject:
    if not request.tools:
        return {}
    declarations = [
        {
            "name": tool.name,
            "description": tool.description,
            "parametersJsonSchema": _clean_references(tool.parameters),
        }
        for tool in request.tools
    ]
    return {
        "tools": [{"functionDeclarations": declarations}],
        "toolConfig": {"functionCallingConfig": _encode_choice(request.tool_choice)},
    }


def _clean_references(schema: Raw) -> Raw:
    """Return a schema whose references have no other keys: the API refuses them."""
    if b'"$ref"' not in bytes(schema):
        return schema
    return Raw(msgspec.json.encode(_remove_neighbours(msgspec.json.decode(schema))))


def _remove_neighbours(node: Any) -> Any:
    if isinstance(node, list):
        return [_remove_neighbours(member) for member in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        node = {key: value for key, value in node.items() if key.startswith("$")}
    return {key: _remove_neighbours(value) for key, value in node.items()}


def _encode_choice(choice: ToolChoice) -> WireObject:
    match choice.mode:
        case "auto" | "none":
            return {"mode": choice.mode.upper()}
        case "required":
            return {"mode": "ANY"}
        case "named":
            return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    assert_never(choice.mode)


def _encode_thinking(request: Request, preset: Preset) -> WireObject | None:
    """Return what the effort means to the model: a level, a budget, or nothing at all."""
    effort, generation = request.reasoning_effort, _find_generation(request.model)
    if effort is None or generation < _FIRST_WITH_BUDGET or preset.quirks.thinking == "none":
        return None
    if generation < _FIRST_WITH_LEVEL:
        return {"includeThoughts": True, "thinkingBudget": _BUDGETS[effort]}
    level = _LEVELS[effort]
    if level == "MEDIUM" and _TWO_LEVELS.match(request.model):
        level = "HIGH"
    return {
        "includeThoughts": True,
        "thinkingLevel": preset.quirks.effort_names.get(effort, level),
    }


def _find_generation(model: str) -> _Generation:
    match = _MODEL.match(model)
    if match is None:
        return _NONE
    major, minor = match.groups()
    return _Generation(int(major), int(minor or 0)) if major else _NEWEST
