"""Arrays of the Anthropic Messages API → payloads: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import (
    Assistant,
    Document,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    User,
)
from ..parsing import (
    CallBinder,
    add_outer_fields,
    build_tool_call,
    build_wire,
    collect_answered_ids,
    decode_elements,
    get_content_form,
    list_content,
    list_result_content,
    mark_api,
    take_string,
    to_custom_entry,
    to_file_block,
    to_opaque_or_unknown,
    to_system_entry,
)
from ..wire import WireObject, drop_fields, encode_json, pack_raw
from .emit import API

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...model.entries import Block, Content, Payload
    from ..wire import Put


_ANSWER_ONLY = frozenset({"tool_use", "thinking", "redacted_thinking"})
"""Blocks that only an answer may hold."""
_KNOWN = frozenset({"text", "thinking", "tool_use", "tool_result"})
_RESULT_TYPES = frozenset({"tool_result"})
"""Blocks that no answer may hold."""


def parse_array(array: bytes | str | Sequence[Any], put: Put) -> list[Payload]:
    """Return the payloads of a `messages` array; `put` stores pictures and files.

    Raises ValueError if it is not a JSON array.
    """
    found = decode_elements(array)
    reading = _AnthropicReader(put, CallBinder(collect_answered_ids(found)))
    return [payload for element in found for payload in reading.read_payloads(element)]


class _AnthropicReader:
    def __init__(self, put: Put, calls: CallBinder) -> None:
        self.put, self.calls = put, calls

    def read_payloads(self, element: Any) -> Iterator[Payload]:
        message: WireObject = element if isinstance(element, dict) else {}
        content = list_content(message.get("content"))
        outer = drop_fields(message, "role", "content")
        form = "string" if get_content_form(message) == "string" else ""
        match message.get("role"):
            case _ if content is None:
                yield to_custom_entry(API, element)
            case "assistant":
                said = [piece for piece in content if _get_piece_type(piece) not in _RESULT_TYPES]
                yield self._read_answer(message, said, outer, form)
                yield from (
                    to_custom_entry(API, piece)
                    for piece in content
                    if _get_piece_type(piece) in _RESULT_TYPES
                )
            case "user":
                yield from self._read_user(content, outer, form)
            case "system" | "developer":
                yield to_system_entry(self._read_content(content, outer, form))
            case _:
                yield to_custom_entry(API, element)

    def _read_answer(
        self, message: WireObject, content: list[Any], outer: WireObject, form: str
    ) -> Assistant:
        self.calls.begin_answer(encode_json(message))
        blocks = add_outer_fields(map(self._read_block, content), outer, form)
        called = any(isinstance(block, ToolCall) for block in blocks)
        return Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")

    def _read_user(self, content: list[Any], outer: WireObject, form: str) -> Iterator[Payload]:
        """Yield results and user content, in order; an empty message stays a message."""
        run: list[Any] = []
        for piece in content:
            if _get_piece_type(piece) in _RESULT_TYPES:
                yield from [User(self._read_content(run, {}))] if run else []
                run = []
                yield self._read_result(piece)
            elif _get_piece_type(piece) in _ANSWER_ONLY:
                yield to_custom_entry(API, piece)
            else:
                run.append(piece)
        if run or outer or not content:
            yield User(self._read_content(run, outer, form))

    def _read_content(self, content: list[Any], outer: WireObject, form: str = "") -> Content:
        return mark_api(add_outer_fields(map(self._read_block, content), outer, form), API)

    def _read_result(self, piece: WireObject) -> Payload:
        content = list_result_content(piece.get("content"))
        outer = drop_fields(piece, "type", "content")
        is_error = outer.get("is_error") is True
        if is_error:
            del outer["is_error"]
        form = get_content_form(piece)
        if form == "list" and content:  # the usual way
            form = ""
        provider_id = take_string(outer, "tool_use_id")
        call = self.calls.result(provider_id)
        if provider_id is not None and not call.is_known:
            outer["tool_use_id"] = provider_id
        return ToolResult(call.id, call.name, self._read_content(content, outer, form), is_error)

    def _read_block(self, piece: Any) -> Block:
        match piece:
            case str():
                return Text(piece)
            case {"type": "text", "text": str(text)}:
                return Text(text, wire=build_wire(drop_fields(piece, "type", "text")))
            case {"type": "thinking" | "redacted_thinking"}:
                return _read_thinking(piece)
            case {"type": "tool_use", "name": str(name)}:
                return self._read_call(piece, name)
            case {"type": "image" | "document", "source": {"type": "base64" | "text"}}:
                return self._read_file(piece) or Unknown(raw=pack_raw(piece))
        return to_opaque_or_unknown(piece, _KNOWN)

    def _read_call(self, piece: WireObject, name: str) -> ToolCall:
        provider_id = piece.get("id")
        call = self.calls.call(provider_id if isinstance(provider_id, str) else None, name)
        rest = drop_fields(piece, "type", "name", "input")
        return build_tool_call(call, name, piece.get("input"), rest)

    def _read_file(self, piece: WireObject) -> Block | None:
        source = piece["source"]
        rest = drop_fields(piece, "type", "source")
        name = take_string(rest, "title") if piece["type"] == "document" else None
        data, mime = source.get("data"), source.get("media_type")
        if source.keys() != {"type", "data", "media_type"} or not isinstance(data, str):
            return None
        if source["type"] == "base64":
            return to_file_block(data, mime, self.put, rest, name)
        if mime != "text/plain":
            return None
        blob = self.put(data.encode())
        return Document(blob=blob, mime="text/plain", name=name, wire=build_wire(rest))


def _read_thinking(piece: WireObject) -> Block:
    match piece:
        case {"type": "thinking", "thinking": str(text)}:
            return Thinking(text, wire=build_wire(drop_fields(piece, "type", "thinking")))
        case {"type": "redacted_thinking"}:
            return Thinking("", redacted=True, wire=build_wire(drop_fields(piece, "type")))
    return to_opaque_or_unknown(piece, _KNOWN)


def _get_piece_type(piece: Any) -> str:
    return str(piece.get("type", "")) if isinstance(piece, dict) else ""
