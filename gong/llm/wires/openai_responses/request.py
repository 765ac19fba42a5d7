"""Encodes a request for Responses: pure except for its cache of encoded messages.

The provider is asked to store nothing, so reasoning models return their reasoning encrypted and get
it back. JSON of the preset and the request overrides other fields.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

import msgspec

from tape.formats.openai_responses import emit

from ....errors import InvalidRequest
from ..http_client import EncodedRequest
from ..json_values import (
    encode_with_array,
    list_unsent_fields,
    parse_options,
    take_server_tools,
)
from ..message_encoding import EncoderCache
from ..openai_common import (
    choose_effort,
    encode_scalars,
    encode_schema,
    encode_storage,
    list_freeform_tools,
)

if TYPE_CHECKING:
    from ...models import Preset, Quirks
    from ...types import Request, ToolChoice, ToolSpec
    from ..json_values import WireObject

_DOES_NOT_REASON = re.compile(r"(?:ft:)?(?:gpt-[34]|chatgpt-|gpt-[\d.]+-chat)")
"""Names of models that refuse to be asked for encrypted reasoning."""


class OpenAIResponsesRequestEncoder:
    """Encodes the requests of a growing history, each message once."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._cache = EncoderCache(
            emit.build_encoder,
            lambda url, _mime: {"type": "input_image", "detail": "auto", "image_url": url},
            detail=True,
        )

    def encode_request(self, request: Request) -> EncodedRequest:
        """Return the call to send; raises MsgspecError for options that are not a JSON object."""
        quirks = self.preset.quirks
        own = {**self.preset.body, **parse_options(request)}
        server_tools = take_server_tools(own)
        schema = encode_schema(request)
        shape = {"text": {"format": {"type": "json_schema", **schema}}} if schema else {}
        storage = encode_storage(request, quirks)
        if storage and not _DOES_NOT_REASON.match(request.model):
            # encrypted reasoning, instead of a conversation that is stored
            storage["include"] = ["reasoning.encrypted_content"]
        fields = {
            "model": self.preset.get_deployment(request.model),
            "stream": True,
            **storage,
            **({"instructions": request.system} if request.system.strip() else {}),
            **_encode_tools(request, quirks),
            **_encode_thinking(request, quirks),
            **_encode_sampling(request, self.preset),
            **shape,
            **own,
        }
        if server_tools:
            fields["tools"] = [*server_tools, *fields.get("tools", ())]
        if shape and isinstance(own.get("text"), dict):  # such as its verbosity
            fields["text"] = {**shape["text"], **own["text"]}
        form = emit.OpenAIResponsesOptions(
            system_role=quirks.system_role,
            thinking_as_text=quirks.thinking_as_text,
            freeform=list_freeform_tools(request, quirks),
        )
        body = encode_with_array(fields, b"input", self._cache.encode_messages(request, form))
        has_thinking = bool(_encode_thinking(request, quirks))
        why = "its models are not asked to think"
        warnings = list_unsent_fields(self.preset, request, reasoning_effort=(has_thinking, why))
        return EncodedRequest("/responses", body, {}, warnings)


def _encode_tools(request: Request, quirks: Quirks) -> WireObject:
    if not request.tools:
        return {}
    texts = list_freeform_tools(request, quirks)
    tools = [_encode_tool(tool, quirks, texts) for tool in request.tools]
    return {"tools": tools, **_encode_choice(request.tool_choice, texts)}


def _encode_tool(tool: ToolSpec, quirks: Quirks, texts: frozenset[str]) -> WireObject:
    """Return a tool; where strictness is known, it is the default and must be declined."""
    if tool.name in texts and tool.freeform is not None:
        shape = {"type": "grammar", **msgspec.structs.asdict(tool.freeform)}
        custom = {"name": tool.name, "description": tool.description, "format": shape}
        return {"type": "custom", **custom}
    strict = {"strict": False} if quirks.strict_tools else {}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        **strict,
    }


def _encode_choice(choice: ToolChoice, texts: frozenset[str]) -> WireObject:
    match choice.mode:
        case "auto":
            return {}
        case "none" | "required":
            return {"tool_choice": choice.mode}
        case "named":
            kind = "custom" if choice.name in texts else "function"
            return {"tool_choice": {"type": kind, "name": choice.name}}
    assert_never(choice.mode)


def _encode_thinking(request: Request, quirks: Quirks) -> WireObject:
    effort = choose_effort(request, quirks)
    if effort is None or not quirks.reasoning_effort or _DOES_NOT_REASON.match(request.model):
        return {}
    return {"reasoning": {"effort": effort, "summary": "auto"}}


def _encode_sampling(request: Request, preset: Preset) -> WireObject:
    if request.stop_sequences:
        raise InvalidRequest(
            "the Responses API has no stop sequences: leave them out, or use openai-chat/MODEL",
            provider=preset.name,
        )
    metadata = {"metadata": request.metadata} if request.metadata else {}
    return {**encode_scalars(request, "max_output_tokens"), **metadata}
