"""The way to the network for programs inside the sandbox: a proxy that opens allowed hosts only.

It listens where programs inside can reach it and nothing else, and speaks HTTP: CONNECT, and plain
requests of http addresses. For each request

    name            judged by the patterns (`addresses.refuse_host`)
    addresses       resolved once; every one is judged (`addresses.refuse_address`)
    connection      to one of these addresses, and refused where it leads back to this machine

A refusal is an answer 403 that says why, and is kept for the result of the command.
"""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from .addresses import refuse_address, refuse_host

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Awaitable, Callable, Sequence

    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
    """Returns the addresses of a host."""
    RefuseAddress = Callable[[str, Sequence[str]], str]

_MAX_HEAD_BYTES = 65_536
_HEAD_SECONDS, _CONNECT_SECONDS = 30.0, 30.0
_CHUNK_BYTES = 65_536
_MAX_REFUSALS = 20
_DROPPED = re.compile(rb"(?:proxy-[\w-]+|connection|keep-alive|host)\s*:", re.IGNORECASE)
_LOCAL = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")


class ProxyTarget(NamedTuple):
    """What a request wants to reach."""

    host: str
    port: int
    head: bytes = b""
    """What is sent there first; nothing for CONNECT, after which the program speaks itself."""


class _Refused(Exception):
    """A request that is not let through; the text says why."""


async def resolve_host(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host; raises OSError where it has none."""
    loop = asyncio.get_running_loop()
    rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(row[4][0]) for row in rows))


def list_own_addresses() -> tuple[str, ...]:
    """Return the addresses of this machine, as far as the system tells."""
    own: list[str] = []
    with suppress(OSError):
        own += _LOCAL.findall(Path("/proc/net/fib_trie").read_text())
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().split("\n"):
            digits = line.partition(" ")[0]
            if digits:
                own.append(socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)))
    return tuple(dict.fromkeys(own))


class DomainProxy:
    """The proxy of one session; `start` it, and `close` it."""

    def __init__(
        self,
        allowed: Sequence[str],
        denied: Sequence[str] = (),
        *,
        resolve: Resolve = resolve_host,
        refuse: RefuseAddress = refuse_address,
    ) -> None:
        self._allowed, self._denied = tuple(allowed), tuple(denied)
        self._resolve, self._refuse = resolve, refuse
        self._server: asyncio.Server | None = None
        self._refusals: dict[str, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, path: str | None) -> int:
        """Listen on a socket at a path, else on a port of this machine, which is returned."""
        if path is not None:
            self._server = await asyncio.start_unix_server(self._serve, path)
            return 0
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()

    def take_refusals(self) -> tuple[str, ...]:
        """Return what was refused since the last use, as in "reaching a.org (it is not …)"."""
        refusals, self._refusals = self._refusals, {}
        return tuple(refusals)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await self._answer(reader, writer)
        except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
            pass  # either side left
        finally:
            writer.close()

    async def _answer(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            target = parse_request(head)
        except (asyncio.LimitOverrunError, asyncio.IncompleteReadError, ValueError):
            await _send_answer(writer, "400 Bad Request", "not a request for a proxy")
            return
        try:
            upstream = await self._connect(target)
        except _Refused as refusal:
            if len(self._refusals) < _MAX_REFUSALS:
                self._refusals[f"reaching {target.host} ({refusal})"] = None
            await _send_answer(writer, "403 Forbidden", f"{target.host}: {refusal}")
            return
        except (OSError, TimeoutError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            await _send_answer(
                writer, "502 Bad Gateway", f"{target.host}: {reason or 'it does not answer'}"
            )
            return
        there, to_there = upstream
        try:
            if target.head:
                to_there.write(target.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await writer.drain()
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy_stream(reader, to_there))
                group.create_task(_copy_stream(there, writer))
        finally:
            to_there.close()

    async def _connect(self, target: ProxyTarget) -> tuple[StreamReader, StreamWriter]:
        """Return a connection to what is allowed; raises _Refused, OSError, TimeoutError."""
        if why := refuse_host(target.host, self._allowed, self._denied):
            raise _Refused(why)
        addresses = await self._resolve(target.host, target.port)
        own = list_own_addresses()
        for address in addresses:
            if why := self._refuse(address, own):
                raise _Refused(why)
        failure: OSError = OSError(0, "it has no address")
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    reader, writer = await asyncio.open_connection(address, target.port)
            except OSError as error:
                failure = error
                continue
            here = writer.get_extra_info("sockname")
            if here and here[0] == address and self._refuse(address, (address,)):
                writer.close()
                raise _Refused(f"it leads to {address}, this machine")
            return reader, writer
        raise failure


def parse_request(head: bytes) -> ProxyTarget:
    """Return what a request wants to reach; raises ValueError for one that no proxy gets."""
    line, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, address, version = line.decode("ascii").split(" ")
    if version not in {"HTTP/1.1", "HTTP/1.0"}:
        raise ValueError("not HTTP")
    if method == "CONNECT":
        parts = urlsplit(f"//{address}")
        if not parts.hostname or parts.port is None:
            raise ValueError("no host")
        return ProxyTarget(parts.hostname, parts.port)
    parts = urlsplit(address)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("no http address")
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    port = parts.port or 80
    authority = parts.netloc.rpartition("@")[2]
    sent = [f"{method} {path} HTTP/1.1".encode(), f"Host: {authority}".encode()]
    sent += [field for field in fields if not _DROPPED.match(field)]
    # One request for each connection: the next one is judged, too.
    return ProxyTarget(parts.hostname, port, b"\r\n".join((*sent, b"Connection: close", b"", b"")))


async def _send_answer(writer: StreamWriter, status: str, text: str) -> None:
    body = f"gong sandbox: {text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    with suppress(OSError):
        await writer.drain()


async def _copy_stream(reader: StreamReader, writer: StreamWriter) -> None:
    """Pass on what comes until its end, and the end, too."""
    try:
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()
