"""One answer from its call to its last event, alike on every wire.

It ends with exactly one Finish or StreamFailure. Four limits in time hold for it, each restarted
by its own sign of life:

| limit | from | until |
|---|---|---|
| `first_byte` | the call | the first event |
| `idle` | the newest whole line, or enough of a long one | the next |
| `quiet` | the newest event of ours | the next |
| `whole` | the call | the end |
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.formats.wire import decode_json, encode_json

from ...errors import InvalidRequest, ModelError
from ..accumulate import join_deltas
from ..addresses import build_call_path
from ..types import Finish, StreamFailure
from .access import Access
from .connection import Connection
from .event_frames import CONTENT_TYPE, DamagedFrame, FrameParser
from .failures import ProviderFailures
from .http_client import HttpClient, Route
from .json_values import format_size_limit
from .rate_limits import parse_rate_limit
from .server_sent_events import EventParser, EventTooLong

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from ..keys import KeySource
    from ..models import Preset, Timeouts
    from ..types import ChoiceMode, Request, StreamEvent
    from .connection import EndpointClient, HttpReply
    from .json_values import WireObject
    from .meter import AnswerMeter
    from .wire import Decoder, Wire


_SHOWN = 65_536
"""Maximum bytes stored of an answer without any event yet."""
_BEGIN, _GO_ON = "begin its answer", "continue its answer"
_SAY_SOMETHING, _END = "say anything of its answer", "end its answer"
"""What a host did not do before a timeout."""
_ALIVE = 1_024
"""Bytes of an incomplete line that show that its host is still sending."""


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
        self.has_begun = False
        """There was an event."""
        self._started = self._alive = self._last_event_at = self._clock()
        self._taken = meter.taken
        self._unfinished = 0

    async def read_chunk(self, reply: HttpReply) -> bytes | None:
        """Return the next bytes, None at the end; raises RequestTimeout."""
        now, limits = self._clock(), self._limits
        # Events of ours since the last wait. A host may send comments for ever, to keep the
        # connection open, while its model hangs: `quiet` is the limit for that.
        if self._taken != self._meter.taken:
            self._taken, self._last_event_at = self._meter.taken, now
        idle = limits.idle if self.has_begun else limits.first_byte
        until = min(
            self._alive + idle, self._last_event_at + limits.quiet, self._started + limits.whole
        )
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

    def note_event(self) -> None:
        """Count a whole event as life, which may be short and without a line's end."""
        self._alive, self._unfinished = self._clock(), 0

    def _build_timeout(self, idle: float) -> ModelError:
        """Return the error of the limit that was reached first."""
        limits = self._limits
        _, limit, what = min(
            (self._alive + idle, idle, _GO_ON if self.has_begun else _BEGIN),
            (self._last_event_at + limits.quiet, limits.quiet, _SAY_SOMETHING),
            (self._started + limits.whole, limits.whole, _END),
        )
        return self._failures.build_timeout(what, limit)


class WireProvider:
    """Talks to one endpoint with one key."""

    def __init__(
        self,
        wire: Wire,
        preset: Preset,
        source: KeySource,
        endpoint: str,
    ) -> None:
        self.name, self.endpoint = preset.name, endpoint
        self.api: str = preset.api
        self.native_objects = wire.native_objects and preset.quirks.json_schema
        self._preset, self._limits = preset, preset.timeouts
        self._shape = _choose_shape(preset)
        self._encoder, self._decoder = wire.encoder(self._shape), wire.decoder
        self._access = Access(preset, source)
        self._failures = ProviderFailures(
            *(preset.name, "", endpoint, preset.key_name, self._access.describe_source),
            preset=preset,
        )
        route = Route(preset, self._access, endpoint)
        self._connection = Connection(_create_client(route, wire.sdk), route)

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
        try:
            await self._access.prepare()
        except ModelError as error:
            yield StreamFailure(error)
            return
        failures = self._failures._replace(model=request.model, key=self._access.secret)
        decoder = self._decoder(failures, self._preset)
        meter = decoder.meter
        beside = _AnswerNotes(meter)
        try:
            try:
                call = self._encoder.encode_request(request)
            except msgspec.MsgspecError as error:
                why = f"the request is not valid JSON: {error}"
                raise InvalidRequest(why, provider=self.name) from error
            path = build_call_path(self._shape, call.path, request.model)
            call = call._replace(path=path)
            beside.warnings = call.warnings
            async with self._connection.open_reply(call, failures) as reply:
                beside.headers = reply.headers
                async with aclosing(self._read_events(reply, decoder, failures)) as batches:
                    async for batch in batches:
                        notes = beside if request.raw else None
                        for event in join_deltas(_decode_batch(decoder, batch, notes)):
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
        self, reply: HttpReply, decoder: Decoder, failures: ProviderFailures
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the data of the events that came together.

        A host that does not stream sends the answer as one JSON object: it becomes its events.
        Raises ModelError at the end, where no answer may end.
        """
        meter = decoder.meter
        has_frames = reply.headers.get("content-type", "").startswith(CONTENT_TYPE)
        events = (FrameParser if has_frames else EventParser)(meter.sizes.event)
        body = bytearray()
        deadline = _Deadline(self._limits, meter, failures)
        while (chunk := await deadline.read_chunk(reply)) is not None:
            meter.take_bytes(reply.unpacked, reply.received)
            meter.take_quiet(len(chunk))
            batch: list[bytes] = []
            failure: EventTooLong | DamagedFrame | None = None
            try:
                for data in events.feed(chunk):
                    batch.append(data)  # noqa: PERF402 (what came before an error counts)
            except (EventTooLong, DamagedFrame) as error:
                failure = error
            if any(batch):
                deadline.has_begun = True
                deadline.note_event()
                yield batch
            if failure is not None:
                _refuse_events(failure, meter, failures)
            # without any event the body is a whole answer, an error's, or none at all
            if not deadline.has_begun:
                body += chunk[: meter.sizes.event - len(body)]
        if not deadline.has_begun and not (has_frames and body):
            batch = [encode_json(event) for event in _split_body(decoder, bytes(body))]
            if not batch:
                raise failures.build_no_answer_error(bytes(body[:_SHOWN]))
            yield batch
        raise failures.build_stopped_error()


def _refuse_events(
    failure: EventTooLong | DamagedFrame, meter: AnswerMeter, failures: ProviderFailures
) -> None:
    """Raise the error for bytes that hold no event, or one that is too long."""
    if isinstance(failure, DamagedFrame):
        raise failures.build_stream_error(f"sent a damaged answer: {failure}")
    meter.refuse_answer(f"sent {failure} of more than {format_size_limit(meter.sizes.event)}")


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
    decoder: Decoder, batch: list[bytes], notes: _AnswerNotes | None
) -> Iterator[StreamEvent]:
    """Yield the stream events of some server-sent ones, up to the end of the answer.

    Their data is kept in `notes`, if given. Raises ModelError.
    """
    meter = decoder.meter
    for data in filter(None, batch):
        meter.take_data(data)
        if notes is not None:
            notes.keep_data(data)
        for event in decoder.feed(data):
            meter.take_event(event)
            yield event
        if decoder.finished:
            return


def _choose_shape(preset: Preset) -> Preset:
    """Return the preset by which calls are encoded: a cloud's class of an SDK does the rest."""
    if preset.transport != "sdk" or not preset.sdk_client:
        return preset
    return replace(preset, path="", query={}, model_in_path=False)


def _create_client(route: Route, sdk: str | None) -> EndpointClient:
    """Return what sends the calls of a route."""
    if route.preset.transport != "sdk" or sdk is None:
        return HttpClient(route)
    from .sdk_client import SdkClient  # needs packages that may be missing

    return SdkClient(route, sdk)
