"""Input items of the OpenAI Responses API → payloads: pure.

Items of the model next to each other are one answer; so are items of tools the provider runs
itself, which stay opaque in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import Assistant, Text, Thinking, ToolCall, ToolResult, User
from ..parsing import (
    ArrayReader,
    add_outer_fields,
    build_tool_call,
    build_wire,
    get_content_list_form,
    keep_whole_message,
    list_content,
    list_result_content,
    mark_api,
    to_custom_entry,
    to_file_block_from_url,
    to_opaque,
    to_opaque_or_unknown,
    to_plain_text,
    to_sound_block,
    to_system_entry,
)
from ..wire import WireObject, drop_fields, encode_json
from .emit import API

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Block, Content, Payload

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_MESSAGE_FIELDS = ("id", "phase", "status")
_TEXTS = frozenset({"input_text", "output_text", "text"})
_CALLS = frozenset({"function_call", "custom_tool_call"})


class OpenAIResponsesReader(ArrayReader):
    """Reads input items of the OpenAI Responses API."""

    api = API

    def read_payloads(self, elements: list[Any]) -> Iterator[Payload]:
        """Yield what the elements give, in order."""
        run: list[WireObject] = []
        for item in elements:
            if _is_model_item(item):
                run.append(item)
                continue
            yield from self._read_answer(run)
            run = []
            match item:
                case {"type": "function_call_output" | "custom_tool_call_output"}:
                    yield self._read_result(item)
                case {"role": "user" | "system" | "developer" as role}:
                    yield self._read_message(item, role)
                case _:
                    yield to_custom_entry(API, item)
        yield from self._read_answer(run)

    def _read_message(self, item: WireObject, role: str) -> Payload:
        content = list_content(item.get("content"))
        if "content" not in item:
            message_content = mark_api((to_opaque(item),), API)
        elif content is None:
            return to_custom_entry(API, item)
        else:
            kept_names = () if role == "system" else ("role",)
            outer = drop_fields(item, "content", "role") | {name: item[name] for name in kept_names}
            if role == "user":
                outer.pop("role")
            message_content = keep_whole_message(
                self.read_content(content, outer, get_content_list_form(item["content"])),
                item,
                API,
            )
        return User(message_content) if role == "user" else to_system_entry(message_content)

    def _read_result(self, item: WireObject) -> Payload:
        output = item.get("output")
        content = list_result_content(output)
        outer = drop_fields(item, "type", "output")
        name = item.get("name")
        call = self.match_result(outer, "call_id", name if isinstance(name, str) else None)
        form = "string" if output == "" else get_content_list_form(output)
        return ToolResult(call.id, call.name, self.read_content(content, outer, form))

    def _read_answer(self, run: list[WireObject]) -> Iterator[Assistant]:
        if not run:
            return
        self.calls.begin_answer(encode_json(run))
        blocks = tuple(block for item in run for block in self._read_item_blocks(item))
        yield self.build_answer(blocks)

    def _read_item_blocks(self, item: WireObject) -> Content:
        match item:
            case {"type": "reasoning"}:
                return (Thinking(_get_reasoning_text(item), wire=build_wire(item)),)
            case {"type": "function_call" | "custom_tool_call", "name": str(name)}:
                return (self._read_call(item, name),)
            case {"role": "assistant", "content": str() | list()}:
                return keep_whole_message(_read_answer_texts(item), item, API)
            case {"role": "assistant"}:
                return _read_answer_texts(item)
        return (to_opaque_or_unknown(item, _CALLS),)

    def _read_call(self, item: WireObject, name: str) -> ToolCall:
        is_custom = item["type"] == "custom_tool_call"
        known = item.get("call_id") if isinstance(item.get("call_id"), str) else None
        call = self.calls.call(known, name)
        if is_custom:
            text = to_plain_text(item.get("input", ""))
            fields = drop_fields(item, "name", "input")
            return ToolCall(id=call, name=name, args_text=text, wire=build_wire(fields))
        return build_tool_call(
            call, name, item.get("arguments"), drop_fields(item, "type", "name", "arguments")
        )

    def read_piece(self, piece: Any) -> Block:
        """Return a piece that is no string as a block."""
        match piece:
            case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
                return Text(text, wire=build_wire(drop_fields(piece, "type", "text")))
        return self._read_file(piece) or to_opaque_or_unknown(piece, _TEXTS)

    def _read_file(self, piece: Any) -> Block | None:
        match piece:
            case {"type": "input_image", "image_url": url}:
                rest = drop_fields(piece, "type", "image_url")
                if rest.get("detail") == "auto":
                    rest.pop("detail")
                return to_file_block_from_url(url, self.put, rest)
            case {"type": "input_audio", "input_audio": {"data": data, "format": str(kind)}}:
                return to_sound_block(data, kind, self.put)
            case {"type": "input_file", "file_data": url}:
                rest = drop_fields(piece, "type", "file_data", "filename")
                return to_file_block_from_url(url, self.put, rest, piece.get("filename"))
        return None


parse_array = OpenAIResponsesReader.parse
"""Return the payloads of an array: see `ArrayReader.parse`."""


def _is_model_item(item: Any) -> bool:
    """Return whether an item belongs to an answer: it is not of a person or a tool of ours."""
    if not isinstance(item, dict) or str(item.get("type")) in _OUTPUTS:
        return False
    if item.get("type", "message") == "message" or "role" in item:
        return item.get("role") == "assistant" and list_content(item.get("content")) is not None
    return isinstance(item["type"], str)


def _get_reasoning_text(item: WireObject) -> str:
    """Return the text of a reasoning item: its summary, or else its full text."""
    for pieces in (item.get("summary"), item.get("content")):
        texts = [
            piece["text"]
            for piece in (pieces if isinstance(pieces, list) else [])
            if isinstance(piece, dict) and isinstance(piece.get("text"), str)
        ]
        if texts:
            return "\n\n".join(texts)
    return ""


def _read_answer_texts(item: WireObject) -> Content:
    """Return the texts of a message; each names the message they were one of."""
    beside = {name: item[name] for name in _MESSAGE_FIELDS if item.get(name) is not None}
    outer = drop_fields(item, "role", "content", *_MESSAGE_FIELDS)
    blocks = [_read_answer_text(piece, beside) for piece in list_content(item.get("content")) or []]
    return add_outer_fields(
        blocks, outer, "" if "id" in beside else get_content_list_form(item.get("content"))
    )


def _read_answer_text(piece: Any, beside: WireObject) -> Block:
    match piece:
        case str():
            return Text(piece, wire=build_wire(beside))
        case {"type": "refusal", "refusal": str(text)}:
            return Text(text, wire=build_wire({**beside, "type": "refusal"}))
        case {"type": str(kind), "text": str(text)} if kind in _TEXTS:
            rest = drop_fields(piece, "type", "text", *_MESSAGE_FIELDS)
            if not rest.get("annotations"):
                rest.pop("annotations", None)
            return Text(text, wire=build_wire({**beside, **rest}))
    return Text(to_plain_text(piece), wire=build_wire(beside))
