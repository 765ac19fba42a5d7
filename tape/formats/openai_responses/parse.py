"""Input items of the OpenAI Responses API → payloads: pure.

Items of the model next to each other are one answer; so are items of tools the provider runs
itself, which stay opaque in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import Assistant, Audio, Text, Thinking, ToolCall, ToolResult, User
from ..openai_chat.emit import AUDIO
from ..parsing import (
    CallBinder,
    add_outer_fields,
    build_tool_call,
    build_wire,
    collect_answered_ids,
    decode_elements,
    keep_whole_message,
    list_content,
    list_result_content,
    mark_api,
    take_string,
    to_custom_entry,
    to_file_block,
    to_file_block_from_url,
    to_opaque,
    to_opaque_or_unknown,
    to_plain_text,
    to_system_entry,
)
from ..wire import WireObject, drop_fields, encode_json
from .emit import API

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...model.entries import Block, Content, Payload
    from ..wire import Put

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_MESSAGE_FIELDS = ("id", "phase", "status")
_TEXTS = frozenset({"input_text", "output_text", "text"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def parse_array(array: bytes | str | Sequence[Any], put: Put) -> list[Payload]:
    """Return the payloads of an `input` array; `put` stores pictures and files.

    Raises ValueError if it is not a JSON array.
    """
    items = decode_elements(array)
    reading = _OpenAIResponsesReader(put, CallBinder(collect_answered_ids(items)))
    return [*reading.read_payloads(items)]


class _OpenAIResponsesReader:
    def __init__(self, put: Put, calls: CallBinder) -> None:
        self.put, self.calls = put, calls

    def read_payloads(self, items: list[Any]) -> Iterator[Payload]:
        run: list[WireObject] = []
        for item in items:
            if _is_model_item(item):
                run.append(item)
                continue
            yield from self._read_answer(run)
            run = []
            yield self._read_item(item)
        yield from self._read_answer(run)

    def _read_item(self, item: Any) -> Payload:
        match item:
            case {"type": "function_call_output" | "custom_tool_call_output"}:
                return self._read_result(item)
            case {"role": "user" | "system" | "developer" as role}:
                return self._read_message(item, role)
        return to_custom_entry(API, item)

    def _read_message(self, item: WireObject, role: str) -> Payload:
        content = list_content(item.get("content"))
        if "content" not in item:
            said = mark_api((to_opaque(item),), API)
        elif content is None:
            return to_custom_entry(API, item)
        else:
            kept = () if role == "system" else ("role",)
            outer = drop_fields(item, "content", "role") | {name: item[name] for name in kept}
            if role == "user":
                outer.pop("role")
            said = keep_whole_message(
                self._read_content(content, outer, _get_content_list_form(item["content"])),
                item,
                API,
            )
        return User(said) if role == "user" else to_system_entry(said)

    def _read_content(self, content: list[Any], outer: WireObject, form: str) -> Content:
        return mark_api(add_outer_fields(map(self._read_block, content), outer, form), API)

    def _read_result(self, item: WireObject) -> Payload:
        output = item.get("output")
        content = list_result_content(output)
        outer = drop_fields(item, "type", "output")
        provider_id, name = take_string(outer, "call_id"), item.get("name")
        call = self.calls.result(provider_id, name if isinstance(name, str) else None)
        if provider_id is not None and not call.is_known:
            outer["call_id"] = provider_id
        form = "string" if output == "" else _get_content_list_form(output)
        return ToolResult(call.id, call.name, self._read_content(content, outer, form))

    def _read_answer(self, run: list[WireObject]) -> Iterator[Assistant]:
        if not run:
            return
        self.calls.begin_answer(encode_json(run))
        blocks = tuple(block for item in run for block in self._read_item_blocks(item))
        called = any(isinstance(block, ToolCall) for block in blocks)
        yield Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")

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
            given = to_plain_text(item.get("input", ""))
            fields = drop_fields(item, "name", "input")
            return ToolCall(id=call, name=name, args_text=given, wire=build_wire(fields))
        return build_tool_call(
            call, name, item.get("arguments"), drop_fields(item, "type", "name", "arguments")
        )

    def _read_block(self, piece: Any) -> Block:
        match piece:
            case str():
                return Text(piece)
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
                sound = to_file_block(data, _MIMES.get(kind), self.put, {})
                return sound if isinstance(sound, Audio) and sound.mime in AUDIO else None
            case {"type": "input_file", "file_data": url}:
                rest, name = (
                    drop_fields(piece, "type", "file_data", "filename"),
                    piece.get("filename"),
                )
                return to_file_block_from_url(
                    url, self.put, rest, name if isinstance(name, str) else None
                )
        return None


def _get_content_list_form(content: Any) -> str:
    """Return how content is written where a string would do."""
    return "list" if isinstance(content, list) and len(content) == 1 else ""


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
        blocks, outer, "" if "id" in beside else _get_content_list_form(item.get("content"))
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
