"""One answer from its call to its last event, alike on every wire.

It ends with exactly one Finish or StreamFailure. Four limits in time hold for it, each restarted
by its own sign of life:

| limit | from | until |
|---|---|---|
| `first_byte` | the call | the first event |
| `idle` | the newest whole line, or enough of a long one | the next |
| `quiet` | the newest event of ours | the next |
| `whole` | the call | the end |

Server-sent events are parsed here from bytes, because the size of a line and of an event is limited
and the chunks come from several clients; httpx-sse reads decoded lines without a limit. Lines end
with LF, CR or CRLF, wherever the bytes are cut. Comments, names and ids of events are passed over:
what an event is stands in its data. An event that nothing ends is none.

What the headers say of rate limits has two families of names: `anthropic-ratelimit-KIND-WHAT` with
dates, and `x-ratelimit-WHAT-KIND` with durations such as 6m0s. What cannot be read is as good as
not there.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.formats.wire import decode_json, encode_json

from ...errors import InvalidRequest, ModelError
from ..accumulate import join_deltas
from ..types import Allowance, Finish, RateLimit
from .connection import Connection
from .failures import ProviderFailures, compute_wait
from .http_client import HttpClient, Route
from .json_values import format_size_limit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from ..models import Preset, Timeouts
    from ..types import ChoiceMode, Request, StreamEvent
    from .connection import EndpointClient, HttpReply
    from .http_client import EncodedRequest
    from .json_values import WireObject
    from .meter import AnswerMeter


_OF_A_LINE = 16
"""Bytes that a line takes beside what is in it."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """A line, or an event, is longer than it may be; the text says which."""


class EventParser:
    """Cuts one stream, whose lines and events have at most so many bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rest: list[bytes] = []
        self._size = 0
        """Bytes of the incomplete line."""
        self._data: list[bytes] = []
        self._data_size = 0
        self._is_first = True
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each event that ends in `chunk`; to be consumed whole.

        Raises EventTooLong.
        """
        for line in self._split_lines(chunk):
            if line.startswith(b"data:"):
                self._add_data(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._add_data(b"")
            elif not line and self._data:
                data, self._data, self._data_size = self._data, [], 0
                yield b"\n".join(data)

    def _add_data(self, data: bytes) -> None:
        self._data.append(data)
        self._data_size += len(data) + _OF_A_LINE
        if self._data_size > self._most + _OF_A_LINE:
            raise EventTooLong("an event")

    def _split_lines(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in `chunk`, without their ends."""
        # CRLF may be cut in two: a LF that begins the next chunk belongs to the CR before it
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in chunk:
            self._after_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # the first part completes the line kept from before, the last begins the next one
        first, *lines = chunk.split(b"\n")
        self._rest.append(first)
        self._size += len(first)
        if self._size > self._most:
            raise EventTooLong("a line")
        if not lines:
            return []
        first = b"".join(self._rest)
        if self._is_first:
            first = first.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        self._rest = [lines.pop()]
        self._size = len(self._rest[0])
        return [first, *lines]


_NAMES = ("anthropic-ratelimit-{kind}-{what}", "x-ratelimit-{what}-{kind}")
_ONLY_REQUESTS = "x-ratelimit-{what}"
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_STEP = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_DURATION = re.compile(rf"(?:{_STEP.pattern})+")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d+)?")
_A_DATE = 1e9
"""Numbers from here on are seconds since 1970, or milliseconds."""
_IN_MILLISECONDS = 1e11


def parse_rate_limit(headers: Mapping[str, str]) -> RateLimit | None:
    """Return what response headers, names in small letters, say of limits; None for nothing."""
    told = {name: value for name, value in headers.items() if "ratelimit" in name}
    if not told:
        return None
    requests = _parse_allowance(told, "requests") or _parse_headers(told, _ONLY_REQUESTS, "")
    tokens = _parse_allowance(told, "tokens")
    return RateLimit(requests, tokens) if requests or tokens else None


def _parse_allowance(told: Mapping[str, str], kind: str) -> Allowance | None:
    return next(filter(None, (_parse_headers(told, name, kind) for name in _NAMES)), None)


def _parse_headers(told: Mapping[str, str], name: str, kind: str) -> Allowance | None:
    limit, remaining, reset = (
        told.get(name.format(kind=kind, what=what)) for what in ("limit", "remaining", "reset")
    )
    found = Allowance(
        _parse_limit_count(limit), _parse_limit_count(remaining), _parse_seconds(reset)
    )
    return None if found == Allowance() else found


def _parse_limit_count(text: str | None) -> int | None:
    return int(float(text)) if text and _NUMBER.fullmatch(text) else None


def _parse_seconds(text: str | None) -> float | None:
    """Return the seconds until a moment, told as a duration, a number or a date."""
    if not text:
        return None
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _STEP.findall(text))
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number < _A_DATE:
            return number
        return compute_wait(number / 1000 if number >= _IN_MILLISECONDS else number)
    try:
        return compute_wait(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None


_SHOWN = 65_536
"""Maximum bytes stored of an answer without any event yet."""
_BEGIN, _GO_ON = "begin its answer", "continue its answer"
_SAY_SOMETHING, _END = "say anything of its answer", "end its answer"
"""What a host did not do before a timeout."""
_ALIVE = 1_024
"""Bytes of an incomplete line that show that its host is still sending."""


class RequestEncoder(Protocol):
    """Encodes the requests of a growing history, each message once."""

    def __init__(self, preset: Preset) -> None: ...

    def encode_request(self, request: Request) -> EncodedRequest:
        """Return the call; raises MsgspecError for options that are not a JSON object."""
        ...


class Decoder(Protocol):
    """Decodes the data of one answer's server-sent events into stream events."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None: ...

    finished: bool
    """Whether the answer is complete, so that no more is read."""
    meter: AnswerMeter
    """Counts the size of the answer."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of one server-sent event; raises ModelError."""
        ...

    def split_answer(self, answer: WireObject) -> list[WireObject]:
        """Return the events that a stream would have sent of a whole answer; [] of other JSON."""
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the last events of a finished answer."""
        ...

    def finish_with_error(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of one that stopped with `error` before it was finished."""
        ...


class _AnswerNotes:
    """Data of an answer besides its events, for the last event."""

    def __init__(self, meter: AnswerMeter) -> None:
        self._meter = meter
        self.warnings: tuple[str, ...] = ()
        self.headers: Mapping[str, str] = {}
        self._raw: list[Raw] = []

    def keep_data(self, data: bytes) -> None:
        """Keep the data of an event, which is JSON but for the mark of the end."""
        if data.startswith((b"{", b"[{")):
            self._meter.keep_bytes(len(data))
            self._raw.append(Raw(data))

    def complete_event(self, event: StreamEvent) -> StreamEvent:
        """Return the event; a Finish gets the data collected here."""
        if not isinstance(event, Finish):
            return event
        raw, limits = tuple(self._raw), parse_rate_limit(self.headers)
        warnings = (*self.warnings, *event.warnings)
        return replace(event, warnings=warnings, rate_limit=limits, raw=raw)


class _Deadline:
    """Timeouts for the next bytes of one answer.

    A whole line, or enough of a long one, extends the deadline by `idle` seconds; only events of an
    answer extend it by `quiet`; `whole` is the limit for the whole answer.
    """

    def __init__(self, limits: Timeouts, meter: AnswerMeter, failures: ProviderFailures) -> None:
        self._limits, self._meter, self._failures = limits, meter, failures
        self._clock = asyncio.get_running_loop().time
        self.begun = False
        """There was an event."""
        self._started = self._alive = self._told = self._clock()
        self._taken = meter.taken
        self._unfinished = 0

    async def read_chunk(self, reply: HttpReply) -> bytes | None:
        """Return the next bytes, None at the end; raises RequestTimeout."""
        now, limits = self._clock(), self._limits
        # Events of ours since the last wait. A host may send comments for ever, to keep the
        # connection open, while its model hangs: `quiet` is the limit for that.
        if self._taken != self._meter.taken:
            self._taken, self._told = self._meter.taken, now
        idle = limits.idle if self.begun else limits.first_byte
        until = min(self._alive + idle, self._told + limits.quiet, self._started + limits.whole)
        try:
            chunk = await reply.read_chunk(max(until - now, 0))
        except TimeoutError:
            raise self._build_timeout(idle) from None
        # One byte now and then is not life; a picture in one line of megabytes is.
        if chunk is not None:
            self._unfinished += len(chunk)
            if self._unfinished >= _ALIVE or b"\n" in chunk or b"\r" in chunk:
                self._alive, self._unfinished = self._clock(), 0
        return chunk

    def _build_timeout(self, idle: float) -> ModelError:
        """Return the error of the limit that was reached first."""
        limits = self._limits
        _, limit, what = min(
            (self._alive + idle, idle, _GO_ON if self.begun else _BEGIN),
            (self._told + limits.quiet, limits.quiet, _SAY_SOMETHING),
            (self._started + limits.whole, limits.whole, _END),
        )
        return self._failures.build_timeout(what, limit)


class Wire(NamedTuple):
    """What encodes and decodes the calls of one API."""

    encoder: type[RequestEncoder]
    decoder: type[Decoder]
    native_objects: bool
    """Whether a `response_format` may be sent; a preset's quirk may say no."""
    sdk: str | None
    """The package of the API's SDK, for presets that ask for it."""


class WireProvider:
    """Talks to one endpoint with one key."""

    def __init__(
        self,
        wire: Wire,
        preset: Preset,
        key: str,
        endpoint: str,
        find_source: Callable[[], str] | None = None,
    ) -> None:
        self.name, self.endpoint = preset.name, endpoint
        self.api: str = preset.api
        self.native_objects = wire.native_objects and preset.quirks.json_schema
        self._preset, self._limits = preset, preset.timeouts
        self._encoder, self._decoder = wire.encoder(preset), wire.decoder
        self._failures = ProviderFailures(preset.name, key, endpoint, preset.key_name, find_source)
        route = Route(preset, key, endpoint)
        self._connection = Connection(_create_client(route, wire.sdk), route, self._failures)

    def supports_tool_choice(self, mode: ChoiceMode) -> bool:
        """Return whether the provider can be told so."""
        return mode in self._preset.quirks.tool_choices

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer, the last a Finish or a StreamFailure.

        Closing it closes the connection. With `raw` the last event holds what the provider sent.
        """
        decoder = self._decoder(self._failures, self._preset)
        meter = decoder.meter
        beside = _AnswerNotes(meter)
        try:
            try:
                call = self._encoder.encode_request(request)
            except msgspec.MsgspecError as error:
                why = f"the request is not valid JSON: {error}"
                raise InvalidRequest(why, provider=self.name) from error
            beside.warnings = call.warnings
            async with self._connection.open_reply(call) as reply:
                beside.headers = reply.headers
                async with aclosing(self._read_events(reply, decoder)) as found:
                    async for batch in found:
                        kept = beside if request.raw else None
                        for event in join_deltas(_decode_batch(decoder, batch, kept)):
                            yield event
                        if decoder.finished:
                            break  # nothing after the end is read
                for event in decoder.finish():
                    yield beside.complete_event(event)
                # read to its end, a connection can serve the next call
                await reply.drain_rest()
        except ModelError as error:
            # the decoder decides whether what came is a whole answer all the same
            for event in decoder.finish_with_error(error):
                yield beside.complete_event(event)

    async def _read_events(
        self, reply: HttpReply, decoder: Decoder
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the data of the events that came together.

        A host that does not stream sends the answer as one JSON object: it becomes its events.
        Raises ModelError at the end, where no answer may end.
        """
        meter = decoder.meter
        events, body = EventParser(meter.sizes.event), bytearray()
        deadline = _Deadline(self._limits, meter, self._failures)
        while (chunk := await deadline.read_chunk(reply)) is not None:
            meter.take_bytes(reply.unpacked, reply.received)
            meter.take_quiet(len(chunk))
            batch: list[bytes] = []
            too_long: EventTooLong | None = None
            try:
                for data in events.feed(chunk):
                    batch.append(data)  # noqa: PERF402 (what came before an error counts)
            except EventTooLong as error:
                too_long = error
            if any(batch):
                deadline.begun = True
                yield batch
            if too_long is not None:
                most = format_size_limit(meter.sizes.event)
                meter.refuse_answer(f"sent {too_long} of more than {most}")
            # without any event the body is a whole answer, an error's, or none at all
            if not deadline.begun:
                body += chunk[: meter.sizes.event - len(body)]
        if not deadline.begun:
            batch = [encode_json(event) for event in _split_body(decoder, bytes(body))]
            if not batch:
                raise self._failures.build_no_answer_error(bytes(body[:_SHOWN]))
            yield batch
        raise self._failures.build_stopped_error()


def _split_body(decoder: Decoder, body: bytes) -> list[WireObject]:
    """Return the events of a body that is JSON, an object or an array of them."""
    try:
        value = decode_json(body)
    except (ValueError, RecursionError):
        return []
    parts = value if isinstance(value, list) else [value]
    return [
        event for part in parts if isinstance(part, dict) for event in decoder.split_answer(part)
    ]


def _decode_batch(
    decoder: Decoder, batch: list[bytes], kept: _AnswerNotes | None
) -> Iterator[StreamEvent]:
    """Yield the stream events of some server-sent ones, up to the end of the answer.

    Their data is kept in `kept`, if given. Raises ModelError.
    """
    meter = decoder.meter
    for data in filter(None, batch):
        meter.take_data(data)
        if kept is not None:
            kept.keep_data(data)
        for event in decoder.feed(data):
            meter.take_event(event)
            yield event
        if decoder.finished:
            return


def _create_client(route: Route, sdk: str | None) -> EndpointClient:
    """Return what sends the calls of a route."""
    if route.preset.transport != "sdk" or sdk is None:
        return HttpClient(route)
    from .sdk_client import SdkClient  # noqa: PLC0415 (needs packages that may be missing)

    return SdkClient(route, sdk)
