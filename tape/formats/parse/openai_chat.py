"""Arrays of the OpenAI Chat Completions API → payloads: pure.

The older `function_call` and messages of role function are read as calls and results too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...blocks import Audio, Text, Thinking, ToolCall
from ...entries import Assistant, ToolResult, User
from ..openai_chat import API, AUDIO
from ..wire import WireObject, encoded, without
from .binding import Calls, answered_ids
from .blocks import (
    answered,
    custom,
    elements,
    file,
    file_of_url,
    form_of,
    instruction,
    kept_whole,
    listed,
    marked,
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

REASONING = ("reasoning_content", "reasoning", "reasoning_text")
"""Names hosts give to the text of thinking."""

_KNOWN = frozenset({"text", "refusal"})
_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


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
        match message.get("role"):
            case "tool" | "function":
                yield self._result(message, answered(message.get("content")))
            case _ if content is None:
                yield custom(API, element)
            case "assistant":
                yield from self._answer(message, content)
            case "user":
                yield User(self._said(message, content, without(message, "role", "content")))
            case "system":
                said = self._said(message, content, without(message, "role", "content"))
                yield instruction(said)
            case "developer":
                yield instruction(self._said(message, content, without(message, "content")))
            case _:
                yield custom(API, element)

    def _said(self, message: WireObject, content: list[Any], outer: WireObject) -> Content:
        said = self._content(content, outer, _form(message))
        return kept_whole(said, message, API) if message.get("content") not in (None, []) else said

    def _content(self, content: list[Any], outer: WireObject, form: str) -> Content:
        return marked(with_outer(map(self._block, content), outer, form), API)

    def _result(self, message: WireObject, content: list[Any]) -> ToolResult:
        outer = without(message, "role", "content")
        provider_id, name = taken(outer, "tool_call_id"), taken(outer, "name")
        call = self.calls.result(provider_id, name)
        if provider_id is not None and not call.is_known:
            outer["tool_call_id"] = provider_id
        if name is not None and message["role"] == "tool":
            outer["name"] = name
        form = "string" if message.get("content") == "" else _form(message)
        return ToolResult(call.id, call.name, self._content(content, outer, form))

    def _answer(self, message: WireObject, content: list[Any]) -> Iterator[Payload]:
        self.calls.begin_answer(encoded(message))
        rest = without(message, "role", "content")
        thoughts = _thoughts(rest)
        said = [self._block(piece) for piece in content]
        if isinstance(refusal := rest.get("refusal"), str):
            said.append(Text(refusal, wire=wire({"refusal": True})))
        rest.pop("refusal", None)
        called, strange = self._called(rest)
        form = form_of(message)
        if form == "null" or message.get("content"):  # the usual ways
            form = "list" if form == "list" else ""
        blocks = with_outer([*thoughts, *said, *called], rest, form)
        if message.get("content") not in (None, []) and not rest:
            blocks = kept_whole(blocks, message, API)
        yield Assistant(blocks, api=API, stop_reason="tool_calls" if called else "stop")
        yield from (custom(API, piece) for piece in strange)

    def _called(self, rest: WireObject) -> tuple[list[ToolCall], list[Any]]:
        """Take the calls out of the fields of a message; return them, and what is no call."""
        pieces = rest.pop("tool_calls", None) or []
        found = pieces if isinstance(pieces, list) else [pieces]
        if isinstance(rest.get("function_call"), dict):
            found = [*found, {"function": rest.pop("function_call")}]
        called = [(piece, self._call(piece)) for piece in found]
        strange = [piece for piece, call in called if call is None]
        return [call for _, call in called if call is not None], strange

    def _call(self, piece: Any) -> ToolCall | None:
        match piece:
            case {"function": {"name": str(name), **function}}:
                fields = without(piece, "type", "function")
                given = function.get("arguments")
            case {"type": "custom", "custom": {"name": str(name), "input": str(given)}}:
                fields = without(piece, "custom")
            case _:
                return None
        provider_id = fields.get("id")
        known = provider_id if isinstance(provider_id, str) else None
        call = self.calls.call(known, name)
        if fields.get("type") == "custom":
            return ToolCall(id=call, name=name, args_text=words(given), wire=wire(fields))
        return tool_call(call, name, given, fields)

    def _block(self, piece: Any) -> Block:
        match piece:
            case str():
                return Text(piece)
            case {"type": "text", "text": str(text)}:
                return Text(text, wire=wire(without(piece, "type", "text")))
            case {"type": "refusal", "refusal": str(text)}:
                return Text(text, wire=wire({"refusal": True}))
        return self._file(piece) or piece_of(piece, _KNOWN)

    def _file(self, piece: Any) -> Block | None:
        match piece:
            case {"type": "image_url", "image_url": {"url": url}, **more} if not more:
                return file_of_url(url, self.put, without(piece["image_url"], "url"))
            case {"type": "input_audio", "input_audio": {"data": data, "format": str(kind)}}:
                sound = file(data, _MIMES.get(kind), self.put, {})
                return sound if isinstance(sound, Audio) and sound.mime in AUDIO else None
            case {"type": "file", "file": {"file_data": url}, **more} if not more:
                rest, name = (
                    without(piece["file"], "file_data", "filename"),
                    piece["file"].get("filename"),
                )
                return file_of_url(url, self.put, rest, name if isinstance(name, str) else None)
        return None


def _form(message: WireObject) -> str:
    """Return how content is written where a string would do."""
    content = message.get("content")
    return "list" if isinstance(content, list) and len(content) == 1 else ""


def _thoughts(rest: WireObject) -> list[Thinking]:
    """Take thinking out of the fields of a message: under the name that says most."""
    named = [name for name in REASONING if isinstance(rest.get(name), str)]
    field = next((name for name in named if rest[name]), named[0] if named else None)
    fields: WireObject = {"field": field} if field else {}
    if isinstance(rest.get("reasoning_details"), list):
        fields["details"] = rest.pop("reasoning_details")
    if not fields:
        return []
    return [Thinking(rest.pop(field) if field else "", wire=wire(fields))]
