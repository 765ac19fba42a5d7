"""Contents of the Gemini API → payloads: pure. Names may be in camelCase or snake_case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import Assistant, Text, Thinking, ToolResult, Unknown, User
from ..parsing import (
    ArrayReader,
    add_outer_fields,
    build_tool_call,
    build_wire,
    keep_whole_message,
    mark_api,
    take_string,
    to_custom_entry,
    to_file_block,
    to_opaque,
    to_opaque_or_unknown,
    to_plain_text,
    to_system_entry,
)
from ..wire import WireObject, drop_fields, encode_json, pack_raw
from .emit import API, BESIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Block, Payload

_CAMEL_NAMES = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "thought_signature": "thoughtSignature",
    "inline_data": "inlineData",
    "mime_type": "mimeType",
}


class GeminiReader(ArrayReader):
    """Reads contents of the Gemini API."""

    api = API

    def read_element(self, element: Any) -> Iterator[Payload]:
        """Yield what one element gives."""
        turn: WireObject = element if isinstance(element, dict) else {}
        turn_parts = turn.get("parts")
        if turn_parts is None:
            turn_parts = []
        elif isinstance(turn_parts, str | dict):  # one may be without its list
            turn_parts = [turn_parts]
        parts = (
            [_to_camel_case(part) for part in turn_parts] if isinstance(turn_parts, list) else None
        )
        outer = drop_fields(turn, "role", "parts")
        match turn.get("role"):
            case _ if parts is None or not turn:
                yield to_custom_entry(API, element)
            case "model":
                yield self._read_answer(
                    turn, [part for part in parts if not _is_function_response(part)], outer
                )
                yield from (
                    to_custom_entry(API, part) for part in parts if _is_function_response(part)
                )
            case "user" | "function" | None:
                yield from self._read_user(turn, parts, outer)
            case "system":
                yield to_system_entry(self.read_content(parts, outer))
            case _:
                yield to_custom_entry(API, element)

    def _read_answer(self, turn: WireObject, parts: list[Any], outer: WireObject) -> Assistant:
        self.calls.begin_answer(encode_json(turn))
        blocks = add_outer_fields(map(self.read_block, parts), outer)
        if parts:
            blocks = keep_whole_message(blocks, turn, API)
        return self.build_answer(blocks)

    def _read_user(
        self, turn: WireObject, parts: list[Any], outer: WireObject
    ) -> Iterator[Payload]:
        """Yield results and user content, in order; an empty turn stays a turn."""
        run: list[Any] = []
        for part in parts:
            if _is_function_response(part):
                yield from [User(self.read_content(run, {}))] if run else []
                run = []
                yield self._read_result(part)
            elif isinstance(part, dict) and "functionCall" in part:
                yield to_custom_entry(API, part)
            else:
                run.append(part)
        if run or outer or not parts:
            is_joined = any(map(_is_function_response, parts))
            content = self.read_content(run, outer, "joined" if is_joined else "")
            yield User(keep_whole_message(content, turn, API) if run and not is_joined else content)

    def _read_result(self, part: WireObject) -> Payload:
        response_fields = part["functionResponse"]
        outer = drop_fields(response_fields, "response")
        name = take_string(outer, "name")
        call = self.match_result(outer, "id", name)
        if name is not None and name != call.name:
            outer["name"] = name
        text, is_error = _get_response_text(response_fields.get("response"))
        response = response_fields.get("response")
        if not text:
            text = to_plain_text(response) if text is None and response is not None else ""
            if isinstance(response, dict):
                outer["response"] = response
        files = outer.pop("parts") if isinstance(outer.get("parts"), list) else []
        beside = drop_fields(part, "functionResponse")
        if beside:
            outer[BESIDE] = beside
        blocks = [self.read_block(_to_camel_case(file)) for file in files]
        content = add_outer_fields([Text(text), *blocks], outer)
        return ToolResult(call.id, call.name, mark_api(content, API), is_error)

    def read_piece(self, part: Any) -> Block:
        """Return a piece that is no string as a block."""
        match part:
            case {"functionCall": {"name": str(name)}}:
                function = part["functionCall"]
                rest = drop_fields(part, "functionCall") | drop_fields(function, "name", "args")
                call_id = self.assign_call_id(function.get("id"), name)
                call = build_tool_call(call_id, name, function.get("args"), rest)
                (block,) = add_outer_fields([call], {}, "" if "args" in function else "absent")
                return block
            case {"text": str(text), "thought": True}:
                return Thinking(text, wire=build_wire(drop_fields(part, "text")))
            case {"text": str(text)} if text.strip() or part.keys() == {"text"}:
                return Text(text, wire=build_wire(drop_fields(part, "text")))
            case {"inlineData": {"data": data, "mimeType": str(mime), **more}} if not more:
                rest = drop_fields(part, "inlineData")
                return to_file_block(data, mime, self.put, rest) or Unknown(raw=pack_raw(part))
            case {"functionCall": _} | {"text": _}:  # an empty text may carry a signature
                is_signature = part.get("text") == "" and "thoughtSignature" in part
                return to_opaque(part) if is_signature else Unknown(raw=pack_raw(part))
        return to_opaque_or_unknown(part, frozenset())


parse_array = GeminiReader.parse
"""Return the payloads of an array: see `ArrayReader.parse`."""


def _is_function_response(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("functionResponse"), dict)


def _to_camel_case(part: Any) -> Any:
    """Return a part with the names of its fields as the API writes them."""
    if not isinstance(part, dict):
        return part
    named = _rename_fields(part)
    if isinstance(data := named.get("inlineData"), dict):
        named["inlineData"] = _rename_fields(data)
    return named


def _rename_fields(fields: WireObject) -> WireObject:
    camel = {name: _CAMEL_NAMES.get(name, name) for name in fields}
    return {name if camel[name] in fields else camel[name]: fields[name] for name in fields}


def _get_response_text(response: Any) -> tuple[str | None, bool]:
    """Return the words of a response and whether it is an error; None when it is no plain one."""
    match response:
        case {"output": str(text), **rest} if not rest:
            return text, False
        case {"error": str(text), **rest} if not rest:
            return text, True
    return None, isinstance(response, dict) and "error" in response
