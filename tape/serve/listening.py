"""A web application on a port of this machine, until a signal ends the program.

Whoever asks is the peer of the socket: no header of a proxy changes that.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import uvicorn

from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.applications import Starlette

_GRACE_SECONDS = 2


def open_port(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; raise UsageError where it cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(f"{host}:{port} cannot be used: {error.strerror}") from error


def format_address(host: str, bound: socket.socket) -> str:
    """Return the address of a socket as a URL without a path."""
    shown_host = f"[{host}]" if ":" in host else host
    return f"http://{shown_host}:{bound.getsockname()[1]}"


async def serve_application(
    application: Starlette, bound: socket.socket, end_streams: Callable[[], None]
) -> None:
    """Serve until a signal ends the program; `end_streams` lets readers of events end with it."""
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = uvicorn.Server(config)
    ending = asyncio.create_task(_end_streams(server, end_streams))
    try:
        await server.serve(sockets=[bound])
    finally:
        ending.cancel()
        end_streams()


async def _end_streams(server: object, end_streams: Callable[[], None]) -> None:
    """Let readers of events end with the server, which waits for them."""
    while not getattr(server, "should_exit", False):  # noqa: ASYNC110 (it has no event)
        await asyncio.sleep(0.1)
    end_streams()
