"""Decodes the events of the Responses stream: pure, one decoder for each answer.

| event response.… | does |
|---|---|
| created, in_progress, queued | begins the answer |
| output_item.added | opens an item; reasoning and calls begin their block |
| ….delta | extends a part of an item; a message's part begins its block |
| ….done of a part | adds what its pieces left out |
| output_item.done | ends the item's blocks; the item goes whole into `wire` |
| completed, incomplete, done | ends what is open: the answer is whole |
| failed, cancelled, error | ends it |

Items that are no text, reasoning or call are the provider's own and stay opaque; unknown events are
ignored. An example, the item 0 with a call whose last piece a host left out:

| event response.… | events of ours |
|---|---|
| output_item.added 0, function_call read | ToolCallStart(0, "read") |
| function_call_arguments.delta 0, {"path": | ToolCallDelta(0, '{"path":') |
| function_call_arguments.done 0, {"path": "a"} | ToolCallDelta(0, ' "a"}'): what is missing |
| output_item.done 0 | ToolCallEnd(0), with the item's other fields for `wire` |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tape.formats.wire import decode_json, drop_fields, pack_raw
from tape.model.entries import NO_JSON

from ...accumulate import TextBuffer
from ...types import (
    PAUSE_STOP,
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
from ..openai_common import count_searches, parse_responses_usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.model.entries import Usage

    from ....errors import ModelError
    from ...models import Preset
    from ..failures import ProviderFailures
    from ..json_values import WireObject

_MESSAGE_FIELDS = ("id", "phase", "status")
_CALLS = frozenset({"function_call", "custom_tool_call"})
_OURS = frozenset({*_CALLS, "message", "reasoning"})
"""Items that become blocks; all others stay opaque."""
_STOPS: dict[str, StopReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
_DELTAS = frozenset(
    f"response.{kind}.delta"
    for kind in (
        "output_text", "refusal", "reasoning_text", "reasoning_summary_text",
        "function_call_arguments", "custom_tool_call_input",
    )
)  # fmt: skip
_WHOLES = {
    "response.output_text.done": "text",
    "response.refusal.done": "refusal",
    "response.reasoning_text.done": "text",
    "response.reasoning_summary_text.done": "text",
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}
"""Events that say a part is done → the field with all of it."""
_PARTS = {"output_text": "text", "refusal": "refusal"}
"""Part of a message → the field with its words."""
_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})
"""Status of a whole answer, as the events that end a stream name it."""
_BETWEEN = "\n\n"


@dataclass(slots=True)
class _Part:
    """A part of a message or of reasoning: its place among the blocks, and its words so far."""

    index: int
    kind: str
    words: TextBuffer = field(default_factory=TextBuffer)

    def find_missing(self, whole: Any) -> str:
        """Return the rest of the whole that the pieces left out."""
        if not isinstance(whole, str) or len(whole) <= self.words.length:
            return ""
        # What was shown cannot be undone, so a whole that differs from it adds nothing.
        is_more = whole.startswith(self.words.text())
        return whole[self.words.length :] if is_more else ""


@dataclass(slots=True)
class _Item:
    """An output item on its way; `index` is its block's place, a message has one for each part."""

    wire: WireObject
    index: int
    parts: dict[tuple[str, int], _Part] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return str(self.wire.get("type"))


class OpenAIResponsesStreamDecoder:
    """Turns the data of the stream's events into ours, and collects usage and stop reason."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None:
        self.meter = AnswerMeter(preset.sizes, failures)
        self.finished = False
        self._failures = failures
        self._started = False
        self._reason: str | None = None
        self._is_paused = False
        """Whether the model has more to say: the answer, sent back as it is, continues."""
        self._counts: WireObject = {}
        self._service: str | None = None
        self._kinds: list[str] = []
        """The types of the items that ended; a search that only opens a page costs nothing."""
        self._blocks = 0
        self._has_calls = False
        self._has_items = False
        self._open: dict[Any, _Item] = {}
        self._ended: set[str] = set()
        """Ids of items: some hosts end one twice."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of one event of the API.

        Raises the error in an error event, StreamError for a malformed event.
        """
        if not data.startswith(b"{"):
            return  # some hosts end with [DONE]
        kind = "event"
        try:
            event = decode_json(data)
            kind = f"{event.get('type')} event"
            yield from self._handle_event(event)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise self._failures.build_stream_error(
                f"sent a malformed {kind}: {error!r}"
            ) from error

    def split_answer(self, answer: WireObject) -> list[WireObject]:
        """Return a whole answer as the event that ends a stream."""
        if not isinstance(answer.get("output"), list):
            return []
        status = answer.get("status")
        kind = status if status in _ENDS else "completed"
        return [{"type": f"response.{kind}", "response": answer}]

    def finish_with_error(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last event of a stream that stopped with `error` before it was finished."""
        yield StreamFailure(error, self.usage())

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the end of the answer."""
        stop: StopReason = "tool_calls" if self._has_calls else "stop"
        if self._reason is not None:
            stop = _STOPS.get(self._reason, "length")
        raw = PAUSE_STOP if self._is_paused else self._reason or "completed"
        yield Finish(stop, self.usage(), raw)

    def usage(self) -> Usage:
        """Return the usage so far."""
        usage = parse_responses_usage(self._counts)
        searches = count_searches(self._kinds)
        return replace(usage, server_tools=searches, service=self._service)

    def _handle_event(self, event: WireObject) -> Iterator[StreamEvent]:
        kind = event.get("type")
        match kind:
            case _ if kind in _DELTAS:
                yield from self._extend_part(event, event["delta"])
            case _ if kind in _WHOLES:
                yield from self._fill_from_event(event, event.get(_WHOLES[kind]))
            case "response.created" | "response.in_progress" | "response.queued":
                yield from self._start_answer(read_object(event.get("response")))
            case "response.output_item.added" if item := event["item"]:
                yield from self._begin_item(_get_item_key(event), item)
            case "response.output_item.done":
                yield from self._end_item_once(_get_item_key(event), event["item"])
            case "response.completed" | "response.incomplete" | "response.done":
                yield from self._complete_answer(read_object(event.get("response")))
            case "response.failed" | "response.cancelled":
                response = read_object(event.get("response"))
                self._update_counts(response)
                raise self._failures.parse_error(response.get("error") or {"message": kind})
            case "error":
                raise self._failures.parse_error(event.get("error") or event)
            case None if error := event.get("error"):
                raise self._failures.parse_error(error)

    def _start_answer(self, response: WireObject) -> Iterator[StreamEvent]:
        if not self._started:
            self._started = True
            yield StreamStart(
                read_text(response.get("model")), read_text(response.get("id")) or None
            )

    def _complete_answer(self, response: WireObject) -> Iterator[StreamEvent]:
        yield from self._start_answer(response)
        # Some hosts stream nothing but the end, with all items in it.
        if not self._has_items:
            for place, item in enumerate(response.get("output") or ()):
                yield from self._end_item(place, item)
        # An item that was not ended ends with the answer; one of the provider's own would be half.
        for key, item in [*self._open.items()]:
            if item.kind in _OURS:
                yield from self._end_item(key, item.wire)
        self._update_counts(response)
        details = read_object(response.get("incomplete_details"))
        is_cut = response.get("status") == "incomplete" or details.get("reason")
        self._reason = str(details.get("reason") or "incomplete") if is_cut else None
        self._is_paused = not is_cut and response.get("end_turn") is False
        self.finished = True

    def _update_counts(self, response: WireObject) -> None:
        self._counts = read_object(response.get("usage")) or self._counts
        self._service = parse_service(response.get("service_tier")) or self._service

    def _begin_item(self, key: Any, wire: WireObject) -> Iterator[StreamEvent]:
        self._has_items = True
        self.meter.keep_value(wire)
        # a message's blocks are its parts; any other item is one block
        if wire["type"] == "message":
            self._open[key] = _Item(wire, -1)
            return
        item = self._open[key] = _Item(wire, self._take_index())
        if item.kind == "reasoning":
            yield ReasoningStart(item.index)
        elif item.kind in _CALLS:
            self._has_calls = True
            yield ToolCallStart(item.index, read_text(wire["name"]), read_text(wire.get("call_id")))

    def _extend_part(self, event: WireObject, piece: Any) -> Iterator[StreamEvent]:
        item, text = self._open.get(_get_item_key(event)), read_text(piece)
        if item is None or item.kind not in _OURS or not text:
            return
        part, opening = self._open_part(item, *_get_part_place(event, item))
        yield from opening
        part.words.append(text)
        yield _build_delta(item, part.index, text)

    def _fill_from_event(self, event: WireObject, whole: Any) -> Iterator[StreamEvent]:
        item = self._open.get(_get_item_key(event))
        if item is not None and item.kind in _OURS:
            yield from self._fill_part(item, _get_part_place(event, item), whole)

    def _fill_part(self, item: _Item, place: tuple[str, int], whole: Any) -> Iterator[StreamEvent]:
        known = item.parts.get(place)
        text = known.find_missing(whole) if known else whole
        if isinstance(text, str) and text:
            part, opening = self._open_part(item, *place)
            yield from opening
            part.words.append(text)
            yield _build_delta(item, part.index, text)

    def _open_part(self, item: _Item, kind: str, number: int) -> tuple[_Part, list[StreamEvent]]:
        """Return a part of an item, and what is to be said when it has just begun."""
        known = item.parts.get((kind, number))
        if known is not None:
            return known, []
        opening: list[StreamEvent] = []
        if item.kind == "message":
            part = _Part(self._take_index(), kind)
            opening.append(TextStart(part.index))
        else:
            part = _Part(item.index, kind)
            # the parts of a summary are one thinking block, with a blank line between
            if item.parts and item.kind == "reasoning":
                opening.append(ReasoningDelta(item.index, _BETWEEN))
        item.parts[kind, number] = part
        self.meter.keep_value([kind, number])
        return part, opening

    def _end_item_once(self, key: Any, wire: WireObject | None) -> Iterator[StreamEvent]:
        """Yield the end of an item, as it was so far where there is nothing in its place."""
        known = self._open.get(key)
        if wire and (known is not None or wire.get("id") not in self._ended):
            yield from self._end_item(key, wire)
        elif known is not None:
            yield from self._end_item(key, known.wire)

    def _note_kind(self, wire: WireObject) -> None:
        if read_object(wire.get("action")).get("type", "search") == "search":
            self._kinds.append(wire["type"])

    def _end_item(self, key: Any, wire: WireObject) -> Iterator[StreamEvent]:
        # Some hosts send an item only when it is done.
        if key not in self._open:
            yield from self._begin_item(key, wire)
        item = self._open.pop(key)
        if wire["type"] != item.kind:
            raise TypeError(f"a {item.kind} ended as {wire['type']}")
        item.wire = wire
        if name := wire.get("id"):
            self.meter.keep_value(str(name))
            self._ended.add(str(name))
        self._note_kind(wire)
        match item.kind:
            case "message":
                yield from self._end_message(item)
            case "reasoning":
                for name in ("summary", "content"):
                    for number, piece in enumerate(read_objects(wire.get(name), f"{name}_text")):
                        yield from self._fill_part(item, (name, number), piece.get("text"))
                redacted = not item.parts and bool(wire.get("encrypted_content"))
                yield ReasoningEnd(item.index, pack_raw(wire), redacted)
            case "function_call":
                yield from self._fill_part(item, ("input", 0), wire.get("arguments"))
                yield ToolCallEnd(
                    item.index, pack_raw(drop_fields(wire, "type", "name", "arguments"))
                )
            case "custom_tool_call":
                yield from self._fill_part(item, ("input", 0), wire.get("input"))
                yield ToolCallEnd(item.index, pack_raw(drop_fields(wire, "name", "input")))
            case _:
                yield OpaqueBlock(item.index, pack_raw(wire))

    def _end_message(self, item: _Item) -> Iterator[StreamEvent]:
        content = read_objects(item.wire.get("content"), "output_text")
        for number, piece in enumerate(content):
            if name := _PARTS.get(str(piece.get("type"))):
                yield from self._fill_part(item, (name, number), piece.get(name))
        for (_, number), part in item.parts.items():
            piece = content[number] if number < len(content) else {}
            # back go the message's id and phase, and the text's own notes
            fields = {name: item.wire.get(name) for name in _MESSAGE_FIELDS}
            fields = {name: value for name, value in fields.items() if value is not None}
            notes = drop_fields(piece, "type", "text", "refusal", *_MESSAGE_FIELDS)
            fields |= {name: value for name, value in notes.items() if value}
            if part.kind == "refusal":
                fields["type"] = "refusal"
            yield TextEnd(part.index, pack_raw(fields) if fields and part.words.length else NO_JSON)

    def _take_index(self) -> int:
        self._blocks += 1
        return self._blocks - 1


def _get_item_key(event: WireObject) -> Any:
    """Return what the events of one item have in common: its place, or else its id."""
    place = event.get("output_index")
    if place is not None:
        return place
    return event.get("item_id") or read_object(event.get("item")).get("id")


def _get_part_place(event: WireObject, item: _Item) -> tuple[str, int]:
    """Return which part of its item an event speaks of."""
    if item.kind == "message":
        kind = "refusal" if "refusal" in event["type"] else "text"
        return kind, event.get("content_index") or 0
    if item.kind == "reasoning":
        is_summary = "summary" in event["type"]
        name = "summary_index" if is_summary else "content_index"
        return "summary" if is_summary else "content", event.get(name) or 0
    return "input", 0


def _build_delta(item: _Item, index: int, text: str) -> StreamEvent:
    if item.kind == "message":
        return TextDelta(index, text)
    if item.kind == "reasoning":
        return ReasoningDelta(index, text)
    return ToolCallDelta(index, text)
