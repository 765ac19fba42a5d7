"""Input items of the OpenAI Responses API → payloads: pure.

Items of the model next to each other are one answer; so are items of tools the provider runs
itself, which stay opaque in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...blocks import Audio, Text, Thinking, ToolCall
from ...entries import Assistant, ToolResult, User
from ..openai_chat import AUDIO
from ..openai_responses import API
from ..wire import WireObject, encoded, without
from .binding import Calls, answered_ids
from .blocks import (
    answered,
    custom,
    elements,
    file,
    file_of_url,
    instruction,
    kept_whole,
    listed,
    marked,
    opaque,
    piece_of,
    taken,
    tool_call,
    wire,
    with_outer,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...blocks import Block, Content
    from ...entries import Payload
    from ..wire import Put

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_MESSAGE_FIELDS = ("id", "phase", "status")
_TEXTS = frozenset({"input_text", "output_text", "text"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def parse(array: bytes | str | Sequence[Any], put: Put) -> list[Payload]:
    """Return the payloads of an `input` array; `put` stores pictures and files.

    Raises ValueError when it is no JSON array.
    """
    items = elements(array)
    reading = _Reading(put, Calls(answered_ids(items)))
    return [*reading.payloads(items)]


class _Reading:
    def __init__(self, put: Put, calls: Calls) -> None:
        self.put, self.calls = put, calls

    def payloads(self, items: list[Any]) -> Iterator[Payload]:
        run: list[WireObject] = []
        for item in items:
            if _is_of_model(item):
                run.append(item)
                continue
            yield from self._answer(run)
            run = []
            yield self._payload(item)
        yield from self._answer(run)

    def _payload(self, item: Any) -> Payload:
        match item:
            case {"type": "function_call_output" | "custom_tool_call_output"}:
                return self._result(item)
            case {"role": "user" | "system" | "developer" as role}:
                return self._said(item, role)
        return custom(API, item)

    def _said(self, item: WireObject, role: str) -> Payload:
        content = listed(item.get("content"))
        if "content" not in item:
            said = marked((opaque(item),), API)
        elif content is None:
            return custom(API, item)
        else:
            kept = () if role == "system" else ("role",)
            outer = without(item, "content", "role") | {name: item[name] for name in kept}
            if role == "user":
                outer.pop("role")
            said = kept_whole(self._content(content, outer, _form(item["content"])), item, API)
        return User(said) if role == "user" else instruction(said)

    def _content(self, content: list[Any], outer: WireObject, form: str) -> Content:
        return marked(with_outer(map(self._block, content), outer, form), API)

    def _result(self, item: WireObject) -> Payload:
        output = item.get("output")
        content = answered(output)
        outer = without(item, "type", "output")
        provider_id, name = taken(outer, "call_id"), item.get("name")
        call = self.calls.result(provider_id, name if isinstance(name, str) else None)
        if provider_id is not None and not call.is_known:
            outer["call_id"] = provider_id
        form = "string" if output == "" else _form(output)
        return ToolResult(call.id, call.name, self._content(content, outer, form))

    def _answer(self, run: list[WireObject]) -> Iterator[Assistant]:
        if not run:
            return
        self.calls.begin_answer(encoded(run))
        blocks = tuple(block for item in run for block in self._blocks(item))
        called = any(isinstance(block, ToolCall) for block in blocks)
        yield Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")

    def _blocks(self, item: WireObject) -> Content:
        match item:
            case {"type": "reasoning"}:
                return (Thinking(_thought(item), wire=wire(item)),)
            case {"type": "function_call" | "custom_tool_call", "name": str(name)}:
                return (self._call(item, name),)
            case {"role": "assistant", "content": str() | list()}:
                return kept_whole(_message(item), item, API)
            case {"role": "assistant"}:
                return _message(item)
        return (piece_of(item, _CALLS),)

    def _call(self, item: WireObject, name: str) -> ToolCall:
        is_custom = item["type"] == "custom_tool_call"
        known = item.get("call_id") if isinstance(item.get("call_id"), str) else None
        call = self.calls.call(known, name)
        if is_custom:
            given = words(item.get("input", ""))
            fields = without(item, "name", "input")
            return ToolCall(id=call, name=name, args_text=given, wire=wire(fields))
        return tool_call(
            call, name, item.get("arguments"), without(item, "type", "name", "arguments")
        )

    def _block(self, piece: Any) -> Block:
        match piece:
            case str():
                return Text(piece)
            case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
                return Text(text, wire=wire(without(piece, "type", "text")))
        return self._file(piece) or piece_of(piece, _TEXTS)

    def _file(self, piece: Any) -> Block | None:
        match piece:
            case {"type": "input_image", "image_url": url}:
                rest = without(piece, "type", "image_url")
                if rest.get("detail") == "auto":
                    rest.pop("detail")
                return file_of_url(url, self.put, rest)
            case {"type": "input_audio", "input_audio": {"data": data, "format": str(kind)}}:
                sound = file(data, _MIMES.get(kind), self.put, {})
                return sound if isinstance(sound, Audio) and sound.mime in AUDIO else None
            case {"type": "input_file", "file_data": url}:
                rest, name = without(piece, "type", "file_data", "filename"), piece.get("filename")
                return file_of_url(url, self.put, rest, name if isinstance(name, str) else None)
        return None


def _form(content: Any) -> str:
    """Return how content is written where a string would do."""
    return "list" if isinstance(content, list) and len(content) == 1 else ""


def _is_of_model(item: Any) -> bool:
    """Tell whether an item belongs to an answer: what no person and no tool of ours said does."""
    if not isinstance(item, dict) or str(item.get("type")) in _OUTPUTS:
        return False
    if item.get("type", "message") == "message" or "role" in item:
        return item.get("role") == "assistant" and listed(item.get("content")) is not None
    return isinstance(item["type"], str)


def _thought(item: WireObject) -> str:
    """Return the words of a reasoning item: its summary, or else what it says in full."""
    for pieces in (item.get("summary"), item.get("content")):
        texts = [
            piece["text"]
            for piece in (pieces if isinstance(pieces, list) else [])
            if isinstance(piece, dict) and isinstance(piece.get("text"), str)
        ]
        if texts:
            return "\n\n".join(texts)
    return ""


def _message(item: WireObject) -> Content:
    """Return the texts of a message; each names the message they were one of."""
    beside = {name: item[name] for name in _MESSAGE_FIELDS if item.get(name) is not None}
    outer = without(item, "role", "content", *_MESSAGE_FIELDS)
    blocks = [_said_by_model(piece, beside) for piece in listed(item.get("content")) or []]
    return with_outer(blocks, outer, "" if "id" in beside else _form(item.get("content")))


def _said_by_model(piece: Any, beside: WireObject) -> Block:
    match piece:
        case str():
            return Text(piece, wire=wire(beside))
        case {"type": "refusal", "refusal": str(text)}:
            return Text(text, wire=wire({**beside, "type": "refusal"}))
        case {"type": str(kind), "text": str(text)} if kind in _TEXTS:
            rest = without(piece, "type", "text", *_MESSAGE_FIELDS)
            if not rest.get("annotations"):
                rest.pop("annotations", None)
            return Text(text, wire=wire({**beside, **rest}))
    return Text(words(piece), wire=wire(beside))
