"""A port of the loopback address that a browser comes back to after a login.

    gong ─▶ authority in the browser ─▶ http://127.0.0.1:PORT/callback?code=…&state=… ─▶ gong

Only a visit with the `state` that the login began with counts; any other page may send one.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

from ..errors import AuthenticationError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

LOGIN_SECONDS = 300.0
"""How long a login waits for the browser."""
_MAX_REQUEST_BYTES = 16_384
_HEAD = "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n{}\n"
_DONE = _HEAD.format("200 OK", "You can close this page: gong has what it needs.")
_OTHER = _HEAD.format("400 Bad Request", "This is not the login that gong waits for.")


class CallbackResult(NamedTuple):
    """What a browser brought."""

    code: str
    state: str | None
    issuer: str | None


class CallbackServer(NamedTuple):
    """The port that a browser comes back to."""

    redirect: str
    result: asyncio.Future[CallbackResult]

    async def wait(self, seconds: float = LOGIN_SECONDS) -> CallbackResult:
        """Return what the browser brought. Raises AuthenticationError."""
        try:
            async with asyncio.timeout(seconds):
                return await self.result
        except TimeoutError:
            raise AuthenticationError(f"the login was not completed within {seconds:g} s") from None


@asynccontextmanager
async def serve_callback(
    state: str | None = None, port: int = 0
) -> AsyncGenerator[CallbackServer, None]:
    """Listen on the loopback address for the browser.

    Visits with another `state` change nothing; None takes every state, and leaves it to the caller.
    """
    result: asyncio.Future[CallbackResult] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readline())[:_MAX_REQUEST_BYTES].decode("ascii", "replace")
            while (await reader.readline()).strip():
                pass  # the headers
            is_ours = _take_callback(line.split(" ")[1] if " " in line else "", result, state)
            writer.write((_DONE if is_ours else _OTHER).encode())
            await writer.drain()
        except (ValueError, ConnectionError):
            pass  # a line too long, or a visitor who has left
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, "127.0.0.1", port, limit=_MAX_REQUEST_BYTES)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on port {port}: {error.strerror}") from None
    async with server:
        number = server.sockets[0].getsockname()[1]
        yield CallbackServer(f"http://127.0.0.1:{number}/callback", result)


def _take_callback(target: str, result: asyncio.Future[CallbackResult], state: str | None) -> bool:
    """Settle a login by the address that a browser asks for; return whether it is the login's."""
    address = urlsplit(target)
    query = {key: values[0] for key, values in parse_qs(address.query).items()}
    is_ours = address.path == "/callback" and (state is None or query.get("state") == state)
    if not is_ours or result.done():
        return is_ours
    if "code" in query:
        result.set_result(CallbackResult(query["code"], query.get("state"), query.get("iss")))
    else:
        reason = query.get("error_description") or query.get("error") or "it brought no code"
        result.set_exception(AuthenticationError(f"the login was refused: {reason}"))
    return True
