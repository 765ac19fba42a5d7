"""Arrays of the Anthropic Messages API → payloads: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import (
    Assistant,
    Document,
    Text,
    Thinking,
    ToolResult,
    Unknown,
    User,
)
from ..parsing import (
    ArrayReader,
    add_outer_fields,
    build_tool_call,
    build_wire,
    get_content_form,
    list_content,
    list_result_content,
    take_string,
    to_custom_entry,
    to_file_block,
    to_opaque_or_unknown,
    to_system_entry,
)
from ..wire import WireObject, drop_fields, encode_json, pack_raw
from .emit import API

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Block, Payload


_ANSWER_ONLY = frozenset({"tool_use", "thinking", "redacted_thinking"})
"""Blocks that only an answer may hold."""
_KNOWN = frozenset({"text", "thinking", "tool_use", "tool_result"})
_RESULT_TYPES = frozenset({"tool_result"})
"""Blocks that no answer may hold."""


class AnthropicReader(ArrayReader):
    """Reads messages of the Anthropic Messages API."""

    api = API

    def read_element(self, element: Any) -> Iterator[Payload]:
        """Yield what one element gives."""
        message: WireObject = element if isinstance(element, dict) else {}
        content = list_content(message.get("content"))
        outer = drop_fields(message, "role", "content")
        form = "string" if get_content_form(message) == "string" else ""
        match message.get("role"):
            case _ if content is None:
                yield to_custom_entry(API, element)
            case "assistant":
                words = [piece for piece in content if _get_piece_type(piece) not in _RESULT_TYPES]
                yield self._read_answer(message, words, outer, form)
                yield from (
                    to_custom_entry(API, piece)
                    for piece in content
                    if _get_piece_type(piece) in _RESULT_TYPES
                )
            case "user":
                yield from self._read_user(content, outer, form)
            case "system" | "developer":
                yield to_system_entry(self.read_content(content, outer, form))
            case _:
                yield to_custom_entry(API, element)

    def _read_answer(
        self, message: WireObject, content: list[Any], outer: WireObject, form: str
    ) -> Assistant:
        self.calls.begin_answer(encode_json(message))
        blocks = add_outer_fields(map(self.read_block, content), outer, form)
        return self.build_answer(blocks)

    def _read_user(self, content: list[Any], outer: WireObject, form: str) -> Iterator[Payload]:
        """Yield results and user content, in order; an empty message stays a message."""
        run: list[Any] = []
        for piece in content:
            if _get_piece_type(piece) in _RESULT_TYPES:
                yield from [User(self.read_content(run, {}))] if run else []
                run = []
                yield self._read_result(piece)
            elif _get_piece_type(piece) in _ANSWER_ONLY:
                yield to_custom_entry(API, piece)
            else:
                run.append(piece)
        if run or outer or not content:
            yield User(self.read_content(run, outer, form))

    def _read_result(self, piece: WireObject) -> Payload:
        content = list_result_content(piece.get("content"))
        outer = drop_fields(piece, "type", "content")
        is_error = outer.get("is_error") is True
        if is_error:
            del outer["is_error"]
        form = get_content_form(piece)
        if form == "list" and content:  # the usual way
            form = ""
        call = self.match_result(outer, "tool_use_id")
        return ToolResult(call.id, call.name, self.read_content(content, outer, form), is_error)

    def read_piece(self, piece: Any) -> Block:
        """Return a piece that is no string as a block."""
        match piece:
            case {"type": "text", "text": str(text)}:
                return Text(text, wire=build_wire(drop_fields(piece, "type", "text")))
            case {"type": "thinking", "thinking": str(text)}:
                return Thinking(text, wire=build_wire(drop_fields(piece, "type", "thinking")))
            case {"type": "redacted_thinking"}:
                rest = drop_fields(piece, "type")
                return Thinking("", redacted=True, wire=build_wire(rest))
            case {"type": "tool_use", "name": str(name)}:
                rest = drop_fields(piece, "type", "name", "input")
                call = self.assign_call_id(piece.get("id"), name)
                return build_tool_call(call, name, piece.get("input"), rest)
            case {"type": "image" | "document", "source": {"type": "base64" | "text"}}:
                return self._read_file(piece) or Unknown(raw=pack_raw(piece))
        return to_opaque_or_unknown(piece, _KNOWN)

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


parse_array = AnthropicReader.parse
"""Return the payloads of an array: see `ArrayReader.parse`."""


def _get_piece_type(piece: Any) -> str:
    return str(piece.get("type", "")) if isinstance(piece, dict) else ""
