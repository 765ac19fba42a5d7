"""What a Responses call sends, from a request: pure but for the histories it knows.

The provider is asked to keep nothing, so models that reason give their reasoning encrypted and get
it back. What the preset and the request say in JSON has the last word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

import msgspec

from tape.formats import openai_responses

from ...errors import InvalidRequest
from .body import left_out, options, with_array
from .connection import Call
from .histories import Histories
from .openai_chat_request import effort, freeform
from .pictures import showing

if TYPE_CHECKING:
    from ..presets import Preset, Quirks
    from ..types import Request, ToolChoice, ToolSpec
    from .values import WireObject

_DOES_NOT_REASON = re.compile(r"(?:ft:)?(?:gpt-[34]|chatgpt-|gpt-[\d.]+-chat)")
"""Names of models that refuse to be asked for encrypted reasoning."""


class Writer:
    """Writes the calls of a growing history, each message encoded once."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._histories = Histories(
            lambda form, load: showing(
                openai_responses.encoder(form, load), _by_address, detail=True
            )
        )

    def call(self, request: Request) -> Call:
        """Return what is sent; raises MsgspecError for options that are no JSON object."""
        quirks = self.preset.quirks
        fields = {
            "model": request.model,
            "stream": True,
            **_kept(request, quirks),
            **({"instructions": request.system} if request.system.strip() else {}),
            **_tools(request, quirks),
            **_thinking(request, quirks),
            **_sampling(request, self.preset),
            **_format(request),
            **self.preset.body,
            **options(request),
        }
        form = openai_responses.Options(
            system_role=quirks.system_role,
            thinking_as_text=quirks.thinking_as_text,
            freeform=freeform(request, quirks),
        )
        body = with_array(fields, b"input", self._histories.elements(request, form))
        asked = bool(_thinking(request, quirks))
        why = "its models are not asked to think"
        warnings = left_out(self.preset, request, reasoning_effort=(asked, why))
        return Call("/responses", body, {}, warnings)


def _by_address(url: str, _mime: str) -> WireObject:
    return {"type": "input_image", "detail": "auto", "image_url": url}


def _kept(request: Request, quirks: Quirks) -> WireObject:
    """Return what is said about keeping to hosts that know of it, which are OpenAI's own."""
    if not quirks.store:
        return {}
    kept: WireObject = {"store": False}
    if not _DOES_NOT_REASON.match(request.model):
        kept["include"] = ["reasoning.encrypted_content"]
    if request.session:
        kept["prompt_cache_key"] = request.session
    return kept


def _tools(request: Request, quirks: Quirks) -> WireObject:
    if not request.tools:
        return {}
    texts = freeform(request, quirks)
    tools = [_tool(tool, quirks, texts) for tool in request.tools]
    return {"tools": tools, **_choice(request.tool_choice, texts)}


def _tool(tool: ToolSpec, quirks: Quirks, texts: frozenset[str]) -> WireObject:
    """Return a tool; where strictness is known, it is the default and must be declined."""
    if tool.name in texts and tool.freeform is not None:
        shape = {"type": "grammar", **msgspec.structs.asdict(tool.freeform)}
        told = {"name": tool.name, "description": tool.description, "format": shape}
        return {"type": "custom", **told}
    strict = {"strict": False} if quirks.strict_tools else {}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        **strict,
    }


def _choice(choice: ToolChoice, texts: frozenset[str]) -> WireObject:
    match choice.mode:
        case "auto":
            return {}
        case "none" | "required":
            return {"tool_choice": choice.mode}
        case "named":
            kind = "custom" if choice.name in texts else "function"
            return {"tool_choice": {"type": kind, "name": choice.name}}
    assert_never(choice.mode)


def _thinking(request: Request, quirks: Quirks) -> WireObject:
    wanted = effort(request, quirks)
    if wanted is None or not quirks.reasoning_effort:
        return {}
    return {"reasoning": {"effort": wanted, "summary": "auto"}}


def _sampling(request: Request, preset: Preset) -> WireObject:
    if request.stop_sequences:
        raise InvalidRequest(
            "the Responses API has no stop sequences: leave them out, or use openai-chat/MODEL",
            provider=preset.name,
        )
    sampling: WireObject = {}
    if request.max_tokens is not None:
        sampling["max_output_tokens"] = request.max_tokens
    if request.temperature is not None:
        sampling["temperature"] = request.temperature
    if request.top_p is not None:
        sampling["top_p"] = request.top_p
    if request.metadata:
        sampling["metadata"] = request.metadata
    return sampling


def _format(request: Request) -> WireObject:
    wanted = request.response_format
    if wanted is None:
        return {}
    schema = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
    return {"text": {"format": {"type": "json_schema", **schema}}}
