"""How a server is reached: a process that speaks on its pipes, or an address.

A transport tells when its server is gone, because the SDK only tells whoever waits for an answer,
and corrects odd answers before the SDK checks them (`answer_check`).
"""

from __future__ import annotations

import json
import os
import re
import warnings
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TextIO

import anyio
import mcp_types as types
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from tape.formats.wire import clean_value

from ..private_files import locate_state_folder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    import httpx2
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream

    from ..env.sandbox.sandbox import Sandbox
    from .answer_check import AnswerCheck
    from .servers import ServerConfig

_MAX_LOG_BYTES = 1_000_000
"""A log that is larger is emptied with the next start of its server."""
_PERSON_SECONDS = 3600.0
"""A request that waits for an answer of a person may take so long without a byte."""


def locate_log(name: str, environ: Mapping[str, str]) -> Path:
    """Return the file of what a server writes to its standard error."""
    return locate_state_folder(environ) / "mcp" / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.log"


@asynccontextmanager
async def open_transport(
    server: ServerConfig,
    variables: Mapping[str, str],
    folder: str,
    log: Path,
    answers: AnswerCheck,
    *,
    auth: httpx2.Auth | None = None,
    on_end: Callable[[], None] = lambda: None,
    sandbox: Sandbox | None = None,
) -> AsyncGenerator[TransportStreams, None]:
    """Reach a server; `on_end` is called when it ends its side, `answers` corrects its answers.

    A process gets `variables` and those of its entry, runs in `folder`, and writes its errors to
    `log`. With a `sandbox` it runs inside. Raises OSError where it cannot be started.
    """
    async with AsyncExitStack() as stack:
        if server.kind == "stdio":
            errors = stack.enter_context(_open_log(log))
            words, all_variables = [server.command, *server.args], {**variables, **server.env}
            if sandbox is not None:
                words, all_variables = sandbox.wrap(words, all_variables)
            parameters = StdioServerParameters(
                command=words[0],
                args=words[1:],
                env=all_variables,
                cwd=server.cwd or folder,
                encoding_error_handler="replace",
            )
            streams = await stack.enter_async_context(stdio_client(parameters, errlog=errors))
        elif server.kind == "sse":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the transport is deprecated, and still in use
                streams = await stack.enter_async_context(
                    sse_client(
                        server.url,
                        headers={**server.headers},
                        sse_read_timeout=_PERSON_SECONDS,
                        auth=auth,
                    )
                )
        else:
            client = await stack.enter_async_context(
                create_mcp_http_client(headers={**server.headers}, auth=auth)
            )
            client.timeout = type(client.timeout)(30.0, read=_PERSON_SECONDS)
            streams = await stack.enter_async_context(
                streamable_http_client(server.url, http_client=client)
            )
        reading, writing = streams
        yield _WatchedStream(reading, on_end, answers), _NotedRequests(writing, answers)


def _open_log(log: Path) -> TextIO:
    """Open the log of a server for writing at its end; only its owner may read it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    is_long = log.exists() and log.stat().st_size > _MAX_LOG_BYTES
    begin = os.O_TRUNC if is_long else os.O_APPEND
    return os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | begin, 0o600), "w", encoding="utf-8")


class _WatchedStream:
    """A stream of messages, with answers corrected, that tells when it is at its end."""

    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        on_end: Callable[[], None],
        answers: AnswerCheck,
    ) -> None:
        self._inner, self._on_end, self._answers = inner, on_end, answers

    @property
    def last_context(self) -> Any:
        """The context in which the newest message was sent, where the transport knows it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            return self._normalize_answer(await self._inner.receive())
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._on_end()
            raise

    def _normalize_answer(self, received: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(received, ValidationError):
            received = _read_odd_line(received)
        if isinstance(received, Exception) or not isinstance(
            received.message, types.JSONRPCResponse
        ):
            return received
        answer = received.message
        result = self._answers.normalize_answer(answer.id, answer.result)
        return SessionMessage(answer.model_copy(update={"result": result}), received.metadata)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return self._normalize_answer(await self._inner.__anext__())
        except (StopAsyncIteration, anyio.ClosedResourceError):
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def _read_odd_line(error: ValidationError) -> SessionMessage | Exception:
    """Return the message of a line that the SDK could not read; the error where it is none.

    Half a surrogate pair in it becomes U+FFFD, and control characters in its texts stay.
    """
    try:
        value = json.loads(error.errors(include_url=False)[0]["input"], strict=False)
        message = types.jsonrpc_message_adapter.validate_python(clean_value(value), by_name=False)
    except (TypeError, ValueError, RecursionError):
        return error
    return SessionMessage(message)


class _NotedRequests:
    """A stream of messages to a server whose requests are noted, for their answers."""

    def __init__(self, inner: WriteStream[SessionMessage], answers: AnswerCheck) -> None:
        self._inner, self._answers = inner, answers

    async def send(self, item: SessionMessage, /) -> None:
        if isinstance(item.message, types.JSONRPCRequest):
            request = item.message
            self._answers.note_request(request.id, request.method, request.params)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)
