"""What a Gemini call sends, from a request; pure but for the memory of its writer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, assert_never
from urllib.parse import quote

from tape.formats import gemini

from .body import left_out, options, with_array
from .connection import Call
from .histories import Histories
from .pictures import showing

if TYPE_CHECKING:
    from ..presets import Preset
    from ..types import Request, ToolChoice, ToolSpec
    from .values import WireObject

_VERSION = "v1beta"
_MODEL = re.compile(r"(?:.*/)?gemini-(?:(\d+)(?:\.(\d+))?-)?")
_SETTINGS = "generationConfig"
_BUDGETS = {"low": 1024, "medium": 2048, "high": 8192, "xhigh": 16_384}
_LEVELS = {"low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH"}
_TWO_LEVELS = re.compile(r"(?:.*/)?gemini-3-pro")


class _Generation(NamedTuple):
    """Which one a model is of; what is no Gemini is of none, an undated name of the newest."""

    major: int
    minor: int


_NONE, _NEWEST = _Generation(0, 0), _Generation(99, 0)
_FIRST_WITH_BUDGET, _FIRST_WITH_LEVEL = _Generation(2, 5), _Generation(3, 0)


def path(model: str) -> str:
    """Return the address of a model's streaming call, below the endpoint."""
    named = model if "/" in model else f"models/{model}"
    return f"{_VERSION}/{quote(named)}:streamGenerateContent?alt=sse"


class Writer:
    """Writes the calls of a growing history, each message encoded once."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._histories = Histories(
            lambda form, load: showing(gemini.encoder(form, load), _by_address)
        )

    def call(self, request: Request) -> Call:
        """Return the call; the request's options have the last word.

        Options for the generation go over ours field by field. Raises MsgspecError for bad ones.
        """
        contents = self._histories.elements(request, self._form(request.model))
        wire = envelope(request, self.preset)
        for more in (self.preset.body, options(request)):
            settings = {**wire.get(_SETTINGS, {}), **more.get(_SETTINGS, {})}
            wire = {**wire, **more, **({_SETTINGS: settings} if settings else {})}
        warnings = left_out(
            self.preset,
            request,
            metadata=(False, "its API has no place for it"),
            reasoning_effort=(
                _thinking(request, self.preset) is not None,
                f"{request.model} is not known to think",
            ),
        )
        body = with_array(wire, b"contents", contents)
        return Call(path(request.model), body, {}, warnings)

    def _form(self, model: str) -> gemini.Options:
        is_new = _generation(model) >= _FIRST_WITH_LEVEL
        return gemini.Options(
            signed_calls=is_new,
            media_in_results=is_new,
            thinking_as_text=self.preset.quirks.thinking_as_text,
        )


def _by_address(url: str, mime: str) -> WireObject:
    return {"fileData": {"mimeType": mime, "fileUri": url}}


def envelope(request: Request, preset: Preset) -> WireObject:
    """Return the body without its contents and options."""
    wire = {
        "systemInstruction": gemini.system_instruction(request.system, request.messages),
        **_tools(request),
        _SETTINGS: _settings(request, preset),
    }
    return {name: value for name, value in wire.items() if value}


def _tools(request: Request) -> WireObject:
    if not request.tools:
        return {}
    declarations = [_declaration(tool) for tool in request.tools]
    return {
        "tools": [{"functionDeclarations": declarations}],
        "toolConfig": {"functionCallingConfig": _choice(request.tool_choice)},
    }


def _declaration(tool: ToolSpec) -> WireObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    }


def _choice(choice: ToolChoice) -> WireObject:
    match choice.mode:
        case "auto" | "none":
            return {"mode": choice.mode.upper()}
        case "required":
            return {"mode": "ANY"}
        case "named":
            return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    assert_never(choice.mode)


def _settings(request: Request, preset: Preset) -> WireObject:
    shape = request.response_format
    settings = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_tokens,
        "stopSequences": list(request.stop_sequences) or None,
        "responseMimeType": "application/json" if shape else None,
        "responseJsonSchema": shape.schema if shape else None,
        "thinkingConfig": _thinking(request, preset),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _thinking(request: Request, preset: Preset) -> WireObject | None:
    """Return what the effort means to the model: a level, a budget, or nothing at all."""
    effort, generation = request.reasoning_effort, _generation(request.model)
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


def _generation(model: str) -> _Generation:
    found = _MODEL.match(model)
    if found is None:
        return _NONE
    major, minor = found.groups()
    return _Generation(int(major), int(minor or 0)) if major else _NEWEST
