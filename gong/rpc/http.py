"""`gong serve`: the methods of `gong rpc` over HTTP, and events as server-sent events.

    POST /rpc             a request as JSON → its answer; `prompt` is answered at the end of its run
    GET  /events          every event from now on; `?session=ID` of one session only
                          with `Last-Event-ID`, those since then first, as far as they are kept
    GET  /schema          the JSON Schema

Every request needs the token as `Authorization: Bearer TOKEN`, or is refused with 401. The names in
`Host` and `Origin` have to be those of this machine, so that no page of a browser gets in by a name
that leads here: 403 otherwise.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections import deque
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tape.formats.wire import encode_json

from ..agent.events import encode_event
from ..errors import ConfigurationError
from .methods import build_json_schema

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from typing import Any, TypeAlias

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from ..agent.events import Event
    from ..hosting.hub import SessionHub

    AnswerRequest: TypeAlias = Callable[[bytes], Awaitable[dict[str, Any]]]

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names that only this machine has."""
_MAX_KEPT = 10_000
"""Events that are kept for those who come back."""
_MAX_BYTES = 32 * 1024 * 1024
"""Largest request."""
_ALIVE_SECONDS = 15.0
"""Seconds without an event after which a comment says that the connection is alive."""


class KeptEvent(NamedTuple):
    """An event as it is sent."""

    number: int
    session: str
    data: bytes


class EventLog:
    """The newest events of all sessions, for any number of readers."""

    def __init__(self) -> None:
        self._kept: deque[KeptEvent] = deque(maxlen=_MAX_KEPT)
        self._number = 0
        self._changed = asyncio.Event()
        self._is_closed = False

    def add(self, event: Event) -> None:
        """Add an event, and wake the readers."""
        self._number += 1
        self._kept.append(KeptEvent(self._number, event.session, encode_event(event)))
        self._notify_readers()

    def close(self) -> None:
        """Let all readers end."""
        self._is_closed = True
        self._notify_readers()

    def _notify_readers(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def read(self, since: int | None, session: str | None) -> AsyncGenerator[bytes, None]:
        """Yield what is sent to one reader: events after number `since`, None for only new ones."""
        last = self._number if since is None else since
        yield b": connected\n\n"
        while not self._is_closed:
            changed = self._changed
            for event in [*self._kept]:
                if event.number > last:
                    last = event.number
                    if session in {None, event.session}:
                        yield b"id: %d\ndata: %b\n\n" % (event.number, event.data)
            try:
                await asyncio.wait_for(changed.wait(), _ALIVE_SECONDS)
            except TimeoutError:
                yield b": alive\n\n"


def build_application(
    answer: AnswerRequest, log: EventLog, token: str, names: frozenset[str]
) -> Starlette:
    """Return the web application; `names` are the hosts that requests may name."""
    from starlette.applications import Starlette  # an extra
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    def refuse(request: Request) -> Response | None:
        refusal = _find_refusal(request, token, names)
        return None if refusal is None else JSONResponse({"error": refusal[1]}, refusal[0])

    async def take_request(request: Request) -> Response:
        if (refused := refuse(request)) is not None:
            return refused
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _MAX_BYTES:
                return JSONResponse({"error": f"a request has at most {_MAX_BYTES} bytes"}, 413)
        return Response(encode_json(await answer(body)), media_type="application/json")

    async def send_events(request: Request) -> Response:
        if (refused := refuse(request)) is not None:
            return refused
        last = request.headers.get("last-event-id", "")
        since = int(last) if last.isdecimal() else None
        stream = log.read(since, request.query_params.get("session"))
        headers = {"cache-control": "no-store"}
        return StreamingResponse(stream, headers=headers, media_type="text/event-stream")

    async def send_schema(request: Request) -> Response:
        return refuse(request) or JSONResponse(build_json_schema())

    return Starlette(
        routes=[
            Route("/rpc", take_request, methods=["POST"]),
            Route("/events", send_events),
            Route("/schema", send_schema),
        ]
    )


def _find_refusal(request: Request, token: str, names: frozenset[str]) -> tuple[int, str] | None:
    """Return status and reason for a request that is refused; None for one that may be answered."""
    origin = request.headers.get("origin")
    hosts = [urlsplit(f"//{request.headers.get('host', '')}").hostname]
    hosts += [urlsplit(origin).hostname] if origin else []
    if not names.issuperset(hosts):
        return 403, "this address is only for this machine"
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(secret.encode(), token.encode()):
        return 401, "the token is missing or wrong"
    return None


async def serve_http(
    hub: SessionHub,
    answer: AnswerRequest,
    log: EventLog,
    where: tuple[str, int],
    announce: Callable[[str, str], None],
) -> None:
    """Serve at a host and port until a signal ends the program.

    `answer` returns the answer to one request; `announce` gets the address and the token.
    Raises ConfigurationError without the extra, or where the address cannot be used.
    """
    try:
        import uvicorn  # an extra
    except ImportError as error:
        raise ConfigurationError("gong serve needs `pip install 'gong[serve]'`") from error
    host, port = where
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(f"{host}:{port} cannot be used: {error.strerror}") from error
    token = secrets.token_urlsafe(32)
    names = LOCAL_NAMES | {host}
    application = build_application(answer, log, token, names)
    config = uvicorn.Config(
        application, log_level="warning", lifespan="off", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    shown_host = f"[{host}]" if ":" in host else host
    announce(f"http://{shown_host}:{bound.getsockname()[1]}", token)
    ending = asyncio.create_task(_end_readers(server, log))
    try:
        await server.serve(sockets=[bound])
    finally:
        ending.cancel()
        log.close()
        hub.ask_nobody()
        await hub.close_all()


async def _end_readers(server: object, log: EventLog) -> None:
    """Let readers of events end with the server, which waits for them."""
    while not getattr(server, "should_exit", False):  # noqa: ASYNC110 (it has no event)
        await asyncio.sleep(0.1)
    log.close()
