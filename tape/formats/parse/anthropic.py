"""Arrays of the Anthropic Messages API → payloads: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...blocks import Document, Text, Thinking, ToolCall, Unknown
from ...entries import Assistant, ToolResult, User
from ..anthropic import API
from ..wire import WireObject, encoded, packed, without
from .binding import Calls, answered_ids
from .blocks import (
    answered,
    custom,
    elements,
    file,
    form_of,
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
    found = elements(array)
    reading = _Reading(put, Calls(answered_ids(found)))
    return [payload for element in found for payload in reading.payloads(element)]


class _Reading:
    def __init__(self, put: Put, calls: Calls) -> None:
        self.put, self.calls = put, calls

    def payloads(self, element: Any) -> Iterator[Payload]:
        message: WireObject = element if isinstance(element, dict) else {}
        content = listed(message.get("content"))
        outer = without(message, "role", "content")
        form = "string" if form_of(message) == "string" else ""
        match message.get("role"):
            case _ if content is None:
                yield custom(API, element)
            case "assistant":
                said = [piece for piece in content if _kind(piece) not in _SAID]
                yield self._answer(message, said, outer, form)
                yield from (custom(API, piece) for piece in content if _kind(piece) in _SAID)
            case "user":
                yield from self._said(content, outer, form)
            case "system" | "developer":
                yield instruction(self._content(content, outer, form))
            case _:
                yield custom(API, element)

    def _answer(
        self, message: WireObject, content: list[Any], outer: WireObject, form: str
    ) -> Assistant:
        self.calls.begin_answer(encoded(message))
        blocks = with_outer(map(self._block, content), outer, form)
        called = any(isinstance(block, ToolCall) for block in blocks)
        return Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")

    def _said(self, content: list[Any], outer: WireObject, form: str) -> Iterator[Payload]:
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
            yield User(self._content(run, outer, form))

    def _content(self, content: list[Any], outer: WireObject, form: str = "") -> Content:
        return marked(with_outer(map(self._block, content), outer, form), API)

    def _result(self, piece: WireObject) -> Payload:
        content = answered(piece.get("content"))
        outer = without(piece, "type", "content")
        is_error = outer.get("is_error") is True
        if is_error:
            del outer["is_error"]
        form = form_of(piece)
        if form == "list" and content:  # the usual way
            form = ""
        provider_id = taken(outer, "tool_use_id")
        call = self.calls.result(provider_id)
        if provider_id is not None and not call.is_known:
            outer["tool_use_id"] = provider_id
        return ToolResult(call.id, call.name, self._content(content, outer, form), is_error)

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
