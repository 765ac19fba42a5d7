"""Chunks of the Chat Completions stream to our events: pure, one decoder for each answer.

Written for what compatible hosts really send: choices left out or null, usage last or inside a
choice, calls without index or id, ids sent again, thinking under three names, text in parts.
Unknown fields are ignored. At most one block of text, refusal or thinking is open:

| piece | open block |
|---|---|
| of the same kind and field | continues |
| of another kind, a picture, a call's name | ends, and a new one begins |
| a call's arguments | stays open |

Calls end with the answer, because their pieces may come in any order.

Some hosts send thinking as text between `<think>` tags at the beginning of an answer. `ThinkTags`
goes from "before" through "inside" and "behind" (blanks after the tag) to "words", however the text
is cut. Tags further on are words like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from tape.formats.openai_chat.parse import REASONING_FIELDS
from tape.formats.wire import decode_json, pack_raw
from tape.model.entries import NO_JSON

from ....errors import ServerError
from ...types import (
    Finish,
    OpaqueBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StopReason,
    StreamEvent,
    StreamFailure,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from ..json_values import parse_service, read_object, read_objects, read_text
from ..meter import AnswerMeter
from ..openai_common import parse_chat_usage
from .calls import OpenAICalls, add_detail, get_call_id, join_text, read_call_piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.model.entries import Usage

    from ....errors import ModelError
    from ...models import Preset
    from ..failures import ProviderFailures
    from ..json_values import WireObject

    TaggedText = tuple[Literal["text", "thinking"], str]


_MAX_BLANKS = 4_096
"""Characters before a tag: a host that sends more means them as words."""
_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Separates the thinking of one answer from its text."""

    def __init__(self) -> None:
        self._held = ""
        """What may be part of a tag, or blanks before the words."""
        self._place: Literal["before", "inside", "behind", "words"] = "before"

    def feed(self, text: str) -> Iterator[TaggedText]:
        """Yield what is certain by now; to be consumed whole."""
        self._held += text
        if self._place == "before":
            visible = self._held.lstrip()
            if visible.startswith(_OPEN):
                self._held, self._place = visible.removeprefix(_OPEN), "inside"
            elif not _OPEN.startswith(visible) or len(self._held) > _MAX_BLANKS:
                self._place = "words"
        if self._place == "inside":
            yield from self._take_thoughts()
        # blanks between the closing tag and the words are dropped
        if self._place == "behind":
            self._held = self._held.lstrip()
            self._place = "words" if self._held else "behind"
        if self._place == "words" and self._held:
            yield "text", self._held
            self._held = ""

    def flush_rest(self) -> Iterator[TaggedText]:
        """Yield what was held back, at the end of the answer."""
        held, self._held = self._held, ""
        if held and self._place != "behind":
            yield ("thinking" if self._place == "inside" else "text"), held

    def _take_thoughts(self) -> Iterator[TaggedText]:
        thought, closed, behind = self._held.partition(_CLOSE)
        if closed:
            self._held, self._place = behind, "behind"
        else:
            # the end of the text may begin the closing tag
            sizes = range(min(len(thought), len(_CLOSE) - 1), 0, -1)
            partial = next((size for size in sizes if thought.endswith(_CLOSE[:size])), 0)
            thought, self._held = (
                thought[: len(thought) - partial],
                thought[len(thought) - partial :],
            )
        if thought:
            yield "thinking", thought


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
_THINKING = frozenset({*REASONING_FIELDS, "reasoning_details"})


@dataclass(slots=True)
class _Prose:
    """An open block of text or thinking, continued until another piece arrives."""

    index: int
    kind: Literal["text", "refusal", "thinking"]
    field: str = ""
    """Name its host gives to thinking."""
    is_empty: bool = True


class OpenAIChatStreamDecoder:
    """Turns the data of the stream's events into ours, and collects usage and stop reason."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None:
        self.meter = AnswerMeter(preset.sizes, failures)
        self.finished = False
        self._tags = ThinkTags() if preset.quirks.think_tags else None
        self._failures = failures
        self._started = False
        self._stop: str | None = None
        self._counts: WireObject = {}
        self._service: str | None = None
        self._blocks = 0
        self._prose: _Prose | None = None
        self._thought_fields: set[str] = set()
        self._details: list[Any] = []
        self._calls = OpenAICalls()
        self._late: tuple[str, ...] = ()
        """Errors that arrived after the stop reason."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of one event of the API.

        Raises the error in an error event, StreamError for a malformed event.
        """
        # Before the first chunk it is an answer without content: an error, not an end.
        if data.strip() == DONE:
            self.finished = self._started
            return
        try:
            chunk = decode_json(data) if data.strip() else {}
            if isinstance(chunk, dict):
                yield from self._handle_chunk(chunk)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise self._failures.build_stream_error(f"sent a malformed event: {error!r}") from error

    def split_answer(self, answer: WireObject) -> list[WireObject]:
        """Return a whole answer as the one event that a stream would have sent of it."""
        return [answer] if answer.get("choices") else []

    def finish_with_error(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of a stream that failed with `error` before its end.

        An answer with a stop reason is complete all the same.
        """
        if self._stop is None or self._stop in _FAILURES:
            yield StreamFailure(error, self.usage())
        else:
            yield from self.finish()

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the ends of open blocks, and of the answer."""
        if self._stop in _FAILURES:
            why = f"{self._failures.provider} stopped its answer: {self._stop}"
            yield StreamFailure(ServerError(why, provider=self._failures.provider), self.usage())
            return
        # details with a call's id go back with that call, the others with the thinking
        of_calls = {call.id for call in self._calls.all if call.id}
        late = [detail for detail in self._details if get_call_id(detail) in of_calls]
        self._details = [detail for detail in self._details if detail not in late]
        for kind, text in self._tags.flush_rest() if self._tags else ():
            yield from self._write_text(kind, text)
        yield from self._close_prose()
        if self._details:  # they came without or after the words they belong to
            yield from self._write_thought("", "")
            yield from self._close_prose()
        for call in self._calls.all:
            if call.index is not None:
                yield ToolCallEnd(call.index, call.pack_wire(late))
        reason = _STOPS.get(self._stop or "", "stop")
        # Some hosts say "stop" after calls too; taken at its word, the calls would never run.
        if reason == "stop" and any(call.index is not None for call in self._calls.all):
            reason = "tool_calls"
        yield Finish(reason, self.usage(), self._stop, warnings=self._late)

    def usage(self) -> Usage:
        """Return the usage so far."""
        return replace(parse_chat_usage(self._counts), service=self._service)

    def _handle_chunk(self, chunk: WireObject) -> Iterator[StreamEvent]:
        choices = chunk.get("choices") or []
        self._service = parse_service(chunk.get("service_tier")) or self._service
        self._update_counts(chunk.get("usage") or read_object(chunk.get("x_groq")).get("usage"))
        if not self._started and (choices or chunk.get("model") or chunk.get("id")):
            self._started = True
            yield StreamStart(read_text(chunk.get("model")), read_text(chunk.get("id")) or None)
        for choice in choices:
            if choice is not None and not choice.get("index"):
                self._update_counts(choice.get("usage"))
                # instead of pieces a host may send one whole message
                whole = None if self._blocks else choice.get("message")
                yield from self._handle_delta(choice.get("delta") or whole or {})
                self._stop = read_text(choice.get("finish_reason")) or self._stop
        # Errors come in a chunk, with status 200; after the stop reason they are only a warning.
        fault = read_object(chunk.get("base_resp"))
        error = chunk.get("error") or (fault.get("status_code") and {"base_resp": fault})
        if error := chunk if chunk.get("object") == "error" else error:
            failure = self._failures.parse_error(error)
            self._late = (str(failure),)
            raise failure

    def _update_counts(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._counts = usage

    def _handle_delta(self, delta: WireObject) -> Iterator[StreamEvent]:
        if not _THINKING.isdisjoint(delta):
            yield from self._add_thinking(delta)
        yield from self._add_words(delta)
        pieces = delta.get("tool_calls") or ()
        for piece in [pieces] if isinstance(pieces, dict) else pieces:
            if piece is not None:
                yield from self._add_call_piece(piece)
        # the form before tool calls, which has one call and no id
        if function := delta.get("function_call"):
            yield from self._add_call_piece({"index": 0, "function": function})

    def _add_words(self, delta: WireObject) -> Iterator[StreamEvent]:
        """Yield the words of a piece, and what it shows beside them."""
        content = delta.get("content")
        if isinstance(content, list):
            for part in content:
                yield from self._add_part(part)
        elif content and self._tags:
            for kind, piece in self._tags.feed(read_text(content)):
                yield from self._write_text(kind, piece)
        elif content:
            yield from self._write_text("text", read_text(content))
        if spoken := read_object(delta.get("audio")).get("transcript"):
            yield from self._write_text("text", read_text(spoken))
        if "images" in delta:
            for picture in read_objects(delta["images"], "image_url"):
                yield from self._close_prose()
                yield OpaqueBlock(self._take_index(), pack_raw(picture))
        if refusal := delta.get("refusal"):
            yield from self._write_text("refusal", read_text(refusal))

    def _add_part(self, part: Any) -> Iterator[StreamEvent]:
        match part:
            case str():
                yield from self._write_text("text", part)
            case {"type": "text", "text": text}:
                yield from self._write_text("text", read_text(text))
            case {"type": "thinking", "thinking": pieces}:
                texts = [pieces] if isinstance(pieces, str) else [piece["text"] for piece in pieces]
                yield from self._write_text("thinking", "".join(texts))
            case {"type": str()}:
                yield from self._close_prose()
                yield OpaqueBlock(self._take_index(), pack_raw(part))

    def _add_thinking(self, delta: WireObject) -> Iterator[StreamEvent]:
        """Yield thinking under the first name with content; an empty one is kept too."""
        named = [name for name in REASONING_FIELDS if isinstance(delta.get(name), str)]
        name = next((name for name in named if delta[name]), named[0] if named else "")
        # The same words come under several names at once. Which name is remembered: the host wants
        # thinking back under it, empty or not.
        if name and (delta[name] or name not in self._thought_fields):
            yield from self._write_thought(delta[name], name)
        details = delta.get("reasoning_details")
        details = details if isinstance(details, list) else []
        if join_text(details) and (self._prose is None or self._prose.kind != "thinking"):
            yield from self._open_prose("thinking", "")
        for detail in details:
            self.meter.keep_value(add_detail(self._details, detail))

    def _write_thought(self, text: str, name: str) -> Iterator[StreamEvent]:
        self._thought_fields.add(name)
        if text or self._prose is None or self._prose.kind != "thinking":
            yield from self._open_prose("thinking", name)
            yield from self._write_text("thinking", text, name)

    def _write_text(
        self, kind: Literal["text", "refusal", "thinking"], text: str, name: str = ""
    ) -> Iterator[StreamEvent]:
        if not text:
            return
        yield from self._open_prose(kind, name)
        assert self._prose is not None, "it was just opened"
        self._prose.is_empty = False
        delta_type = ReasoningDelta if kind == "thinking" else TextDelta
        yield delta_type(self._prose.index, text)

    def _open_prose(
        self, kind: Literal["text", "refusal", "thinking"], name: str
    ) -> Iterator[StreamEvent]:
        now = self._prose
        if now is not None and now.kind == kind == "thinking" and now.is_empty and not now.field:
            now.field = name  # begun by its details
            return
        if now is not None and (now.kind, now.field) == (kind, name):
            return
        yield from self._close_prose()
        self._prose = _Prose(self._take_index(), kind, name)
        started = ReasoningStart if kind == "thinking" else TextStart
        yield started(self._prose.index)

    def _close_prose(self) -> Iterator[StreamEvent]:
        prose, self._prose = self._prose, None
        if prose is None:
            return
        if prose.kind != "thinking":
            wire = pack_raw({"refusal": True}) if prose.kind == "refusal" else NO_JSON
            yield TextEnd(prose.index, wire)
            return
        fields: WireObject = {"field": prose.field} if prose.field else {}
        if self._details:
            fields["details"], self._details = self._details, []
        details = fields.get("details", [])
        if prose.is_empty and (thought := join_text(details)):
            prose.is_empty = False
            yield ReasoningDelta(prose.index, thought)
        # details without any words: the thinking is encrypted
        redacted = prose.is_empty and bool(details)
        yield ReasoningEnd(prose.index, pack_raw(fields) if fields else NO_JSON, redacted)

    def _add_call_piece(self, piece: WireObject) -> Iterator[StreamEvent]:
        name, text = read_call_piece(piece)
        call = self._calls.find_call(piece, name, text)
        if silent := call.add_piece(piece, text):
            self.meter.keep_value(silent)
        # a call begins with its name; arguments that came before it wait
        if call.index is None and name:
            yield from self._close_prose()
            call.index = self._take_index()
            yield ToolCallStart(call.index, name, call.id)
        if call.index is not None:
            for delta in call.take_waiting():
                yield ToolCallDelta(call.index, delta)

    def _take_index(self) -> int:
        self._blocks += 1
        return self._blocks - 1
