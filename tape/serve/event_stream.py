"""Server-sent events: the bytes of one, and a stream that says every now and then that it lives.

Whoever reads gives up a connection that says nothing for long, so silence is filled with comments.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..errors import TapeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

MEDIA_TYPE = "text/event-stream"
HEADERS = {"cache-control": "no-store"}
_ALIVE_SECONDS = 15.0
"""Seconds without an event after which a comment says that the connection is alive."""


def encode_event_lines(data: bytes, *, number: int | str | None = None, name: str = "") -> bytes:
    """Return an event; its data are lines, and a number is what a reader comes back with.

    Instead of a number it may be a text of one line.
    """
    lines = [f"id: {number}".encode()] if number is not None else []
    if name:
        lines.append(b"event: " + name.encode())
    lines += [b"data: " + line for line in data.split(b"\n")]
    return b"\n".join(lines) + b"\n\n"


def read_last_number(header: str) -> int | None:
    """Return the number in `Last-Event-ID`; None where it has none."""
    return int(header) if header.isascii() and header.isdecimal() else None


class Bell:
    """Wakes all who wait, each time it rings; once closed nobody waits any more."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self.is_closed = False

    def ring(self) -> None:
        """Wake those who wait now."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def close(self) -> None:
        """Let all readers end."""
        self.is_closed = True
        self.ring()

    async def watch(
        self,
        look: Callable[[], Awaitable[Iterable[bytes]]],
        seconds: float,
        wait: Callable[[], Awaitable[object]] | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield what `look` returns, now and every few seconds, until it is closed.

        It is asked sooner where `wait` returns.
        """
        yield b": connected\n\n"
        silent = 0.0
        while not self.is_closed:
            changed = self._changed
            for event in await look():
                silent = 0.0
                yield event
            if silent >= _ALIVE_SECONDS:
                silent = 0.0
                yield b": alive\n\n"
            try:
                await asyncio.wait_for((wait or changed.wait)(), seconds)
            except TimeoutError:
                silent += seconds

    def stream(self, take: Callable[[], Iterable[bytes]]) -> AsyncIterator[bytes]:
        """Yield what `take` returns, now and after each ring, until it is closed."""

        async def look() -> Iterable[bytes]:
            return take()

        return self.watch(look, _ALIVE_SECONDS)


class Lookout:
    """Looks at many things by one timer, and wakes those who wait for one that changed.

    A look is a few microseconds, a task that wakes for it many times that. Nobody looks while
    nobody waits.
    """

    def __init__(self, bell: Bell, seconds: float) -> None:
        self._bell, self._seconds = bell, seconds
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, has_changed: Callable[[], bool]) -> None:
        """Return when something has changed, or the bell is closed; errors count as a change."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        self._waiting[woken] = has_changed
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look)
        try:
            await woken
        finally:
            del self._waiting[woken]

    def _look(self) -> None:
        for woken, has_changed in self._waiting.items():
            if not woken.done() and (self._bell.is_closed or _ask_safely(has_changed)):
                woken.set_result(None)
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)


def _ask_safely(has_changed: Callable[[], bool]) -> bool:
    try:
        return has_changed()
    except (TapeError, OSError):  # whoever reads next meets it
        return True
