"""One endpoint reached with one key: a body out, the bytes of an answer in, in time.

What sends is an SDK, or the HTTP client under all of them. It is imported by the first call, in a
thread, because that takes up to two seconds. Only errors of ours come out. A connection serves call
after call.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .patience import Patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from httpx2 import Response

    from ..presets import Preset
    from .failures import Failures

_KEPT = 10
"""How many idle connections are kept."""
_KEPT_SECONDS = 90.0
"""How long one is: tools run between two calls."""
_DRAIN_SECONDS = 0.1
"""How long the end of a finished answer is waited for; without it the connection is lost."""
_FIRST_ERROR = 400
_BEGIN, _GO_ON = "begin its answer", "go on with its answer"


class Call(NamedTuple):
    """What is sent: where below the endpoint, the body as JSON, and headers of this call only."""

    path: str
    body: bytes
    headers: dict[str, str]
    warnings: tuple[str, ...] = ()
    """What of the request has no place in it."""


class Modules(NamedTuple):
    """What is loaded late."""

    sdk: Any
    http: Any
    """The HTTP client under the SDK, whose errors come through while an answer is read."""


class Route(NamedTuple):
    """What a client is made for; `endpoint` has no slash at its end."""

    preset: Preset
    key: str
    endpoint: str

    def __repr__(self) -> str:
        return f"Route({self.preset.name!r}, {self.endpoint!r})"


class Limits(NamedTuple):
    """How a client keeps connections and waits, as values of the HTTP client's."""

    kept: Any
    timeout: Any


class Sdk(Protocol):
    """How an SDK is used."""

    package: str
    error: str
    """Name of the class that all its own errors have in common."""

    def client(self, modules: Modules, route: Route, limits: Limits) -> Any:
        """Return a client that tries nothing twice and takes nothing from the environment."""
        ...

    async def post(self, client: Any, modules: Modules, route: Route, call: Call) -> Response:
        """Return the response whatever its status; its body may be still to come."""
        ...

    async def close(self, client: Any) -> None:
        """Let go of the client's connections."""
        ...


class Reply:
    """The bytes of an answer on its way."""

    def __init__(
        self, response: Response, patience: Patience, failures: Failures, http: Any
    ) -> None:
        self._chunks = response.aiter_bytes()
        self._response, self._patience, self._failures = response, patience, failures
        self.headers: Mapping[str, str] = response.headers
        self._broken = (http.HTTPError, http.StreamError)

    async def next(self, seconds: float, *, begun: bool) -> bytes | None:
        """Return the next bytes, whatever is in them a sign of life; None at the end."""
        try:
            return await self._patience.wait(anext(self._chunks, None), seconds)
        except TimeoutError:
            raise self._failures.late(_GO_ON if begun else _BEGIN, seconds) from None
        except self._broken as error:
            raise self._failures.broken(error) from None

    async def drain(self) -> None:
        """Read what is left of a finished answer, so that its connection can be used again."""
        with suppress(TimeoutError, *self._broken):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._chunks:
                    pass

    async def close(self) -> None:
        """Close the connection, unless the answer was read to its end."""
        await self._response.aclose()
        await self._chunks.aclose()


class Connection:
    """Sends calls to one endpoint."""

    def __init__(self, sdk: Sdk, route: Route, failures: Failures) -> None:
        self._sdk, self._route, self._failures = sdk, route, failures
        self._modules: Modules | None = None
        self._client: Any = None

    @asynccontextmanager
    async def reply(self, call: Call) -> AsyncIterator[Reply]:
        """Send a call and give its answer; leaving closes it, and what was not read with it.

        Raises ModelError, also for an answer whose status says that it is none.
        """
        modules = self._modules
        if modules is None:
            modules = self._modules = await asyncio.to_thread(_loaded, self._sdk)
        patience = Patience()
        try:
            response = await self._answered(modules, patience, call)
            reply = Reply(response, patience, self._failures, modules.http)
            try:
                yield reply
            finally:
                await reply.close()
        finally:
            patience.close()

    async def close(self) -> None:
        """Let go of connections."""
        client, self._client = self._client, None
        if client is not None:
            await self._sdk.close(client)

    async def _answered(self, modules: Modules, patience: Patience, call: Call) -> Response:
        limit = self._route.preset.timeouts.first_byte
        try:
            response = await patience.wait(self._sent(modules, call), limit)
            if response.status_code >= _FIRST_ERROR:
                async with aclosing(response):
                    await patience.wait(response.aread(), limit)
        except TimeoutError:
            raise self._failures.late(_BEGIN, limit) from None
        except (modules.http.HTTPError, modules.http.StreamError) as error:
            raise self._failures.broken(error) from None
        if response.status_code >= _FIRST_ERROR:
            raise self._failures.refused(response.status_code, response.text, response.headers)
        return response

    async def _sent(self, modules: Modules, call: Call) -> Response:
        http, own = modules.http, getattr(modules.sdk, self._sdk.error)
        try:
            client = self._connected(modules)
            return await self._sdk.post(client, modules, self._route, call)
        except (own, http.HTTPError, http.InvalidURL, UnicodeError) as error:
            raise self._failures.unreachable(self._reason(http, error)) from None

    def _reason(self, http: Any, error: Exception) -> str:
        cause = error if isinstance(error, http.HTTPError) else error.__cause__ or error
        if isinstance(cause, http.TimeoutException):
            return f"no connection within {self._route.preset.timeouts.connect:g} s"
        return str(cause) or type(cause).__name__

    def _connected(self, modules: Modules) -> Any:
        if self._client is None:
            http, connect = modules.http, self._route.preset.timeouts.connect
            limits = Limits(
                http.Limits(max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS),
                http.Timeout(None, connect=connect),
            )
            self._client = self._sdk.client(modules, self._route, limits)
        return self._client


def _loaded(sdk: Sdk) -> Modules:
    return Modules(import_module(sdk.package), import_module("httpx2"))
