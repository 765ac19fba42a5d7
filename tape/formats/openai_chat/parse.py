"""Arrays of the OpenAI Chat Completions API → payloads: pure.

The older `function_call` and messages of role function are read as calls and results too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import Text, Thinking, ToolCall, ToolResult, User
from ..parsing import (
    ArrayReader,
    add_outer_fields,
    build_tool_call,
    build_wire,
    get_content_form,
    get_content_list_form,
    keep_whole_message,
    list_content,
    list_result_content,
    take_string,
    to_custom_entry,
    to_file_block_from_url,
    to_opaque_or_unknown,
    to_plain_text,
    to_sound_block,
    to_system_entry,
)
from ..wire import WireObject, drop_fields, encode_json
from .emit import API

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Block, Payload

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Names hosts give to the text of thinking."""

_KNOWN = frozenset({"text", "refusal"})


class OpenAIChatReader(ArrayReader):
    """Reads messages of the Chat Completions API."""

    api = API

    def read_element(self, element: Any) -> Iterator[Payload]:
        """Yield what one message gives."""
        message: WireObject = element if isinstance(element, dict) else {}
        content_value = message.get("content")
        content = list_content(content_value)
        match message.get("role"):
            case "tool" | "function":
                yield self._read_result(message, list_result_content(content_value))
            case _ if content is None:
                yield to_custom_entry(API, element)
            case "assistant":
                yield from self._read_answer(message, content)
            case "user" | "system" | "developer" as role:
                outer = drop_fields(message, "content")
                if role != "developer":
                    del outer["role"]
                blocks = self.read_content(content, outer, get_content_list_form(content_value))
                if content_value not in (None, []):
                    blocks = keep_whole_message(blocks, message, API)
                yield User(blocks) if role == "user" else to_system_entry(blocks)
            case _:
                yield to_custom_entry(API, element)

    def _read_result(self, message: WireObject, content: list[Any]) -> ToolResult:
        outer = drop_fields(message, "role", "content")
        name = take_string(outer, "name")
        call = self.match_result(outer, "tool_call_id", name)
        if name is not None and message["role"] == "tool":
            outer["name"] = name
        content_value = message.get("content")
        form = "string" if content_value == "" else get_content_list_form(content_value)
        return ToolResult(call.id, call.name, self.read_content(content, outer, form))

    def _read_answer(self, message: WireObject, content: list[Any]) -> Iterator[Payload]:
        self.calls.begin_answer(encode_json(message))
        rest = drop_fields(message, "role", "content")
        thoughts = _take_thinking(rest)
        blocks_said = [self.read_block(piece) for piece in content]
        if isinstance(refusal := rest.get("refusal"), str):
            blocks_said.append(Text(refusal, wire=build_wire({"refusal": True})))
        rest.pop("refusal", None)
        called, strange = self._take_calls(rest)
        form = get_content_form(message)
        if form == "null" or message.get("content"):  # the usual ways
            form = "list" if form == "list" else ""
        blocks = add_outer_fields([*thoughts, *blocks_said, *called], rest, form)
        if message.get("content") not in (None, []) and not rest:
            blocks = keep_whole_message(blocks, message, API)
        yield self.build_answer(blocks)
        yield from (to_custom_entry(API, piece) for piece in strange)

    def _take_calls(self, rest: WireObject) -> tuple[list[ToolCall], list[Any]]:
        """Remove the calls from the fields of a message; return them, and the other elements."""
        pieces = rest.pop("tool_calls", None) or []
        pieces_of_calls = pieces if isinstance(pieces, list) else [pieces]
        if isinstance(rest.get("function_call"), dict):
            pieces_of_calls = [*pieces_of_calls, {"function": rest.pop("function_call")}]
        called = [(piece, self._read_call(piece)) for piece in pieces_of_calls]
        strange = [piece for piece, call in called if call is None]
        return [call for _, call in called if call is not None], strange

    def _read_call(self, piece: Any) -> ToolCall | None:
        match piece:
            case {"function": {"name": str(name), **function}}:
                fields = drop_fields(piece, "type", "function")
                arguments = function.get("arguments")
            case {"type": "custom", "custom": {"name": str(name), "input": str(arguments)}}:
                fields = drop_fields(piece, "custom")
            case _:
                return None
        call = self.assign_call_id(fields.get("id"), name)
        if fields.get("type") == "custom":
            return ToolCall(
                id=call, name=name, args_text=to_plain_text(arguments), wire=build_wire(fields)
            )
        return build_tool_call(call, name, arguments, fields)

    def read_piece(self, piece: Any) -> Block:
        """Return a piece of content as a block."""
        match piece:
            case {"type": "text", "text": str(text)}:
                return Text(text, wire=build_wire(drop_fields(piece, "type", "text")))
            case {"type": "refusal", "refusal": str(text)}:
                return Text(text, wire=build_wire({"refusal": True}))
        return self._read_file(piece) or to_opaque_or_unknown(piece, _KNOWN)

    def _read_file(self, piece: Any) -> Block | None:
        match piece:
            case {"type": "image_url", "image_url": {"url": url}, **more} if not more:
                return to_file_block_from_url(url, self.put, drop_fields(piece["image_url"], "url"))
            case {"type": "input_audio", "input_audio": {"data": data, "format": str(kind)}}:
                return to_sound_block(data, kind, self.put)
            case {"type": "file", "file": {"file_data": url}, **more} if not more:
                rest = drop_fields(piece["file"], "file_data", "filename")
                return to_file_block_from_url(url, self.put, rest, piece["file"].get("filename"))
        return None


parse_array = OpenAIChatReader.parse
"""Return the payloads of an array: see `ArrayReader.parse`."""


def _take_thinking(rest: WireObject) -> list[Thinking]:
    """Remove thinking from the fields of a message: from the field with the most text."""
    named = [name for name in REASONING_FIELDS if isinstance(rest.get(name), str)]
    field = next((name for name in named if rest[name]), named[0] if named else None)
    fields: WireObject = {"field": field} if field else {}
    if isinstance(rest.get("reasoning_details"), list):
        fields["details"] = rest.pop("reasoning_details")
    if not fields:
        return []
    return [Thinking(rest.pop(field) if field else "", wire=build_wire(fields))]
