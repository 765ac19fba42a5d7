"""Encodes a request for Chat Completions: pure except for its cache of encoded messages.

The host's quirks decide which fields it is sent; what the preset and the request say in JSON has
the last word. The array of messages goes in as bytes, each message encoded once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec.structs import replace

from tape.context.view import Message
from tape.formats.encoder import (
    ANTHROPIC_IDS,
    GEMINI_IDS,
    MISTRAL_IDS,
    OPENAI_CHAT_IDS,
    OPENAI_RESPONSES_IDS,
)
from tape.formats.openai_chat import emit
from tape.formats.wire import encode_json
from tape.model.entries import Text, select_tool_calls

from ..http_client import EncodedRequest
from ..json_values import encode_with_array, list_unsent_fields, parse_options
from ..message_encoding import EncoderCache, HistorySelection
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

_IDS = {
    "anthropic": ANTHROPIC_IDS,
    "openai": OPENAI_CHAT_IDS,
    "responses": OPENAI_RESPONSES_IDS,
    "mistral": MISTRAL_IDS,
    "google": GEMINI_IDS,
    "any": OPENAI_CHAT_IDS,
}
_MARK = {"cache_control": {"type": "ephemeral"}}
_KNOWS_MARKS = re.compile(r"claude|anthropic/", re.IGNORECASE)
_MARKED_MESSAGES = 2


class OpenAIChatRequestEncoder:
    """Encodes the requests of a growing history, each message once."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._cache = EncoderCache(
            emit.build_encoder,
            lambda url, _mime: {"type": "image_url", "image_url": {"url": url}},
            detail=True,
        )
        self._prompted_history = HistorySelection()

    def encode_request(self, request: Request) -> EncodedRequest:
        """Return the call to send; raises MsgspecError for options that are not a JSON object."""
        quirks = self.preset.quirks
        stream: WireObject = {"stream_options": {"include_usage": True}}
        schema = encode_schema(request)
        shape = {"type": "json_schema", "json_schema": schema}
        fields = {
            "model": self.preset.get_deployment(request.model),
            "stream": True,
            **(stream if quirks.usage_in_stream else {}),
            **encode_storage(request, quirks),
            **_encode_tools(request, quirks),
            **_encode_thinking(request, quirks),
            **encode_scalars(request, quirks.max_tokens_field),
            **({"stop": request.stop_sequences} if request.stop_sequences else {}),
            **({"response_format": shape} if schema else {}),
            **self.preset.body,
            **parse_options(request),
        }
        is_kept = fields.get("store") is True
        if request.metadata and is_kept:
            fields = {"metadata": request.metadata, **fields}
        warnings = list_unsent_fields(
            self.preset,
            request,
            metadata=(is_kept, 'it goes with the option "store": true only'),
            reasoning_effort=(
                bool(_encode_thinking(request, quirks)),
                "its models are not asked to think",
            ),
        )
        prompt = (Message("system", (Text(request.system),)),) if request.system.strip() else ()
        with_prompt = replace(
            request, messages=self._prompted_history.follow(request.messages, prompt)
        )
        elements = self._cache.encode_messages(with_prompt, _choose_form(request, quirks))
        if quirks.cache_marks and _KNOWS_MARKS.search(request.model):
            elements = _mark_elements(elements)
        body = encode_with_array(fields, b"messages", elements)
        return EncodedRequest("/chat/completions", body, {}, warnings)


def _choose_form(request: Request, quirks: Quirks) -> emit.OpenAIChatOptions:
    """Return how a host with these quirks takes messages."""
    return emit.OpenAIChatOptions(
        ids=_IDS[quirks.call_ids],
        system_role=quirks.system_role,
        thinking_as_text=quirks.thinking_as_text,
        replay_reasoning=quirks.replay_reasoning,
        tool_result_name=quirks.tool_result_name,
        filler_after_tools=quirks.filler_after_tools,
        freeform=list_freeform_tools(request, quirks),
    )


def _mark_elements(elements: list[bytes]) -> list[bytes]:
    """Return the elements with cache marks on the prompt and the newest messages."""
    elements, marks = [*elements], 0
    for place in (0, *range(len(elements) - 1, 0, -1))[: len(elements)]:
        message = msgspec.json.decode(elements[place])
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if parts and parts[-1].get("type") == "text" and message["role"] != "tool":
            marked = [*parts[:-1], {**parts[-1], **_MARK}]
            elements[place], marks = encode_json({**message, "content": marked}), marks + 1
        if marks > _MARKED_MESSAGES:
            break
    return elements


def _encode_tools(request: Request, quirks: Quirks) -> WireObject:
    if not request.tools:
        had_calls = quirks.empty_tools and any(
            select_tool_calls(message.content) for message in request.messages
        )
        return {"tools": []} if had_calls else {}
    texts = list_freeform_tools(request, quirks)
    tools = [_encode_tool(tool, quirks, texts) for tool in request.tools]
    return {"tools": tools, **_encode_choice(request.tool_choice, texts)}


def _encode_tool(tool: ToolSpec, quirks: Quirks, texts: frozenset[str]) -> WireObject:
    if tool.name in texts and tool.freeform is not None:
        shape = {"type": "grammar", "grammar": tool.freeform}
        custom = {"name": tool.name, "description": tool.description, "format": shape}
        return {"type": "custom", "custom": custom}
    strict = {"strict": False} if quirks.strict_tools else {}
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        **strict,
    }
    return {"type": "function", "function": function}


def _encode_choice(choice: ToolChoice, texts: frozenset[str]) -> WireObject:
    match choice.mode:
        case "auto":
            return {}
        case "none" | "required":
            return {"tool_choice": choice.mode}
        case "named":
            kind = "custom" if choice.name in texts else "function"
            return {"tool_choice": {"type": kind, kind: {"name": choice.name}}}
    assert_never(choice.mode)


def _encode_thinking(request: Request, quirks: Quirks) -> WireObject:
    """Return the fields that request thinking; empty if the models decide."""
    effort = choose_effort(request, quirks)
    ways: dict[str, WireObject] = {
        "effort": {"reasoning_effort": effort} if quirks.reasoning_effort else {},
        "openrouter": {"reasoning": {"effort": effort}},
        "zai": {"thinking": {"type": "enabled"}},
        "qwen": {"enable_thinking": True},
        "template": {"chat_template_kwargs": {"enable_thinking": True}},
        "none": {},
    }
    return {} if effort is None else ways[quirks.thinking]
