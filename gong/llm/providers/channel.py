"""The way to one provider, alike on every wire: limits in time, and failures as errors of ours.

An answer ends with exactly one Finish or Failed, and begins within `first_byte`; no silence in it
is longer than `idle`. No key gets into a text.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Protocol

from ...errors import ModelError, NetworkError, RequestTimeout, StreamError
from ..errors import provider_error, without_keys

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from ..presets import Preset
    from ..types import StreamEvent

KEPT_SECONDS = 90.0
"""How long an idle connection is kept: tools run between two calls."""
KEPT = 10
"""How many are."""
_DRAIN_SECONDS = 0.1


class Decoder(Protocol):
    """Turns the data of one answer's server-sent events into ours."""

    finished: bool
    """The answer is whole: nothing more is read."""

    def feed(self, data: str) -> Iterator[StreamEvent]:
        """Yield what one event says; raises ModelError."""
        ...

    def ending(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of a stream that stopped with `error` before it finished."""
        ...


@dataclass(frozen=True, slots=True)
class Channel:
    """One provider as it is reached; `endpoint` has no slash at its end."""

    preset: Preset
    key: str = field(repr=False)
    endpoint: str

    async def answer(
        self, events: AsyncGenerator[str, None], decoder: Decoder
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield what the data of `events` means; closing it closes them."""
        limits = self.preset.timeouts
        limit, what = limits.first_byte, "begin its answer"
        try:
            async with aclosing(events):
                while (data := await self._next(events, limit, what)) is not None:
                    for event in decoder.feed(data):
                        yield event
                    if decoder.finished:
                        await _drained(events)
                        return
                    limit, what = limits.idle, "go on with its answer"
            raise self.wrong("stopped in the middle of its answer")
        except ModelError as error:
            for event in decoder.ending(error):
                yield event

    async def _next(self, events: AsyncGenerator[str, None], limit: float, what: str) -> str | None:
        """Return the data of the next event, None at the end; raises RequestTimeout."""
        try:
            async with asyncio.timeout(limit):
                return await anext(events, None)
        except TimeoutError:
            raise self._too_late(what, limit) from None

    def told(
        self,
        status: int | None,
        message: str,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> ModelError:
        """Return the error the provider tells of; `status` is None where it has none."""
        return provider_error(
            self.preset.name, status, message, code=code, retry_after=retry_after, key=self.key
        )

    def unreachable(self, error: BaseException) -> NetworkError:
        """Return the error for an answer that did not begin because of the network."""
        reason = without_keys(str(error), self.key) or type(error).__name__
        return NetworkError(f"cannot reach {self.endpoint}: {reason}", provider=self.preset.name)

    def broken(self, error: Exception) -> StreamError:
        """Return the error for an answer that broke off."""
        reason = without_keys(str(error), self.key) or type(error).__name__
        return self.wrong(f"broke off its answer: {reason}")

    def wrong(self, what: str) -> StreamError:
        """Return the error for an answer that makes no sense; `what` it did goes on from a name."""
        name = self.preset.name
        return StreamError(f"{name} {what}", provider=name)

    def _too_late(self, what: str, seconds: float) -> RequestTimeout:
        name = self.preset.name
        return RequestTimeout(f"{name} did not {what} within {seconds:g} s", provider=name)


async def _drained(events: AsyncGenerator[str, None]) -> None:
    """Read what is left of a finished answer, so that its connection can serve the next call."""
    with suppress(TimeoutError, ModelError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in events:
                pass


def retry_after(header: str | None) -> float | None:
    """Return a Retry-After, a number or a date, in seconds; None when there is none to be read."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return _until(header)
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return None
