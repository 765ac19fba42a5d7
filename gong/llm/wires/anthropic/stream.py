"""Decodes the events of the Anthropic Messages stream: pure, one decoder for each answer.

| event | does |
|---|---|
| message_start | begins the answer; counts input |
| content_block_start, _delta, _stop | begin, extend, end the block of an index |
| message_delta | says why it stops; counts output |
| message_stop | ends what is open: the answer is whole |
| error | ends it |

Blocks that are not text, thinking or a call of our tools are kept whole as opaque blocks; unknown
events are ignored. Some gateways leave out a block's start, or send a start or a stop twice. What a
delta does to the block of its index:

| delta | block | result |
|---|---|---|
| text_delta, thinking_delta | of its kind, or none yet | TextDelta, ReasoningDelta |
| input_json_delta | tool_use | ToolCallDelta: arguments are shown as they come |
| input_json_delta | server_tool_use and others | kept until the block ends: it goes out whole |
| citations_delta | any | kept, and added to the block at its end |
| signature_delta, any other | any | its fields become fields of the block, for `wire` |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.formats.wire import decode_json, encode_json, pack_raw
from tape.model.entries import NO_JSON, Usage

from ...accumulate import TextBuffer
from ...tokens import estimate_tokens
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
from ..json_values import (
    WireObject,
    parse_counts,
    parse_service,
    read_object,
    read_objects,
    read_text,
)
from ..meter import AnswerMeter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ....errors import ModelError
    from ...models import Preset
    from ..failures import ProviderFailures

_STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


_COUNTED = (
    "input_tokens", "output_tokens", "thinking_tokens",
    "cache_read_input_tokens", "cache_creation_input_tokens", "ephemeral_1h_input_tokens",
)  # fmt: skip
_STARTED_BY = {"text_delta": "text", "thinking_delta": "thinking"}
"""Pieces that show what block they are of."""


class _WireEvent(Struct, frozen=True):
    """Every event of the stream; which fields are there depends on its type."""

    type: str | None = None
    index: int | None = 0
    message: WireObject | None = None
    content_block: WireObject | None = None
    delta: WireObject | None = None
    usage: WireObject | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_WireEvent)


@dataclass(slots=True)
class _OpenBlock:
    """A block that has begun."""

    wire: WireObject
    """The block as the API shows it, so far."""
    input: TextBuffer = field(default_factory=TextBuffer)
    """The input of a server-side tool."""
    citations: list[Any] = field(default_factory=list)
    """Those that came after the block had begun."""

    def build_whole(self) -> WireObject:
        """Return the block with its input, when that is readable."""
        if not (arguments := self.input.text()):
            return self.wire
        try:
            return {**self.wire, "input": msgspec.json.decode(arguments)}
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self.wire

    def add_citations(self) -> None:
        """Put the citations where the API shows them."""
        if self.citations:
            self.wire["citations"] = [*(self.wire.get("citations") or []), *self.citations]

    def pack_fields(self, *names: str) -> Raw:
        """Return what must go back with the block: those of its fields that are there."""
        fields = {name: self.wire[name] for name in names if self.wire.get(name)}
        return pack_raw(fields) if fields else NO_JSON


class AnthropicStreamDecoder:
    """Turns the `data` of the stream's events into ours, and collects usage and stop reason."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None:
        self.meter = AnswerMeter(preset.sizes, failures)
        self.finished = False
        self._failures = failures
        self._started = False
        self._stop: str | None = None
        self._details: WireObject = {}
        self._counts: WireObject = {}
        self._server_tools: dict[str, int] = {}
        self._service: str | None = None
        self._open: dict[int, _OpenBlock] = {}
        self._thoughts = TextBuffer()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of one event of the API.

        Raises the error an `error` event names, StreamError for a malformed event.
        """
        try:
            event = _decode_event(data)
        except (ValueError, RecursionError) as error:
            why = f"sent a malformed event that cannot be read: {error}"
            raise self._failures.build_stream_error(why) from error
        try:
            yield from self._handle_event(event)
        except (LookupError, TypeError, ValueError) as error:
            raise self._failures.build_stream_error(
                f"sent a malformed {event.type} event: {error!r}"
            ) from error

    def split_answer(self, answer: WireObject) -> list[WireObject]:
        """Return the start of a stream, with a whole answer in it, and its end."""
        if answer.get("type") != "message":
            return []
        return [{"type": "message_start", "message": answer}, {"type": "message_stop"}]

    def finish_with_error(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last event of a stream that stopped with `error` before it was finished.

        An answer that had said why it stopped, with every block closed, is whole all the same.
        """
        # Gateways cut connections before message_stop; retrying would pay for the answer twice.
        if self._stop is None or self._open:
            yield StreamFailure(error, self.usage())
        else:
            yield from self.finish()

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the end of the answer."""
        details = (self._details.get(name) for name in ("category", "explanation"))
        why = ": ".join(detail for detail in details if isinstance(detail, str) and detail)
        stop = _STOPS.get(self._stop or "", "stop")
        yield Finish(stop, self.usage(), self._stop, why or None)

    def usage(self) -> Usage:
        """Return the usage so far; input is without cached ones.

        What was thought is estimated from its text where the API does not count it.
        """
        output, thought = self._counts.get("output_tokens", 0), self._counts.get("thinking_tokens")
        if thought is None and (text := self._thoughts.text()):
            thought = min(estimate_tokens(text), output)
        counted = Usage(
            input=self._counts.get("input_tokens", 0),
            output=output,
            reasoning=thought,
            cache_read=self._counts.get("cache_read_input_tokens"),
            cache_write=self._counts.get("cache_creation_input_tokens"),
            cache_write_hour=self._counts.get("ephemeral_1h_input_tokens") or None,
            server_tools=self._server_tools or None,
            service=self._service,
        )
        cached = (counted.cache_read or 0) + (counted.cache_write or 0)
        return replace(counted, total=counted.input + counted.output + cached)

    def _handle_event(self, event: _WireEvent) -> Iterator[StreamEvent]:
        index = event.index or 0
        match event.type:
            case "message_start" if not self._started:  # some gateways say it twice
                yield from self._start_message(event.message or {})
            case "content_block_start":
                yield from self._begin_block(index, event.content_block or {})
            case "content_block_delta":
                yield from self._extend_block(index, event.delta or {})
            case "content_block_stop":
                yield from self._end_block(index)
            case "message_delta":
                delta = event.delta or {}
                self._stop = delta.get("stop_reason") or self._stop
                # what a later event leaves out keeps its value
                self._details = read_object(delta.get("stop_details")) or self._details
                self._update_counts(event.usage)
            case "message_stop":
                # blocks that were not stopped end with the answer
                for left_open in sorted(self._open):
                    yield from self._end_block(left_open)
                self.finished = True
            case "error":
                raise self._failures.parse_error(event.error)
            case _ if event.error:  # from a host that gives its events no type
                raise self._failures.parse_error(event.error)

    def _start_message(self, message: WireObject) -> Iterator[StreamEvent]:
        self._started = True
        self._stop = message.get("stop_reason")
        self._update_counts(message.get("usage"))
        yield StreamStart(str(message.get("model") or ""), message.get("id"))
        # Hosts that do not really stream send all content with the start; it is whole.
        for index, block in enumerate(read_objects(message.get("content"), "text")):
            yield from self._begin_block(index, block)
            yield from self._end_block(index)

    def _begin_block(self, index: int, block: WireObject) -> Iterator[StreamEvent]:
        self.meter.keep_value(block)
        self._open[index] = _OpenBlock(dict(block))
        match block["type"]:
            case "text":
                yield TextStart(index)
                if text := block.get("text"):
                    yield TextDelta(index, read_text(text))
            case "thinking":
                yield ReasoningStart(index)
                if text := block.get("thinking"):
                    yield ReasoningDelta(index, read_text(text))
            case "redacted_thinking":
                yield ReasoningStart(index)
            case "tool_use":
                yield ToolCallStart(index, read_text(block["name"]), read_text(block.get("id")))
                # The API begins with {} and sends deltas; some gateways put all arguments here.
                if arguments := block.get("input"):
                    yield ToolCallDelta(index, msgspec.json.encode(arguments).decode())

    def _extend_block(self, index: int, delta: WireObject) -> Iterator[StreamEvent]:
        if index not in self._open:  # some gateways leave the start out
            yield from self._begin_block(index, {"type": _STARTED_BY[delta["type"]]})
        block = self._open[index]
        match delta.get("type"), block.wire["type"]:
            case "text_delta", "text":
                yield TextDelta(index, read_text(delta["text"]))
            case "thinking_delta", "thinking":
                thought = read_text(delta["thinking"])
                self._thoughts.append(thought)
                yield ReasoningDelta(index, thought)
            # a call's arguments go out as they come; a server tool's are kept for its block
            case "input_json_delta", "tool_use":
                yield ToolCallDelta(index, read_text(delta["partial_json"]))
            case "input_json_delta", _:
                piece = read_text(delta["partial_json"])
                self.meter.keep_bytes(len(piece))
                block.input.append(piece)
            case "citations_delta", _:
                self.meter.keep_value(delta["citation"])
                block.citations.append(delta["citation"])
            # signatures, and what we do not know: fields of the block, which go back with it
            case _:
                self.meter.keep_value(delta)
                block.wire |= {name: part for name, part in delta.items() if name != "type"}

    def _end_block(self, index: int) -> Iterator[StreamEvent]:
        block = self._open.pop(index, None)
        if block is None:  # said twice
            return
        block.add_citations()
        match block.wire["type"]:
            case "text":
                yield TextEnd(index, block.pack_fields("citations"))
            case "thinking":
                yield ReasoningEnd(index, block.pack_fields("signature"))
            case "redacted_thinking":
                yield ReasoningEnd(index, block.pack_fields("data"), redacted=True)
            case "tool_use":
                yield ToolCallEnd(index, block.pack_fields("id", "caller"))
            case _:
                yield OpaqueBlock(index, pack_raw(block.build_whole()))

    def _update_counts(self, usage: WireObject | None) -> None:
        """Take newer counts; a field that is null or left out keeps its older one."""
        counts_now = read_object(usage)
        details = (
            read_object(counts_now.get(name))
            for name in ("output_tokens_details", "cache_creation")
        )
        counts = {name: value for part in (counts_now, *details) for name, value in part.items()}
        self._counts |= parse_counts(counts, _COUNTED)
        requests = read_object(counts_now.get("server_tool_use"))
        for name, count in parse_counts(requests, requests).items():
            if count:
                self._server_tools[name.removesuffix("_requests")] = count
        for name in ("speed", "service_tier"):
            self._service = parse_service(counts_now.get(name)) or self._service


def _decode_event(data: bytes) -> _WireEvent:
    if data == b"null":
        return _WireEvent()
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError):  # usually half a surrogate pair
        return _DECODER.decode(encode_json(decode_json(data)))
