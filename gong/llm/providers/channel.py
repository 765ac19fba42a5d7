"""One answer from its call to its last event, alike on every wire.

It ends with exactly one Finish or Failed, begins within `first_byte`, and no silence in it is
longer than `idle`.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ...errors import InvalidRequest, ModelError
from ..types import Finish
from .connection import Connection, Route
from .failures import Failures
from .limits import rate_limit
from .sse import Events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from ..presets import Preset
    from ..types import StreamEvent
    from .connection import Call, Reply, Sdk

_SHOWN = 65_536
"""Bytes that are kept of an answer in which there is no event yet."""


class Decoder(Protocol):
    """Turns the data of one answer's server-sent events into ours."""

    finished: bool
    """The answer is whole: nothing more is read."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield what one event says; raises ModelError."""
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the last events of a finished answer."""
        ...

    def ending(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of one that stopped with `error` before it was finished."""
        ...


class _Beside:
    """What is known of an answer beside its events, for the last of them."""

    def __init__(self) -> None:
        self.warnings: tuple[str, ...] = ()
        self.headers: Mapping[str, str] = {}
        self._raw: list[Raw] = []

    def take(self, data: bytes) -> None:
        """Keep the data of an event, which is JSON but for the mark of the end."""
        if data.startswith((b"{", b"[{")):
            self._raw.append(Raw(data))

    def told(self, event: StreamEvent) -> StreamEvent:
        """Return the event, a Finish with what stands here."""
        if not isinstance(event, Finish):
            return event
        raw, limits = tuple(self._raw), rate_limit(self.headers)
        warnings = (*self.warnings, *event.warnings)
        return replace(event, warnings=warnings, rate_limit=limits, raw=raw)


class Channel:
    """The way to one provider."""

    def __init__(self, sdk: Sdk, preset: Preset, key: str, endpoint: str) -> None:
        self.failures = Failures(preset.name, key, endpoint)
        self._limits = preset.timeouts
        self._connection = Connection(sdk, Route(preset, key, endpoint), self.failures)

    async def answer(
        self, write: Callable[[], Call], decoder: Decoder, *, keep: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer to a call; closing it closes the connection.

        With `keep` the last event holds what the provider sent.
        """
        beside = _Beside()
        try:
            call = self._written(write)
            beside.warnings = call.warnings
            async with self._connection.reply(call) as reply:
                beside.headers = reply.headers
                async with aclosing(self._data(reply)) as found:
                    async for data in found:
                        if keep:
                            beside.take(data)
                        for event in decoder.feed(data):
                            yield event
                        if decoder.finished:
                            break
                for event in decoder.finish():
                    yield beside.told(event)
                await reply.drain()
        except ModelError as error:
            for event in decoder.ending(error):
                yield beside.told(event)

    async def close(self) -> None:
        """Let go of connections."""
        await self._connection.close()

    async def _data(self, reply: Reply) -> AsyncGenerator[bytes, None]:
        """Yield the data of each event; raises ModelError at the end, where no answer may end."""
        events, seen, limit = Events(), b"", self._limits.first_byte
        begun = False
        while (chunk := await reply.next(limit, begun=begun)) is not None:
            for data in filter(None, events.feed(chunk)):
                begun, limit = True, self._limits.idle
                yield data
            if not begun:
                seen = (seen + chunk)[:_SHOWN]
        raise self.failures.stopped() if begun else self.failures.unanswered(seen)

    def _written(self, write: Callable[[], Call]) -> Call:
        try:
            return write()
        except msgspec.MsgspecError as error:
            why = f"the request is no JSON: {error}"
            raise InvalidRequest(why, provider=self.failures.provider) from error
