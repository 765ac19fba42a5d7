"""`gong rpc`: requests on standard input, answers and events on standard output, a line each.

Nothing else is written to standard output: what a library prints goes to standard error. At the end
of the input, what was asked is answered, questions are denied, and all sessions are closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from tape.formats.wire import encode_json

from ..agent.events import encode_event
from ..signals import handle_signals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..agent.events import Event
    from ..hosting.hub import SessionHub


class LineWriter:
    """Writes lines to what was standard output; a reader that is gone ends the input, too."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._fd = os.dup(1)
        os.dup2(2, 1)
        self.on_gone: Callable[[], None] = lambda: None
        """Called when nobody reads any more, or nothing can be written."""
        self.is_gone = False
        self.failure: OSError | None = None
        """Why nothing can be written, such as a full disk; None where a reader is gone."""

    def write(self, line: bytes) -> None:
        """Write a line, whole."""
        if self.is_gone:
            return
        rest = memoryview(line + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            self.is_gone = True
            if not isinstance(error, ConnectionError):
                self.failure = error
            self.on_gone()

    def write_event(self, event: Event) -> None:
        """Write an event, with its kind as `type`."""
        self.write(encode_event(event))

    def write_answer(self, answer: dict[str, Any]) -> None:
        """Write the answer to a request."""
        self.write(encode_json(answer))


def _read_lines(put: Callable[[bytes | None], None]) -> None:
    """Give each line of standard input to `put`, and None at its end."""
    for line in sys.stdin.buffer:
        put(line)
    put(None)


async def serve_lines(
    hub: SessionHub, writer: LineWriter, answer: Callable[[bytes], Awaitable[dict[str, Any]]]
) -> None:
    """Answer requests until the input ends, nobody reads, or a signal ends the program.

    `answer` returns the answer to one request. Raises OSError when a line cannot be written.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    stopping = asyncio.Event()

    def put(line: bytes | None) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, line)

    def stop() -> None:
        stopping.set()
        lines.put_nowait(None)

    writer.on_gone = stop
    threading.Thread(target=_read_lines, args=(put,), daemon=True).start()
    tasks: set[asyncio.Task[None]] = set()

    async def take_request(line: bytes) -> None:
        writer.write_answer(await answer(line))

    with handle_signals((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), stop):
        while (line := await lines.get()) is not None:
            if line.strip():
                task = asyncio.create_task(take_request(line))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                await asyncio.sleep(0)  # requests begin in their order
        hub.ask_nobody()
        if not stopping.is_set():
            stop_comes = asyncio.create_task(stopping.wait())
            everything = asyncio.gather(*tasks)
            everything.add_done_callback(lambda _: stopping.set())
            await stop_comes
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await hub.close_all()
    if writer.failure is not None:
        raise writer.failure
