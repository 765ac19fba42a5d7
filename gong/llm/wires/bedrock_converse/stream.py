"""Decodes the events of Converse: pure, one decoder for each answer.

| event | is to Anthropic's decoder |
|---|---|
| messageStart | message_start |
| contentBlockStart, -Delta, -Stop | content_block_start, _delta, _stop |
| messageStop | message_delta with the reason |
| metadata | message_delta with the counts |
| the second of these two, whichever it is | message_stop too |
| an exception | error |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.formats.wire import decode_json, encode_json

from ..anthropic.stream import AnthropicStreamDecoder
from ..json_values import WireObject, read_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...models import Preset
    from ...types import StreamEvent
    from ..failures import ProviderFailures

_STOPS = {"guardrail_intervened": "refusal", "content_filtered": "refusal"}
_COUNTS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_input_tokens": "cacheReadInputTokens",
    "cache_creation_input_tokens": "cacheWriteInputTokens",
}


class BedrockConverseStreamDecoder(AnthropicStreamDecoder):
    """Says each event in the words of Messages."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None:
        super().__init__(failures, preset)
        self._kinds: dict[int, str] = {}
        """Blocks that have begun: their number → their type."""
        self._endings: set[str] = set()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of one event of the API; raises ModelError."""
        try:
            event = decode_json(data)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or event.get("type") == "error":
            yield from super().feed(data)
            return
        for name, fields in event.items():
            for translated in self._translate_event(name, read_object(fields)):
                yield from super().feed(encode_json(translated))

    def split_answer(self, answer: WireObject) -> list[WireObject]:
        """Return the events that a stream would have sent of a whole answer."""
        message = read_object(read_object(answer.get("output")).get("message"))
        content = message.get("content")
        if not isinstance(content, list):
            return []
        events: list[WireObject] = [{"messageStart": {"role": "assistant"}}]
        for number, block in enumerate(map(read_object, content)):
            events += _split_block(block, number)
        events.append({"messageStop": {"stopReason": answer.get("stopReason")}})
        return [*events, {"metadata": {"usage": answer.get("usage")}}]

    def _translate_event(self, name: str, fields: WireObject) -> Iterator[WireObject]:
        index = fields.get("contentBlockIndex", 0)
        match name:
            case "messageStart":
                yield {"type": "message_start", "message": {"role": "assistant"}}
            case "contentBlockStart":
                call = read_object(read_object(fields.get("start")).get("toolUse"))
                if call:
                    names = {"id": call.get("toolUseId"), "name": call.get("name")}
                    yield self._begin(index, {"type": "tool_use", **names})
            case "contentBlockDelta":
                yield from self._translate_delta(index, read_object(fields.get("delta")))
            case "contentBlockStop":
                if self._kinds.pop(index, None):
                    yield {"type": "content_block_stop", "index": index}
            case "messageStop" as ending:
                reason = fields.get("stopReason")
                reason = _STOPS.get(reason, reason) if isinstance(reason, str) else None
                yield {"type": "message_delta", "delta": {"stop_reason": reason}}
                yield from self._end(ending)
            case "metadata":
                usage = read_object(fields.get("usage"))
                counts = {name: usage.get(theirs) for name, theirs in _COUNTS.items()}
                yield {"type": "message_delta", "usage": counts}
                yield from self._end("metadata")
            case _:  # an event that was made later
                return

    def _translate_delta(self, index: int, delta: WireObject) -> Iterator[WireObject]:
        piece: WireObject = {}
        kind = "text"
        thought = read_object(delta.get("reasoningContent"))
        if "text" in delta:
            piece = {"type": "text_delta", "text": delta["text"]}
        elif "toolUse" in delta:
            arguments = read_object(delta["toolUse"]).get("input")
            kind, piece = "tool_use", {"type": "input_json_delta", "partial_json": arguments}
        elif "text" in thought:
            kind, piece = "thinking", {"type": "thinking_delta", "thinking": thought["text"]}
        elif "signature" in thought:
            kind = "thinking"
            piece = {"type": "signature_delta", "signature": thought["signature"]}
        elif "redactedContent" in thought:
            kind = "redacted_thinking"
            piece = {"type": "data_delta", "data": thought["redactedContent"]}
        elif "citation" in delta:
            piece = {"type": "citations_delta", "citation": delta["citation"]}
        if not piece:
            return
        if index not in self._kinds:
            yield self._begin(index, {"type": kind})
        yield {"type": "content_block_delta", "index": index, "delta": piece}

    def _end(self, ending: str) -> Iterator[WireObject]:
        self._endings.add(ending)
        if len(self._endings) == len(("messageStop", "metadata")):
            yield {"type": "message_stop"}

    def _begin(self, index: int, block: WireObject) -> WireObject:
        self._kinds[index] = block["type"]
        return {"type": "content_block_start", "index": index, "content_block": block}


def _split_block(block: WireObject, number: int) -> Iterator[WireObject]:
    """Yield the events of one whole block."""
    place = {"contentBlockIndex": number}
    thought = read_object(block.get("reasoningContent"))
    text = read_object(thought.get("reasoningText"))
    if call := read_object(block.get("toolUse")):
        names = {name: call.get(name) for name in ("toolUseId", "name")}
        yield {"contentBlockStart": {**place, "start": {"toolUse": names}}}
        arguments = encode_json(call.get("input") or {}).decode()
        yield {"contentBlockDelta": {**place, "delta": {"toolUse": {"input": arguments}}}}
    elif text:
        for name in ("text", "signature"):
            if name in text:
                delta = {"reasoningContent": {name: text[name]}}
                yield {"contentBlockDelta": {**place, "delta": delta}}
    else:
        yield {"contentBlockDelta": {**place, "delta": block}}
    yield {"contentBlockStop": place}
