"""The lines between an editor and the agent: what the protocol's package does not do itself.

what comes                         what the package is given
---------------------------------  ---------------------------------------------------------
a line that is not JSON            nothing: it is answered with -32700, what is no request, and
                                   an answer that nobody waits for, with -32600
bytes that are not UTF-8           U+FFFD for each, and for half a surrogate pair
session/delete                     an extension method of that name
$/cancel_request of a prompt       session/cancel of its session: the prompt answers `cancelled`
$/cancel_request of anything else  nothing: it is answered soon
the end of the input               its end, when what was asked is answered

Input and output may be pipes, sockets, terminals and files.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeGuard

from acp import AgentSideConnection

from tape.formats.wire import clean_value, decode_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from .agent import AcpAgent

_EXTENSIONS = ("session/delete",)
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
_READ_BYTES = 1 << 16


class EditorTransport:
    """Lines of JSON on two streams (`acp.connection.Transport`)."""

    def __init__(
        self,
        lines: asyncio.Queue[bytes | None],
        output: asyncio.StreamWriter | int,
        on_end: Callable[[], None],
    ) -> None:
        """`output` is a stream, or a file; `on_end` is called at the end of the input."""
        self._lines, self._output, self._on_end = lines, output, on_end
        self._prompts: dict[str | int, str] = {}
        """Session of each prompt that is not answered yet, by the id of the request."""
        self._open: set[str | int] = set()
        """Requests that are not answered yet."""
        self._asked: set[str | int] = set()
        """Requests to the editor that it has not answered yet."""
        self._answered = asyncio.Event()
        self._writing = asyncio.Lock()
        self._is_gone = False
        """Whether nobody reads any more, or nothing can be written."""
        self.failure: OSError | None = None
        """Why nothing can be written, such as a full disk; None where a reader is gone."""

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message for the package; None at the end of the input."""
        while (line := await self._lines.get()) is not None:
            if not line.strip():
                continue
            message = await self._read_message(line)
            if message is None:
                continue
            params = message.get("params")
            match message.get("method"):
                case "session/prompt" if isinstance(params, dict) and "id" in message:
                    self._prompts[message["id"]] = str(params.get("sessionId"))
                case "$/cancel_request":
                    request_id = params.get("requestId") if isinstance(params, dict) else None
                    session = self._prompts.get(request_id) if _is_id(request_id) else None
                    if session is None:
                        continue
                    return {
                        "jsonrpc": "2.0",
                        "method": "session/cancel",
                        "params": {"sessionId": session},
                    }
                case method if method in _EXTENSIONS:
                    message = {**message, "method": f"_{method}"}
            if "method" in message and message.get("id") is not None:
                self._open.add(message["id"])
            return message
        self._on_end()
        while self._open and not self._is_gone:
            self._answered.clear()
            await self._answered.wait()
        return None

    async def _read_message(self, line: bytes) -> dict[str, Any] | None:
        """Return the message of a line; None after the answer to one that is none."""
        try:
            message = decode_json(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            await self._refuse(_PARSE_ERROR, f"this line is not JSON: {error}")
            return None
        identity = message.get("id") if isinstance(message, dict) else None
        is_call = isinstance(message, dict) and (
            isinstance(message.get("method"), str)
            or ("method" not in message and ("result" in message or "error" in message))
        )
        if not is_call or not (identity is None or _is_id(identity)):
            await self._refuse(
                _INVALID_REQUEST,
                "a message is an object: {jsonrpc, id, method, params}",
                identity if _is_id(identity) else None,
            )
            return None
        if "method" not in message:
            if identity not in self._asked:
                await self._refuse(_INVALID_REQUEST, f"no request {identity!r} waits for an answer")
                return None
            self._asked.remove(identity)
        return dict(message)

    async def _refuse(self, code: int, text: str, identity: str | int | None = None) -> None:
        error = {"code": code, "message": text}
        await self.send({"jsonrpc": "2.0", "id": identity, "error": error})

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; one that nobody reads any more is dropped."""
        if "method" in message and "id" in message:
            self._asked.add(message["id"])
        if not self._is_gone:
            sent = clean_value(message)
            line = json.dumps(sent, separators=(",", ":"), default=str).encode() + b"\n"
            async with self._writing:
                try:
                    await self._write(line)
                except OSError as error:
                    self._is_gone = True
                    if not isinstance(error, ConnectionError):
                        self.failure = error
                    self._lines.put_nowait(None)
        if "method" not in message:
            self._prompts.pop(message.get("id", ""), None)
            self._open.discard(message.get("id", ""))
        self._answered.set()

    async def _write(self, line: bytes) -> None:
        if isinstance(self._output, asyncio.StreamWriter):
            self._output.write(line)
            await self._output.drain()
            return
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._output, rest) :]

    async def close(self) -> None:
        """Stop."""


def _is_id(value: object) -> TypeGuard[str | int]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _read_lines(descriptor: int, put: Callable[[bytes | None], None]) -> None:
    """Give each line of a file to `put`, and None at its end."""
    parts: list[bytes] = []
    with suppress(OSError):
        while data := os.read(descriptor, _READ_BYTES):
            first, *more = data.split(b"\n")
            parts.append(first)
            for part in more:
                put(b"".join(parts))
                parts = [part]
    put(b"".join(parts))
    put(None)


async def _open_output(descriptor: int) -> asyncio.StreamWriter | int:
    """Return what is written to: a stream, or the file itself where writing never waits."""
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return descriptor
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", closefd=False)
    )
    transport.set_write_buffer_limits(0)  # what was sent has left when sending returns
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def serve_editor(agent: AcpAgent, output: int) -> None:
    """Serve the editor on standard input and the file `output` until the input ends.

    Raises OSError when an answer cannot be written; that nobody reads any more is the end.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def put(line: bytes | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lines.put_nowait, line)

    transport = EditorTransport(lines, await _open_output(output), agent.end_runs)
    threading.Thread(target=_read_lines, args=(0, put), daemon=True).start()
    # session/close and session/resume are stable; the package still asks for this.
    connection = AgentSideConnection(agent, transport, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await connection.close()
    if transport.failure is not None:
        raise transport.failure
