"""Server-sent events: the bytes of one, and a stream that says every now and then that it lives.

Whoever reads gives up a connection that says nothing for long, so silence is filled with comments.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

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
        self, look: Callable[[], Awaitable[Iterable[bytes]]], seconds: float
    ) -> AsyncIterator[bytes]:
        """Yield what `look` returns, now and every few seconds, until it is closed."""
        yield b": connected\n\n"
        silent = 0.0
        while not self.is_closed:
            changed = self._changed
            for event in await look():
                silent = 0.0
                yield event
            silent += seconds
            if silent > _ALIVE_SECONDS:
                silent = 0.0
                yield b": alive\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), seconds)

    async def stream(self, take: Callable[[], Iterable[bytes]]) -> AsyncIterator[bytes]:
        """Yield what `take` returns, now and after each ring, until it is closed."""
        yield b": connected\n\n"
        while not self.is_closed:
            changed = self._changed
            for event in take():
                yield event
            try:
                await asyncio.wait_for(changed.wait(), _ALIVE_SECONDS)
            except TimeoutError:
                yield b": alive\n\n"
