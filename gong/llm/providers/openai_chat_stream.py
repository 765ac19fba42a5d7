"""Chunks of the Chat Completions stream to our events: pure, one decoder for each answer.

Written for what compatible hosts really send: choices left out or null, usage last or inside a
choice, calls without index or id, ids sent again, thinking under three names, text in parts.
Calls end with the answer, because their pieces may come in any order. Unknown fields are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tape.blocks import NO_JSON
from tape.formats.parse.openai_chat import REASONING
from tape.formats.wire import decoded, packed

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
from .openai_calls import Calls, arguments_in
from .openai_details import gather, id_of, text_in
from .openai_usage import chat_usage
from .think_tags import ThinkTags
from .values import wire_object, wire_objects, words

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_MEDIA = frozenset({"audio", "images"})


@dataclass(slots=True)
class _Prose:
    """A block of words that has begun and goes on while nothing else comes."""

    index: int
    kind: Literal["text", "refusal", "thinking"]
    field: str = ""
    """Name its host gives to thinking."""
    is_empty: bool = True


class StreamDecoder:
    """Turns the data of the stream's events into ours, keeping usage and stop reason."""

    def __init__(self, failures: Failures, *, think_tags: bool = False) -> None:
        self.finished = False
        self._tags = ThinkTags() if think_tags else None
        self._failures = failures
        self._started = False
        self._stop: str | None = None
        self._counts: WireObject = {}
        self._blocks = 0
        self._prose: _Prose | None = None
        self._thought_fields: set[str] = set()
        self._details: list[Any] = []
        self._calls = Calls()
        self._late: tuple[str, ...] = ()
        """What was complained of once the answer had said why it stopped."""

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
        of_calls = {call.id for call in self._calls.all if call.id}
        late = [one for one in self._details if id_of(one) in of_calls]
        self._details = [one for one in self._details if one not in late]
        for kind, text in self._tags.rest() if self._tags else ():
            yield from self._write(kind, text)
        yield from self._close()
        if self._details:
            yield from self._think("", "")
            yield from self._close()
        for call in self._calls.all:
            if call.index is not None:
                yield ToolCallEnd(call.index, call.wire(late))
        yield Finish(self._stop_reason(), self.usage(), self._stop, warnings=self._late)

    def usage(self) -> Usage:
        """Return the tokens counted so far."""
        return chat_usage(self._counts)

    def _stop_reason(self) -> StopReason:
        reason = _STOPS.get(self._stop or "", "stop")
        called = any(call.index is not None for call in self._calls.all)
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
                whole = None if self._blocks else choice.get("message")
                yield from self._delta(choice.get("delta") or whole or {})
                self._stop = words(choice.get("finish_reason")) or self._stop
        if error := _error(chunk):
            told = self._failures.told(error)
            self._late = (str(told),)
            raise told

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._counts = usage

    def _delta(self, delta: WireObject) -> Iterator[StreamEvent]:
        if not _THINKING.isdisjoint(delta):
            yield from self._thinking(delta)
        yield from self._said(delta)
        pieces = delta.get("tool_calls") or ()
        for piece in [pieces] if isinstance(pieces, dict) else pieces:
            if piece is not None:
                yield from self._call_piece(piece)
        if function := delta.get("function_call"):
            yield from self._call_piece({"index": 0, "function": function})

    def _media(self, delta: WireObject) -> Iterator[StreamEvent]:
        if spoken := wire_object(delta.get("audio")).get("transcript"):
            yield from self._write("text", words(spoken))
        for picture in wire_objects(delta.get("images"), "image_url"):
            yield from self._close()
            yield OpaqueBlock(self._next_index(), packed(picture))

    def _said(self, delta: WireObject) -> Iterator[StreamEvent]:
        """Yield the words of a piece, and what it shows beside them."""
        content = delta.get("content")
        if isinstance(content, list):
            for part in content:
                yield from self._part(part)
        elif content and self._tags:
            for kind, piece in self._tags.feed(words(content)):
                yield from self._write(kind, piece)
        elif content:
            yield from self._write("text", words(content))
        if not _MEDIA.isdisjoint(delta):
            yield from self._media(delta)
        if refusal := delta.get("refusal"):
            yield from self._write("refusal", words(refusal))

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
        details = details if isinstance(details, list) else []
        if text_in(details) and (self._prose is None or self._prose.kind != "thinking"):
            yield from self._open("thinking", "")
        for detail in details:
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
        if now is not None and now.kind == kind == "thinking" and now.is_empty and not now.field:
            now.field = name  # begun by its details
            return
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
        details = kept.get("details", [])
        if prose.is_empty and (thought := text_in(details)):
            prose.is_empty = False
            yield ReasoningDelta(prose.index, thought)
        redacted = prose.is_empty and bool(details)
        yield ReasoningEnd(prose.index, packed(kept) if kept else NO_JSON, redacted)

    def _call_piece(self, piece: WireObject) -> Iterator[StreamEvent]:
        name, text = arguments_in(piece)
        call = self._calls.find(piece, name, text)
        call.add(piece, text)
        if call.index is None and name:
            yield from self._close()
            call.index = self._next_index()
            yield ToolCallStart(call.index, name, call.id)
        if call.index is not None:
            for delta in call.untold():
                yield ToolCallDelta(call.index, delta)

    def _next_index(self) -> int:
        self._blocks += 1
        return self._blocks - 1


def _error(chunk: WireObject) -> Any:
    """Return what a chunk says of an error, in the ways hosts have for it; nothing for none."""
    if chunk.get("object") == "error":
        return chunk
    fault = wire_object(chunk.get("base_resp"))
    return chunk.get("error") or (fault.get("status_code") and {"base_resp": fault})
