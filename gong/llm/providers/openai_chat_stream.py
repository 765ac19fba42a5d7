"""Chunks of the Chat Completions stream to our events: pure, one decoder for each answer.

Written for what compatible hosts really send: choices left out or null, usage last or inside a
choice, calls without index or id, ids sent again, thinking under three names, text in parts.
Calls end with the answer, because their pieces may come in any order. Unknown fields are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tape.blocks import NO_JSON
from tape.formats.parse.openai_chat import REASONING
from tape.formats.wire import decoded, encoded, packed

from ...errors import ServerError
from ..types import (
    Failed,
    Finish,
    OpaqueBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StopReason,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from .openai_details import gather, id_of
from .openai_usage import chat_usage
from .values import wire_object, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from tape.entries import Usage

    from ...errors import ModelError
    from .failures import Failures
    from .values import WireObject

DONE = b"[DONE]"
_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "end": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_FAILURES = frozenset({"error", "insufficient_system_resource"})
_THINKING = frozenset({*REASONING, "reasoning_details"})
_CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom"})


@dataclass(slots=True)
class _Prose:
    """A block of words that has begun and goes on while nothing else comes."""

    index: int
    kind: Literal["text", "refusal", "thinking"]
    field: str = ""
    """Name its host gives to thinking."""
    is_empty: bool = True


@dataclass(slots=True)
class _Call:
    """A tool call on its way; `index` is None until its name is known."""

    id: str
    kind: str = "function"
    index: int | None = None
    extra: WireObject = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Arguments that came before the name."""


class StreamDecoder:
    """Turns the data of the stream's events into ours, keeping usage and stop reason."""

    def __init__(self, failures: Failures) -> None:
        self.finished = False
        self._failures = failures
        self._started = False
        self._stop: str | None = None
        self._counts: WireObject = {}
        self._blocks = 0
        self._prose: _Prose | None = None
        self._thought_fields: set[str] = set()
        self._details: list[Any] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield what one event says.

        Raises the error an event tells of, StreamError for an event that makes no sense.
        """
        if data.strip() == DONE:
            self.finished = self._started
            return
        try:
            chunk = decoded(data) if data.strip() else {}
            if isinstance(chunk, dict):
                yield from self._chunk(chunk)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise self._failures.wrong(f"sent a malformed event: {error!r}") from error

    def ending(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of a stream that stopped with `error` before it was finished.

        An answer that had said why it stopped is whole all the same.
        """
        if self._stop is None or self._stop in _FAILURES:
            yield Failed(error, self.usage())
        else:
            yield from self.finish()

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the ends of what is open, and of the answer."""
        if self._stop in _FAILURES:
            why = f"{self._failures.provider} stopped its answer: {self._stop}"
            yield Failed(ServerError(why, provider=self._failures.provider), self.usage())
            return
        of_calls = {call.id for call in self._calls if call.id}
        late = [one for one in self._details if id_of(one) in of_calls]
        self._details = [one for one in self._details if one not in late]
        yield from self._close()
        if self._details:
            yield from self._think("", "")
            yield from self._close()
        for call in self._calls:
            if call.index is not None:
                yield ToolCallEnd(call.index, _call_wire(call, late))
        yield Finish(self._stop_reason(), self.usage(), self._stop)

    def usage(self) -> Usage:
        """Return the tokens counted so far."""
        return chat_usage(self._counts)

    def _stop_reason(self) -> StopReason:
        reason = _STOPS.get(self._stop or "", "stop")
        called = any(call.index is not None for call in self._calls)
        return "tool_calls" if called and reason == "stop" else reason

    def _chunk(self, chunk: WireObject) -> Iterator[StreamEvent]:
        choices = chunk.get("choices") or []
        self._count(chunk.get("usage") or wire_object(chunk.get("x_groq")).get("usage"))
        if not self._started and (choices or chunk.get("model") or chunk.get("id")):
            self._started = True
            yield StreamStart(words(chunk.get("model")), words(chunk.get("id")) or None)
        for choice in choices:
            if choice is not None and not choice.get("index"):
                self._count(choice.get("usage"))
                yield from self._delta(choice.get("delta") or choice.get("message") or {})
                self._stop = words(choice.get("finish_reason")) or self._stop
        if error := chunk.get("error"):
            raise self._failures.told(error)

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._counts = usage

    def _delta(self, delta: WireObject) -> Iterator[StreamEvent]:
        if not _THINKING.isdisjoint(delta):
            yield from self._thinking(delta)
        content = delta.get("content")
        if isinstance(content, list):
            for part in content:
                yield from self._part(part)
        elif content:
            yield from self._write("text", words(content))
        if refusal := delta.get("refusal"):
            yield from self._write("refusal", words(refusal))
        pieces = delta.get("tool_calls") or ()
        for piece in [pieces] if isinstance(pieces, dict) else pieces:
            if piece is not None:
                yield from self._call_piece(piece)
        if function := delta.get("function_call"):
            yield from self._call_piece({"index": 0, "function": function})

    def _part(self, part: Any) -> Iterator[StreamEvent]:
        match part:
            case str():
                yield from self._write("text", part)
            case {"type": "text", "text": text}:
                yield from self._write("text", words(text))
            case {"type": "thinking", "thinking": pieces}:
                texts = [pieces] if isinstance(pieces, str) else [one["text"] for one in pieces]
                yield from self._write("thinking", "".join(texts))
            case {"type": str()}:
                yield from self._close()
                yield OpaqueBlock(self._next_index(), packed(part))

    def _thinking(self, delta: WireObject) -> Iterator[StreamEvent]:
        """Yield thinking under the first name that says something; an empty one is kept too."""
        named = [name for name in REASONING if isinstance(delta.get(name), str)]
        name = next((name for name in named if delta[name]), named[0] if named else "")
        if name and (delta[name] or name not in self._thought_fields):
            yield from self._think(delta[name], name)
        details = delta.get("reasoning_details")
        for detail in details if isinstance(details, list) else []:
            gather(self._details, detail)

    def _think(self, text: str, name: str) -> Iterator[StreamEvent]:
        self._thought_fields.add(name)
        if text or self._prose is None or self._prose.kind != "thinking":
            yield from self._open("thinking", name)
            yield from self._write("thinking", text, name)

    def _write(
        self, kind: Literal["text", "refusal", "thinking"], text: str, name: str = ""
    ) -> Iterator[StreamEvent]:
        if not text:
            return
        yield from self._open(kind, name)
        assert self._prose is not None, "it was just opened"
        self._prose.is_empty = False
        made = ReasoningDelta if kind == "thinking" else TextDelta
        yield made(self._prose.index, text)

    def _open(
        self, kind: Literal["text", "refusal", "thinking"], name: str
    ) -> Iterator[StreamEvent]:
        now = self._prose
        if now is not None and (now.kind, now.field) == (kind, name):
            return
        yield from self._close()
        self._prose = _Prose(self._next_index(), kind, name)
        started = ReasoningStart if kind == "thinking" else TextStart
        yield started(self._prose.index)

    def _close(self) -> Iterator[StreamEvent]:
        prose, self._prose = self._prose, None
        if prose is None:
            return
        if prose.kind != "thinking":
            wire = packed({"refusal": True}) if prose.kind == "refusal" else NO_JSON
            yield TextEnd(prose.index, wire)
            return
        kept: WireObject = {"field": prose.field} if prose.field else {}
        if self._details:
            kept["details"], self._details = self._details, []
        redacted = prose.is_empty and "details" in kept
        yield ReasoningEnd(prose.index, packed(kept) if kept else NO_JSON, redacted)

    def _call_piece(self, piece: WireObject) -> Iterator[StreamEvent]:
        given = piece.get("function") or piece.get("custom") or {}
        name = words(given.get("name"))
        call = self._call_of(piece, name)
        if "custom" in piece:
            call.kind = "custom"
        call.extra |= {
            key: value
            for key, value in piece.items()
            if key not in _CALL_FIELDS and value is not None
        }
        if call.index is None and name:
            yield from self._close()
            call.index = self._next_index()
            yield ToolCallStart(call.index, name, call.id)
        text = given.get("arguments", given.get("input"))
        call.waiting.append(encoded(text).decode() if isinstance(text, dict) else words(text))
        if call.index is not None:
            for delta in filter(None, call.waiting):
                yield ToolCallDelta(call.index, delta)
            call.waiting.clear()

    def _call_of(self, piece: WireObject, name: str) -> _Call:
        """Return the call a piece belongs to: by index, else by id, else the newest one."""
        place, call_id = piece.get("index"), words(piece.get("id"))
        found = self._by_index.get(place) if isinstance(place, int) else None
        if place is None:
            same = (call for call in self._calls if call.id == call_id)
            newest = self._calls[-1] if self._calls and not name else None
            found = next(same, None) if call_id else newest
        is_another = call_id and name and found and found.id and found.id != call_id
        if found is None or is_another:
            found = _Call(call_id)
            self._calls.append(found)
        found.id = found.id or call_id
        if isinstance(place, int):
            self._by_index[place] = found
        return found

    def _next_index(self) -> int:
        self._blocks += 1
        return self._blocks - 1


def _call_wire(call: _Call, details: list[Any]) -> Raw:
    """Return what goes back with a call: its id, its host's fields, and thinking of its own."""
    kept: WireObject = {"id": call.id} if call.id else {}
    if call.kind == "custom":
        kept["type"] = "custom"
    kept |= call.extra
    if own := [one for one in details if id_of(one) == call.id]:
        kept["details"] = own
    return packed(kept) if kept else NO_JSON
