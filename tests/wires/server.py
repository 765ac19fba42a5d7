"""A local HTTP server that speaks a provider's wire: real bytes, chopped, stalled or cut."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass, field

from gong.llm.accumulate import StreamAccumulator, join_deltas

REASONS = {200: "OK"}


@dataclass
class Reply:
    """One answer of the server."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"
    chunk: int | None = None
    """Bytes in each HTTP chunk; None sends the body as one."""
    pause: float = 0
    """Seconds before each chunk."""
    stall: bool = False
    """Go silent after the body until the client hangs up."""
    mute: bool = False
    """Say nothing at all until the client hangs up."""
    cut: bool = False
    """Break the connection after the body, in the middle of the response."""


@dataclass
class Seen:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict
    sent: bytes
    """The body as it came."""


def sse(*events, crlf=False):
    """Return events as server-sent events: each is the JSON object of its data."""
    end = "\r\n" if crlf else "\n"
    return "".join(
        f"event: {event['type']}{end}data: {json.dumps(event, ensure_ascii=False)}{end}{end}"
        for event in events
    ).encode()


def chunks(*events, end="data: [DONE]", crlf=False):
    """Return events as streams have them whose events have no names, with `end` after them."""
    lines = [*(f"data: {json.dumps(event, ensure_ascii=False)}" for event in events), end]
    newline = "\r\n" if crlf else "\n"
    return "".join(f"{line}{newline}{newline}" for line in lines if line).encode()


async def events_of(provider, request):
    """Return all events of one answer, and close the provider."""
    try:
        async with aclosing(provider.stream(request)) as stream:
            return [event async for event in stream]
    finally:
        await provider.close()


def joined(events):
    """Return the events with pieces joined: how many there are depends on how the bytes came."""
    return list(join_deltas(events))


def accumulated(events):
    """Return the whole answer that events make; raises what it failed with."""
    answer = StreamAccumulator("c_00000000")
    for event in events:
        answer.process(event)
    return answer.response()


def json_reply(status, body, **headers):
    """Return a plain JSON answer, such as an error."""
    return Reply(json.dumps(body).encode(), status, headers, "application/json")


class WireServer:
    """Listens on 127.0.0.1 while it is entered; gives its replies in order, the last one again."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests: list[Seen] = []
        self.connections = 0
        self.hung_up = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._tasks = set()
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._converse(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _converse(self, reader, writer):
        while True:
            self.requests.append(await _read_request(reader))
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            if reply.mute:
                await self._wait_for_the_end(reader)
                return
            await _write_head(writer, reply)
            for part in _parts(reply):
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()
                await asyncio.sleep(reply.pause)
            if reply.cut:
                return
            if reply.stall:
                await self._wait_for_the_end(reader)
                return
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    async def _wait_for_the_end(self, reader):
        await reader.read()
        self.hung_up.set()


async def _read_request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    request_line, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(request_line.split()[1], headers, json.loads(body or b"{}"), body)


async def _write_head(writer, reply):
    headers = {
        "content-type": reply.content_type,
        "transfer-encoding": "chunked",
        **{name.replace("_", "-"): value for name, value in reply.headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(
        f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'No')}\r\n{lines}\r\n".encode()
    )
    await writer.drain()


def _parts(reply):
    size = reply.chunk or max(len(reply.body), 1)
    return [reply.body[start : start + size] for start in range(0, len(reply.body), size)]
