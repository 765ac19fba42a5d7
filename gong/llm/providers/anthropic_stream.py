"""Events of the Anthropic Messages stream to ours: pure, one decoder for each answer.

Event and field names are those of the API's streaming reference. Blocks that are not text,
thinking or a call of our tools are kept whole as opaque blocks; unknown events are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.blocks import NO_JSON
from tape.entries import Usage
from tape.formats.wire import decoded, encoded, packed

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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...errors import ModelError
    from .channel import Channel

WireObject = dict[str, Any]

_STOPS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_STATUS_OF_ERROR = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class _WireEvent(Struct, frozen=True):
    """Every event of the stream; which fields are there depends on its type."""

    type: str = ""
    index: int | None = 0
    message: WireObject | None = None
    content_block: WireObject | None = None
    delta: WireObject | None = None
    usage: WireObject | None = None
    error: WireObject | None = None


_DECODER = msgspec.json.Decoder(_WireEvent)


@dataclass(slots=True)
class _OpenBlock:
    """A block that has begun."""

    wire: WireObject
    """The block as the API shows it, so far."""
    input: list[str] = field(default_factory=list)
    """Pieces of the input of a server-side tool."""

    def whole(self) -> WireObject:
        """Return the block with its input, when that is readable."""
        if not self.input:
            return self.wire
        try:
            return {**self.wire, "input": msgspec.json.decode("".join(self.input))}
        except msgspec.DecodeError:
            return self.wire

    def only(self, *names: str) -> Raw:
        """Return what must go back with the block: those of its fields that are there."""
        kept = {name: self.wire[name] for name in names if self.wire.get(name)}
        return packed(kept) if kept else NO_JSON


class StreamDecoder:
    """Turns the `data` of the stream's events into ours, keeping usage and stop reason."""

    def __init__(self, channel: Channel) -> None:
        self.finished = False
        self._channel = channel
        self._started = False
        self._stop: str | None = None
        self._counts: WireObject = {}
        self._open: dict[int, _OpenBlock] = {}

    def feed(self, data: str) -> Iterator[StreamEvent]:
        """Yield what one event says.

        Raises the error an `error` event names, StreamError for an event that makes no sense.
        """
        try:
            event = _decoded(data)
        except (ValueError, RecursionError) as error:
            why = f"sent a malformed event that cannot be read: {error}"
            raise self._channel.wrong(why) from error
        try:
            yield from self._react(event)
        except (LookupError, TypeError, ValueError) as error:
            raise self._channel.wrong(f"sent a malformed {event.type} event: {error!r}") from error

    def ending(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last event of a stream that stopped with `error` before it finished.

        An answer that had said why it stopped, with every block closed, is whole all the same.
        """
        whole = self._stop is not None and not self._open
        yield self._finish() if whole else Failed(error, self.usage())

    def usage(self) -> Usage:
        """Return the tokens counted so far; input is without cached ones."""
        counted = Usage(
            input=self._counts.get("input_tokens", 0),
            output=self._counts.get("output_tokens", 0),
            reasoning=self._counts.get("thinking_tokens"),
            cache_read=self._counts.get("cache_read_input_tokens"),
            cache_write=self._counts.get("cache_creation_input_tokens"),
        )
        cached = (counted.cache_read or 0) + (counted.cache_write or 0)
        return replace(counted, total=counted.input + counted.output + cached)

    def _react(self, event: _WireEvent) -> Iterator[StreamEvent]:
        index = event.index or 0
        match event.type:
            case "message_start" if not self._started:  # some gateways say it twice
                yield from self._message_start(event.message or {})
            case "content_block_start":
                yield from self._begin(index, event.content_block or {})
            case "content_block_delta":
                yield from self._grow(index, event.delta or {})
            case "content_block_stop":
                yield from self._end(index)
            case "message_delta":
                self._stop = (event.delta or {}).get("stop_reason") or self._stop
                self._count(event.usage)
            case "message_stop":
                for left_open in sorted(self._open):
                    yield from self._end(left_open)
                yield self._finish()
            case "error":
                raise self._told(event.error or {})

    def _finish(self) -> Finish:
        self.finished = True
        return Finish(_STOPS.get(self._stop or "", "stop"), self.usage(), self._stop)

    def _message_start(self, message: WireObject) -> Iterator[StreamEvent]:
        self._started = True
        self._stop = message.get("stop_reason")
        self._count(message.get("usage"))
        yield StreamStart(str(message.get("model") or ""), message.get("id"))
        for index, block in enumerate(message.get("content") or ()):
            yield from self._begin(index, block)
            yield from self._end(index)

    def _begin(self, index: int, block: WireObject) -> Iterator[StreamEvent]:
        self._open[index] = _OpenBlock(dict(block))
        match block["type"]:
            case "text":
                yield TextStart(index)
                if text := block.get("text"):
                    yield TextDelta(index, _words(text))
            case "thinking":
                yield ReasoningStart(index)
                if text := block.get("thinking"):
                    yield ReasoningDelta(index, _words(text))
            case "redacted_thinking":
                yield ReasoningStart(index)
            case "tool_use":
                yield ToolCallStart(index, _words(block["name"]), _words(block.get("id")))
                if given := block.get("input"):
                    yield ToolCallDelta(index, msgspec.json.encode(given).decode())

    def _grow(self, index: int, delta: WireObject) -> Iterator[StreamEvent]:
        block = self._open[index]
        match delta.get("type"), block.wire["type"]:
            case "text_delta", "text":
                yield TextDelta(index, _words(delta["text"]))
            case "thinking_delta", "thinking":
                yield ReasoningDelta(index, _words(delta["thinking"]))
            case "input_json_delta", "tool_use":
                yield ToolCallDelta(index, _words(delta["partial_json"]))
            case "input_json_delta", _:
                block.input.append(_words(delta["partial_json"]))
            case "citations_delta", _:
                cited = block.wire.get("citations") or []
                block.wire["citations"] = [*cited, delta["citation"]]
            case _:
                block.wire |= {name: part for name, part in delta.items() if name != "type"}

    def _end(self, index: int) -> Iterator[StreamEvent]:
        block = self._open.pop(index)
        match block.wire["type"]:
            case "text":
                yield TextEnd(index, block.only("citations"))
            case "thinking":
                yield ReasoningEnd(index, block.only("signature"))
            case "redacted_thinking":
                yield ReasoningEnd(index, block.only("data"), redacted=True)
            case "tool_use":
                yield ToolCallEnd(index, block.only("id", "caller"))
            case _:
                yield OpaqueBlock(index, packed(block.whole()))

    def _told(self, error: WireObject) -> ModelError:
        """Return the error an `error` event tells of: the answer had begun, so HTTP said 200."""
        code = str(error.get("type", ""))
        message = str(error.get("message", "")) or code
        status = _STATUS_OF_ERROR.get(code)
        if status is None:
            return self._channel.wrong(f"API error: {message or 'no reason given'}")
        return self._channel.told(status, message, code)

    def _count(self, usage: WireObject | None) -> None:
        """Take newer counts; a field that is null or left out keeps its older one."""
        counts = {**(usage or {}), **((usage or {}).get("output_tokens_details") or {})}
        self._counts |= {name: count for name, count in counts.items() if isinstance(count, int)}


def _decoded(data: str) -> _WireEvent:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError):  # half a surrogate pair, where it is not worse
        return _DECODER.decode(encoded(decoded(data)))


def _words(value: object) -> str:
    """Return a text; null is an empty one."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {value!r}")
    return value
