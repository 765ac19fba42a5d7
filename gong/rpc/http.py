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

import secrets
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import UsageError
from tape.formats.wire import encode_json
from tape.serve.access import (
    LOCAL_NAMES,
    WRONG_TOKEN,
    find_foreign_name,
    is_token,
    read_bearer,
)
from tape.serve.event_stream import (
    HEADERS,
    MEDIA_TYPE,
    Bell,
    encode_event_lines,
    read_last_number,
)

from ..agent.events import encode_event
from ..errors import ConfigurationError
from .methods import build_json_schema

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from typing import Any, TypeAlias

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from ..agent.events import Event
    from ..hosting.hub import SessionHub

    AnswerRequest: TypeAlias = Callable[[bytes], Awaitable[dict[str, Any]]]

_MAX_KEPT = 10_000
"""Events that are kept for those who come back."""
_MAX_BYTES = 32 * 1024 * 1024
"""Largest request."""


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
        self._bell = Bell()

    def add(self, event: Event) -> None:
        """Add an event, and wake the readers."""
        self._number += 1
        self._kept.append(KeptEvent(self._number, event.session, encode_event(event)))
        self._bell.ring()

    def close(self) -> None:
        """Let all readers end."""
        self._bell.close()

    def read(self, since: int | None, session: str | None) -> AsyncIterator[bytes]:
        """Yield what is sent to one reader: events after number `since`, None for only new ones."""
        last = self._number if since is None else since

        def take_new() -> Iterator[bytes]:
            nonlocal last
            for event in [*self._kept]:
                if event.number > last:
                    last = event.number
                    if session in {None, event.session}:
                        yield encode_event_lines(event.data, number=event.number)

        return self._bell.stream(take_new)


def build_application(
    answer: AnswerRequest, log: EventLog, token: str, names: frozenset[str]
) -> Starlette:
    """Return the web application; `names` are the hosts that requests may name."""
    from starlette.applications import Starlette  # an extra
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    def refuse(request: Request) -> Response | None:
        refusal = find_foreign_name(request.headers, names)
        if refusal is None and not is_token(read_bearer(request.headers), token):
            refusal = WRONG_TOKEN
        return None if refusal is None else JSONResponse({"error": refusal.reason}, refusal.status)

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
        since = read_last_number(request.headers.get("last-event-id", ""))
        stream = log.read(since, request.query_params.get("session"))
        return StreamingResponse(stream, headers=HEADERS, media_type=MEDIA_TYPE)

    async def send_schema(request: Request) -> Response:
        return refuse(request) or JSONResponse(build_json_schema())

    return Starlette(
        routes=[
            Route("/rpc", take_request, methods=["POST"]),
            Route("/events", send_events),
            Route("/schema", send_schema),
        ]
    )


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
        from tape.serve.listening import format_address, open_port, serve_application  # an extra
    except ImportError as error:
        raise ConfigurationError("gong serve needs `pip install 'gong[serve]'`") from error
    host, port = where
    try:
        bound = open_port(host, port)
    except UsageError as error:
        raise ConfigurationError(str(error)) from error
    token = secrets.token_urlsafe(32)
    application = build_application(answer, log, token, LOCAL_NAMES | {host})
    announce(format_address(host, bound), token)
    try:
        await serve_application(application, bound, log.close)
    finally:
        hub.ask_nobody()
        await hub.close_all()
