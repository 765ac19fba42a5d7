"""Arrays of the Anthropic Messages API → payloads: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...blocks import Document, Text, Thinking, ToolCall, Unknown
from ...entries import Assistant, ToolResult, User
from ..anthropic import API
from ..wire import WireObject, encoded, packed, without
from .binding import Calls
from .blocks import (
    custom,
    elements,
    file,
    instruction,
    listed,
    marked,
    piece_of,
    taken,
    tool_call,
    wire,
    with_outer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...blocks import Block, Content
    from ...entries import Payload
    from ..wire import Put


_ANSWERED = frozenset({"tool_use", "thinking", "redacted_thinking"})
"""Blocks that only an answer may hold."""
_KNOWN = frozenset({"text", "thinking", "tool_use", "tool_result"})
_SAID = frozenset({"tool_result"})
"""Blocks that no answer may hold."""


def parse(array: bytes | str | Sequence[Any], put: Put) -> list[Payload]:
    """Return the payloads of a `messages` array; `put` stores pictures and files.

    Raises ValueError when it is no JSON array.
    """
    reading = _Reading(put)
    return [payload for element in elements(array) for payload in reading.payloads(element)]


class _Reading:
    def __init__(self, put: Put) -> None:
        self.put, self.calls = put, Calls()

    def payloads(self, element: Any) -> Iterator[Payload]:
        message: WireObject = element if isinstance(element, dict) else {}
        content = listed(message.get("content"))
        outer = without(message, "role", "content")
        match message.get("role"):
            case _ if content is None:
                yield custom(API, element)
            case "assistant":
                yield self._answer(element, [p for p in content if _kind(p) not in _SAID], outer)
                yield from (custom(API, piece) for piece in content if _kind(piece) in _SAID)
            case "user":
                yield from self._said(content, outer)
            case "system" | "developer":
                yield instruction(self._content(content, outer))
            case _:
                yield custom(API, element)

    def _answer(self, element: WireObject, content: list[Any], outer: WireObject) -> Assistant:
        self.calls.begin_answer(encoded(element))
        blocks = with_outer(map(self._block, content), outer)
        called = any(isinstance(block, ToolCall) for block in blocks)
        return Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")

    def _said(self, content: list[Any], outer: WireObject) -> Iterator[Payload]:
        """Yield results and what a person said, in order; a message of nothing stays one."""
        run: list[Any] = []
        for piece in content:
            if _kind(piece) in _SAID:
                yield from [User(self._content(run, {}))] if run else []
                run = []
                yield self._result(piece)
            elif _kind(piece) in _ANSWERED:
                yield custom(API, piece)
            else:
                run.append(piece)
        if run or outer or not content:
            yield User(self._content(run, outer))

    def _content(self, content: list[Any], outer: WireObject) -> Content:
        return marked(with_outer(map(self._block, content), outer), API)

    def _result(self, piece: WireObject) -> Payload:
        content = listed(piece.get("content"))
        if content is None:
            return custom(API, piece)
        outer = without(piece, "type", "content")
        is_error = outer.get("is_error") is True
        if isinstance(outer.get("is_error"), bool | None):
            outer.pop("is_error", None)
        provider_id = taken(outer, "tool_use_id")
        call = self.calls.result(provider_id)
        if provider_id is not None and not call.is_known:
            outer["tool_use_id"] = provider_id
        return ToolResult(call.id, call.name, self._content(content, outer), is_error)

    def _block(self, piece: Any) -> Block:
        match piece:
            case str():
                return Text(piece)
            case {"type": "text", "text": str(text)}:
                return Text(text, wire=wire(without(piece, "type", "text")))
            case {"type": "thinking" | "redacted_thinking"}:
                return _thinking(piece)
            case {"type": "tool_use", "name": str(name)}:
                return self._call(piece, name)
            case {"type": "image" | "document", "source": {"type": "base64" | "text"}}:
                return self._file(piece) or Unknown(raw=packed(piece))
        return piece_of(piece, _KNOWN)

    def _call(self, piece: WireObject, name: str) -> ToolCall:
        provider_id = piece.get("id")
        call = self.calls.call(provider_id if isinstance(provider_id, str) else None, name)
        rest = without(piece, "type", "name", "input")
        return tool_call(call, name, piece.get("input"), rest)

    def _file(self, piece: WireObject) -> Block | None:
        source = piece["source"]
        rest = without(piece, "type", "source")
        name = taken(rest, "title") if piece["type"] == "document" else None
        data, mime = source.get("data"), source.get("media_type")
        if source.keys() != {"type", "data", "media_type"} or not isinstance(data, str):
            return None
        if source["type"] == "base64":
            return file(data, mime, self.put, rest, name)
        if mime != "text/plain":
            return None
        blob = self.put(data.encode())
        return Document(blob=blob, mime="text/plain", name=name, wire=wire(rest))


def _thinking(piece: WireObject) -> Block:
    match piece:
        case {"type": "thinking", "thinking": str(text)}:
            return Thinking(text, wire=wire(without(piece, "type", "thinking")))
        case {"type": "redacted_thinking"}:
            return Thinking("", redacted=True, wire=wire(without(piece, "type")))
    return piece_of(piece, _KNOWN)


def _kind(piece: Any) -> str:
    return str(piece.get("type", "")) if isinstance(piece, dict) else ""
