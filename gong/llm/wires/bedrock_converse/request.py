"""Encodes a request for Converse, Bedrock's API for models of all makers; pure but for a cache.

It keeps the rules of Anthropic's Messages, so a message is written in that form first and then
said in Converse's words, each once. What only some models take, such as an effort, goes into
`additionalModelRequestFields`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, assert_never
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from tape.formats.anthropic import emit

from ..anthropic.request import build_envelope as build_messages_envelope
from ..http_client import EncodedRequest
from ..json_values import encode_with_array, list_unsent_fields, parse_options
from ..message_encoding import EncoderCache, HistorySelection, is_system_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tape.context.view import Message
    from tape.formats.encoder import ArrayEncoder

    from ...models import Preset
    from ...types import Request, ToolChoice
    from ..json_values import WireObject

_MORE = "additionalModelRequestFields"
_CLAUDE = re.compile(r"claude")
_NOVA = re.compile(r"nova-(?:[2-9]|premier-[2-9])")
_OPENAI = re.compile(r"openai\.")
_NO_OUTPUT = "(no output)"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9()\[\]-]+")
_CALL_NAME = re.compile(rb'"toolUse":\{"toolUseId":"[^"]*","name":"([^"]*)"')


class _Translated:
    """Encodes a history as Converse has it; each element is translated once."""

    def __init__(self, encoder: ArrayEncoder) -> None:
        self._encoder = encoder
        self._sources: list[bytes] = []
        self._translated: list[bytes] = []

    def elements(self, messages: Sequence[Message]) -> list[bytes]:
        """Return each element of the array as JSON."""
        elements = self._encoder.elements(messages)
        known = len(self._sources) - 1  # the last one may have grown
        if known < 0 or elements[:known] != self._sources[:known]:
            known = 0
        new = [_translate_turn(element) for element in elements[known:]]
        self._sources, self._translated = elements, [*self._translated[:known], *new]
        return [*self._translated]


class BedrockConverseRequestEncoder:
    """Encodes the requests of a growing history, each message once."""

    def __init__(self, preset: Preset) -> None:
        self.preset = preset
        self._form = emit.AnthropicOptions(thinking_as_text=preset.quirks.thinking_as_text)
        self._cache = EncoderCache(
            emit.build_encoder,
            lambda url, _mime: {"type": "text", "text": f"(a picture at {url})"},
            wrap=_Translated,
        )
        self._system = HistorySelection(is_system_message)

    def encode_request(self, request: Request) -> EncodedRequest:
        """Return the call; its options have the last word. Raises MsgspecError for bad options."""
        own = parse_options(request)
        messages = self._cache.encode_messages(request, self._form)
        system = self._system.follow(request.messages)
        wire = _build_envelope(replace(request, messages=system), self.preset)
        if "toolConfig" not in wire and (names := _list_call_names(messages)):
            # calls in the history may not be sent without tools
            wire["toolConfig"] = {"tools": [_describe_past_tool(name) for name in names]}
        more = {**wire.pop(_MORE, {}), **own.pop(_MORE, {})}
        fields = {**wire, **({_MORE: more} if more else {}), **self.preset.body, **own}
        deployment = quote(self.preset.get_deployment(request.model), safe="")
        return EncodedRequest(
            f"/model/{deployment}/converse-stream",
            encode_with_array(fields, b"messages", messages),
            {},
            _list_warnings(request, self.preset, wire, more),
        )


def _build_envelope(request: Request, preset: Preset) -> WireObject:
    """Return the body without its messages and options."""
    messages = build_messages_envelope(request, preset)
    limits = {
        "maxTokens": request.max_tokens,
        "temperature": messages.get("temperature"),
        "topP": messages.get("top_p"),
        "stopSequences": messages.get("stop_sequences"),
    }
    limits = {name: value for name, value in limits.items() if value is not None}
    wire: WireObject = {}
    if limits:
        wire["inferenceConfig"] = limits
    if text := emit.build_system_text(request.system, request.messages):
        wire["system"] = [{"text": text}]
    if request.tools:
        tools = [
            {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {"json": tool.parameters},
                }
            }
            for tool in request.tools
        ]
        wire["toolConfig"] = {"tools": tools, **_encode_choice(request.tool_choice)}
    if more := _encode_thinking(request, messages):
        wire[_MORE] = more
    return wire


def _encode_choice(choice: ToolChoice) -> WireObject:
    match choice.mode:
        case "auto" | "none":
            return {}
        case "required":
            return {"toolChoice": {"any": {}}}
        case "named":
            return {"toolChoice": {"tool": {"name": choice.name}}}
    assert_never(choice.mode)


def _encode_thinking(request: Request, messages: WireObject) -> WireObject:
    """Return what the effort means to a model; only of some makers is it known."""
    effort = request.reasoning_effort
    if effort is None:
        return {}
    if _CLAUDE.search(request.model):
        names = ("thinking", "output_config")
        return {name: messages[name] for name in names if name in messages}
    level = "high" if effort == "xhigh" else effort
    if _NOVA.search(request.model):
        return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": level}}
    return {"reasoning_effort": level} if _OPENAI.search(request.model) else {}


def _translate_turn(element: bytes) -> bytes:
    turn = msgspec.json.decode(element)
    content = turn["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    sent = [block for number, one in enumerate(blocks) for block in _translate_block(one, number)]
    if any("document" in block for block in sent) and not any("text" in block for block in sent):
        sent.append({"text": "(the document)"})  # it may not stand alone
    return msgspec.json.encode({"role": turn["role"], "content": sent})


def _translate_block(block: WireObject, number: int) -> Iterator[WireObject]:
    match block["type"]:
        case "text":
            yield {"text": block["text"]}
        case "image" if block["source"]["type"] == "base64":
            source = block["source"]
            kind = source["media_type"].partition("/")[2]
            yield {"image": {"format": kind, "source": {"bytes": source["data"]}}}
        case "document":
            yield {"document": _translate_document(block, number)}
        case "thinking":
            text = {"text": block["thinking"], "signature": block["signature"]}
            yield {"reasoningContent": {"reasoningText": text}}
        case "redacted_thinking":
            yield {"reasoningContent": {"redactedContent": block["data"]}}
        case "tool_use":
            call = {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}
            yield {"toolUse": call}
        case "tool_result":
            yield {"toolResult": _translate_result(block)}


def _translate_document(block: WireObject, number: int) -> WireObject:
    source = block["source"]
    data, kind = source["data"], "pdf"
    if source["type"] == "text":
        data, kind = b64encode(data.encode()).decode(), "txt"
    title = _NOT_IN_NAMES.sub("-", block.get("title", "document")).strip("-") or "document"
    return {"format": kind, "name": f"{title[:150]}-{number + 1}", "source": {"bytes": data}}


def _translate_result(block: WireObject) -> WireObject:
    content: Any = block.get("content") or _NO_OUTPUT
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    sent = [inner for number, part in enumerate(parts) for inner in _translate_block(part, number)]
    return {
        "toolUseId": block["tool_use_id"],
        "content": sent or [{"text": _NO_OUTPUT}],
        **({"status": "error"} if block.get("is_error") else {}),
    }


def _list_call_names(messages: Sequence[bytes]) -> list[str]:
    """Return the tools that were called, each once."""
    names = (match.decode() for element in messages for match in _CALL_NAME.findall(element))
    return [*dict.fromkeys(names)]


def _describe_past_tool(name: str) -> WireObject:
    schema = {"json": {"type": "object"}}
    return {"toolSpec": {"name": name, "description": "Was used before.", "inputSchema": schema}}


def _list_warnings(
    request: Request, preset: Preset, wire: WireObject, more: WireObject
) -> tuple[str, ...]:
    limits = wire.get("inferenceConfig", {})
    return list_unsent_fields(
        preset,
        request,
        temperature=("temperature" in limits, "it is fixed for this model, or with thinking"),
        top_p=("topP" in limits, "it is fixed for this model, or goes beside no temperature"),
        metadata=(False, "its API has no place for it"),
        reasoning_effort=(
            bool({"thinking", "reasoningConfig", "reasoning_effort"} & {*more}),
            f"how {request.model} is asked to think is not known",
        ),
    )
