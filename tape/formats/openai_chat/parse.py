"""Arrays of the OpenAI Chat Completions API → payloads: pure.

The older `function_call` and messages of role function are read as calls and results too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import Assistant, Audio, Text, Thinking, ToolCall, ToolResult, User
from ..parsing import (
    CallBinder,
    add_outer_fields,
    build_tool_call,
    build_wire,
    collect_answered_ids,
    decode_elements,
    get_content_form,
    keep_whole_message,
    list_content,
    list_result_content,
    mark_api,
    take_string,
    to_custom_entry,
    to_file_block,
    to_file_block_from_url,
    to_opaque_or_unknown,
    to_plain_text,
    to_system_entry,
)
from ..wire import WireObject, drop_fields, encode_json
from .emit import API, AUDIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...model.entries import Block, Content, Payload
    from ..wire import Put

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Names hosts give to the text of thinking."""

_KNOWN = frozenset({"text", "refusal"})
_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def parse_array(array: bytes | str | Sequence[Any], put: Put) -> list[Payload]:
    """Return the payloads of a `messages` array; `put` stores pictures and files.

    Raises ValueError if it is not a JSON array.
    """
    found = decode_elements(array)
    reading = _OpenAIChatReader(put, CallBinder(collect_answered_ids(found)))
    return [payload for element in found for payload in reading.read_payloads(element)]


class _OpenAIChatReader:
    def __init__(self, put: Put, calls: CallBinder) -> None:
        self.put, self.calls = put, calls

    def read_payloads(self, element: Any) -> Iterator[Payload]:
        message: WireObject = element if isinstance(element, dict) else {}
        content = list_content(message.get("content"))
        match message.get("role"):
            case "tool" | "function":
                yield self._read_result(message, list_result_content(message.get("content")))
            case _ if content is None:
                yield to_custom_entry(API, element)
            case "assistant":
                yield from self._read_answer(message, content)
            case "user":
                yield User(
                    self._read_message(message, content, drop_fields(message, "role", "content"))
                )
            case "system":
                said = self._read_message(message, content, drop_fields(message, "role", "content"))
                yield to_system_entry(said)
            case "developer":
                yield to_system_entry(
                    self._read_message(message, content, drop_fields(message, "content"))
                )
            case _:
                yield to_custom_entry(API, element)

    def _read_message(self, message: WireObject, content: list[Any], outer: WireObject) -> Content:
        said = self._read_content(content, outer, _get_message_list_form(message))
        return (
            keep_whole_message(said, message, API)
            if message.get("content") not in (None, [])
            else said
        )

    def _read_content(self, content: list[Any], outer: WireObject, form: str) -> Content:
        return mark_api(add_outer_fields(map(self._read_block, content), outer, form), API)

    def _read_result(self, message: WireObject, content: list[Any]) -> ToolResult:
        outer = drop_fields(message, "role", "content")
        provider_id, name = take_string(outer, "tool_call_id"), take_string(outer, "name")
        call = self.calls.result(provider_id, name)
        if provider_id is not None and not call.is_known:
            outer["tool_call_id"] = provider_id
        if name is not None and message["role"] == "tool":
            outer["name"] = name
        form = "string" if message.get("content") == "" else _get_message_list_form(message)
        return ToolResult(call.id, call.name, self._read_content(content, outer, form))

    def _read_answer(self, message: WireObject, content: list[Any]) -> Iterator[Payload]:
        self.calls.begin_answer(encode_json(message))
        rest = drop_fields(message, "role", "content")
        thoughts = _take_thinking(rest)
        said = [self._read_block(piece) for piece in content]
        if isinstance(refusal := rest.get("refusal"), str):
            said.append(Text(refusal, wire=build_wire({"refusal": True})))
        rest.pop("refusal", None)
        called, strange = self._take_calls(rest)
        form = get_content_form(message)
        if form == "null" or message.get("content"):  # the usual ways
            form = "list" if form == "list" else ""
        blocks = add_outer_fields([*thoughts, *said, *called], rest, form)
        if message.get("content") not in (None, []) and not rest:
            blocks = keep_whole_message(blocks, message, API)
        yield Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")
        yield from (to_custom_entry(API, piece) for piece in strange)

    def _take_calls(self, rest: WireObject) -> tuple[list[ToolCall], list[Any]]:
        """Remove the calls from the fields of a message; return them, and the other elements."""
        pieces = rest.pop("tool_calls", None) or []
        found = pieces if isinstance(pieces, list) else [pieces]
        if isinstance(rest.get("function_call"), dict):
            found = [*found, {"function": rest.pop("function_call")}]
        called = [(piece, self._read_call(piece)) for piece in found]
        strange = [piece for piece, call in called if call is None]
        return [call for _, call in called if call is not None], strange

    def _read_call(self, piece: Any) -> ToolCall | None:
        match piece:
            case {"function": {"name": str(name), **function}}:
                fields = drop_fields(piece, "type", "function")
                given = function.get("arguments")
            case {"type": "custom", "custom": {"name": str(name), "input": str(given)}}:
                fields = drop_fields(piece, "custom")
            case _:
                return None
        provider_id = fields.get("id")
        known = provider_id if isinstance(provider_id, str) else None
        call = self.calls.call(known, name)
        if fields.get("type") == "custom":
            return ToolCall(
                id=call, name=name, args_text=to_plain_text(given), wire=build_wire(fields)
            )
        return build_tool_call(call, name, given, fields)

    def _read_block(self, piece: Any) -> Block:
        match piece:
            case str():
                return Text(piece)
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
                sound = to_file_block(data, _MIMES.get(kind), self.put, {})
                return sound if isinstance(sound, Audio) and sound.mime in AUDIO else None
            case {"type": "file", "file": {"file_data": url}, **more} if not more:
                rest, name = (
                    drop_fields(piece["file"], "file_data", "filename"),
                    piece["file"].get("filename"),
                )
                return to_file_block_from_url(
                    url, self.put, rest, name if isinstance(name, str) else None
                )
        return None


def _get_message_list_form(message: WireObject) -> str:
    """Return how content is written where a string would do."""
    content = message.get("content")
    return "list" if isinstance(content, list) and len(content) == 1 else ""


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
