"""Contents of the Gemini API → payloads: pure. Names may be in camelCase or snake_case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...blocks import Text, Thinking, ToolCall, Unknown
from ...entries import Assistant, ToolResult, User
from ..gemini import API, BESIDE
from ..wire import WireObject, encoded, packed, without
from .binding import Calls, answered_ids
from .blocks import (
    custom,
    elements,
    file,
    instruction,
    kept_whole,
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

_CAMEL = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "thought_signature": "thoughtSignature",
    "inline_data": "inlineData",
    "mime_type": "mimeType",
}


def parse(array: bytes | str | Sequence[Any], put: Put) -> list[Payload]:
    """Return the payloads of a `contents` array; `put` stores pictures and files.

    Raises ValueError when it is no JSON array.
    """
    found = elements(array)
    reading = _Reading(put, Calls(answered_ids(found)))
    return [payload for element in found for payload in reading.payloads(element)]


class _Reading:
    def __init__(self, put: Put, calls: Calls) -> None:
        self.put, self.calls = put, calls

    def payloads(self, element: Any) -> Iterator[Payload]:
        turn: WireObject = element if isinstance(element, dict) else {}
        found = _listed(turn.get("parts"))
        parts = None if found is None else [_camel(part) for part in found]
        outer = without(turn, "role", "parts")
        match turn.get("role"):
            case _ if parts is None or not turn:
                yield custom(API, element)
            case "model":
                yield self._answer(turn, [part for part in parts if not _is_result(part)], outer)
                yield from (custom(API, part) for part in parts if _is_result(part))
            case "user" | "function" | None:
                yield from self._said(turn, parts, outer)
            case "system":
                yield instruction(self._content(parts, outer))
            case _:
                yield custom(API, element)

    def _answer(self, turn: WireObject, parts: list[Any], outer: WireObject) -> Assistant:
        self.calls.begin_answer(encoded(turn))
        blocks = with_outer(map(self._block, parts), outer)
        if parts:
            blocks = kept_whole(blocks, turn, API)
        called = any(isinstance(block, ToolCall) for block in blocks)
        return Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")

    def _said(self, turn: WireObject, parts: list[Any], outer: WireObject) -> Iterator[Payload]:
        """Yield results and what a person said, in order; a turn of nothing stays one."""
        run: list[Any] = []
        for part in parts:
            if _is_result(part):
                yield from [User(self._content(run, {}))] if run else []
                run = []
                yield self._result(part)
            elif isinstance(part, dict) and "functionCall" in part:
                yield custom(API, part)
            else:
                run.append(part)
        if run or outer or not parts:
            is_joined = any(map(_is_result, parts))
            said = self._content(run, outer, "joined" if is_joined else "")
            yield User(kept_whole(said, turn, API) if run and not is_joined else said)

    def _content(self, parts: list[Any], outer: WireObject, form: str = "") -> Content:
        return marked(with_outer(map(self._block, parts), outer, form), API)

    def _result(self, part: WireObject) -> Payload:
        given = part["functionResponse"]
        outer = without(given, "response")
        provider_id, name = taken(outer, "id"), taken(outer, "name")
        call = self.calls.result(provider_id, name)
        if provider_id is not None and not call.is_known:
            outer["id"] = provider_id
        if name is not None and name != call.name:
            outer["name"] = name
        text, is_error = _answered(given.get("response"))
        response = given.get("response")
        if not text:
            text = words(response) if text is None and response is not None else ""
            if isinstance(response, dict):
                outer["response"] = response
        files = outer.pop("parts") if isinstance(outer.get("parts"), list) else []
        beside = without(part, "functionResponse")
        if beside:
            outer[BESIDE] = beside
        blocks = [self._block(_camel(one)) for one in files]
        content = with_outer([Text(text), *blocks], outer)
        return ToolResult(call.id, call.name, marked(content, API), is_error)

    def _block(self, part: Any) -> Block:
        match part:
            case str():
                return Text(part)
            case {"functionCall": {"name": str(name)}}:
                function = part["functionCall"]
                provider_id = function.get("id")
                known = provider_id if isinstance(provider_id, str) else None
                rest = without(part, "functionCall") | without(function, "name", "args")
                call = tool_call(self.calls.call(known, name), name, function.get("args"), rest)
                (block,) = with_outer([call], {}, "" if "args" in function else "absent")
                return block
            case {"text": str(text), "thought": True}:
                return Thinking(text, wire=wire(without(part, "text")))
            case {"text": str(text)} if text.strip() or part.keys() == {"text"}:
                return Text(text, wire=wire(without(part, "text")))
            case {"inlineData": {"data": data, "mimeType": str(mime), **more}} if not more:
                rest = without(part, "inlineData")
                return file(data, mime, self.put, rest) or Unknown(raw=packed(part))
        return _piece(part)


def _listed(parts: Any) -> list[Any] | None:
    """Return parts as a list: null is nothing, one may stand alone; None for anything else."""
    if parts is None:
        return []
    if isinstance(parts, str | dict):
        return [parts]
    return parts if isinstance(parts, list) else None


def _is_result(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("functionResponse"), dict)


def _piece(part: Any) -> Block:
    """Return a part no other block can hold; an empty text may be there for its signature."""
    if isinstance(part, dict) and ("functionCall" in part or "text" in part):
        is_signature = part.get("text") == "" and "thoughtSignature" in part
        return opaque(part) if is_signature else Unknown(raw=packed(part))
    return piece_of(part, frozenset())


def _camel(part: Any) -> Any:
    """Return a part with the names of its fields as the API writes them."""
    if not isinstance(part, dict):
        return part
    named = _renamed(part)
    if isinstance(data := named.get("inlineData"), dict):
        named["inlineData"] = _renamed(data)
    return named


def _renamed(fields: WireObject) -> WireObject:
    camel = {name: _CAMEL.get(name, name) for name in fields}
    return {name if camel[name] in fields else camel[name]: fields[name] for name in fields}


def _answered(response: Any) -> tuple[str | None, bool]:
    """Return the words of a response and whether it is an error; None when it is no plain one."""
    match response:
        case {"output": str(text), **rest} if not rest:
            return text, False
        case {"error": str(text), **rest} if not rest:
            return text, True
    return None, isinstance(response, dict) and "error" in response
