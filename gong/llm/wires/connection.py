"""One endpoint reached with one key: a body out, the bytes of an answer in, in time.

Requests are sent by an SDK, or by the HTTP client under all SDKs. The first call imports it in a
thread, because that takes up to two seconds. Only errors of gong are raised. A connection is used
for many calls.

An SDK would follow a redirect with the key and the prompt, and read an error's body to its end,
however long that is. Both are settled below it, in a client that follows no redirect and reads only
the beginning of errors.

`asyncio.timeout` sets and clears a timer for each wait, which costs as much as a streamed piece of
an answer does; `IdleTimeout` sets a timer that has come too early again.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping

    from httpx2 import AsyncClient, Request, Response

    from ...errors import ModelError
    from ..models import Preset
    from .failures import ProviderFailures


_T = TypeVar("_T")


class IdleTimeout:
    """For one wait at a time; to be closed when no more come."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._until = 0.0
        self._is_over = False

    async def wait(self, awaitable: Awaitable[_T], seconds: float) -> _T:
        """Return what `awaitable` gives; raises TimeoutError when it takes longer."""
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        # a cancel from outside and ours may come together: only ours is taken back
        asked_before = task.cancelling()
        self._task, self._until = task, self._loop.time() + seconds
        self._is_over = False
        # a timer that ends earlier stays: it is set again when it fires
        if self._timer is None or self._timer.when() > self._until:
            self._set_timer()
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self._is_over and task.uncancel() <= asked_before:
                raise TimeoutError from None
            raise
        finally:
            self._task = None

    def close(self) -> None:
        """Clear the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self.close()
        self._timer = self._loop.call_at(self._until, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._task is None:
            return
        # it was for an earlier wait
        if self._loop.time() < self._until:
            self._set_timer()
            return
        self._is_over = True
        self._task.cancel()


IS_CUT = "gong.is_cut"
"""Extension of a response of which only the beginning was read."""
_CODINGS = ("gzip", "deflate")
"""Accepted compressions; both can be decompressed in pieces."""
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that say how a body was sent, not what it is."""


def open_client(http: Any, error_bytes: int, **options: Any) -> AsyncClient:
    """Return a client of the module `http` that sends what it is given nowhere else.

    A response whose status is no success holds at most `error_bytes` of its body.
    """

    async def send(self: AsyncClient, request: Request, **how: Any) -> Response:
        how |= {"stream": True, "follow_redirects": False}
        response: Response = await http.AsyncClient.send(self, request, **how)
        if response.is_success:
            return response
        return await _read_beginning(http, response, error_bytes)

    # A subclass made here, as the module is loaded late: SDKs take nothing but a client.
    made = type("KeepingClient", (http.AsyncClient,), {"send": send})
    headers = {"Accept-Encoding": ", ".join(_CODINGS), **options.pop("headers", {})}
    return cast("AsyncClient", made(follow_redirects=False, headers=headers, **options))


def find_unasked_coding(response: Response) -> str | None:
    """Return how a body is compressed where that was not asked for; None where all is well."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    return None if coding in {"", "identity", *_CODINGS} else coding


async def _read_beginning(http: Any, response: Response, most: int) -> Response:
    """Return the response with as much of its body as may and can be read."""
    body, is_cut = b"", False
    async with aclosing(response):
        with suppress(http.HTTPError, http.StreamError):  # the status is enough
            async with aclosing(response.aiter_bytes()) as pieces:
                async for piece in pieces:
                    body += piece[: most - len(body)]
                    is_cut = len(body) >= most
                    if is_cut:
                        break
    headers = [pair for pair in response.headers.multi_items() if pair[0] not in _OF_THE_WIRE]
    return cast(
        "Response",
        http.Response(
            response.status_code,
            headers=headers,
            content=body,
            request=response.request,
            extensions={IS_CUT: is_cut},
        ),
    )


_KEPT = 10
"""How many idle connections are kept."""
_KEPT_SECONDS = 90.0
"""Seconds that an idle connection is kept: tools run between two calls."""
_DRAIN_SECONDS = 0.1
"""Seconds to wait for the end of a finished answer; without it the connection is closed."""
_BEGIN = "begin its answer"


class EncodedRequest(NamedTuple):
    """A call to send: path below the endpoint, JSON body, and headers of this call only."""

    path: str
    body: bytes
    headers: dict[str, str]
    warnings: tuple[str, ...] = ()
    """Warnings for fields of the request that were left out."""


class Modules(NamedTuple):
    """The modules that are imported late."""

    sdk: Any
    http: Any
    """The HTTP client under the SDK, whose errors come through while an answer is read."""


class Route(NamedTuple):
    """The target of a client; `endpoint` has no slash at its end."""

    preset: Preset
    key: str
    endpoint: str

    def __repr__(self) -> str:
        return f"Route({self.preset.name!r}, {self.endpoint!r})"


class ClientLimits(NamedTuple):
    """How a client keeps connections and waits, as values of the HTTP client's."""

    kept: Any
    timeout: Any
    error_bytes: int
    """Maximum bytes to read of an error response."""

    def open_client(self, http: Any, **options: Any) -> AsyncClient:
        """Return an HTTP client that keeps to these limits."""
        return open_client(http, self.error_bytes, limits=self.kept, **options)


class Sdk(Protocol):
    """How an SDK is used."""

    package: str
    error: str
    """Name of the class that all its own errors have in common."""

    def create_client(self, modules: Modules, route: Route, limits: ClientLimits) -> Any:
        """Return a client without retries that reads nothing from the environment."""
        ...

    async def post_call(
        self, client: Any, modules: Modules, route: Route, call: EncodedRequest
    ) -> Response:
        """Return the response of any status; its body may not have arrived yet."""
        ...

    async def close(self, client: Any) -> None:
        """Close the client's connections."""
        ...


class HttpReply:
    """The bytes of a running answer."""

    def __init__(
        self, response: Response, idle_timeout: IdleTimeout, failures: ProviderFailures, http: Any
    ) -> None:
        self._chunks = response.aiter_bytes()
        self._response, self._idle_timeout, self._failures = response, idle_timeout, failures
        self.headers: Mapping[str, str] = response.headers
        self._broken = (http.HTTPError, http.StreamError)
        self.unpacked = 0
        """Number of bytes, decompressed."""

    @property
    def received(self) -> int:
        """Number of bytes received, compressed."""
        return self._response.num_bytes_downloaded

    async def read_chunk(self, seconds: float) -> bytes | None:
        """Return the next bytes, None at the end; raises TimeoutError and StreamError."""
        try:
            chunk = await self._idle_timeout.wait(anext(self._chunks, None), seconds)
        except self._broken as error:
            raise self._failures.build_broken_error(error) from None
        self.unpacked += len(chunk or b"")
        return chunk

    async def drain_rest(self) -> None:
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

    def __init__(self, sdk: Sdk, route: Route, failures: ProviderFailures) -> None:
        self._sdk, self._route, self._failures = sdk, route, failures
        self._modules: Modules | None = None
        self._client: Any = None

    @asynccontextmanager
    async def open_reply(self, call: EncodedRequest) -> AsyncIterator[HttpReply]:
        """Send a call and give its answer; leaving closes it, and what was not read with it.

        Raises ModelError, also for an answer whose status says that it is none.
        """
        modules = self._modules
        if modules is None:
            modules = self._modules = await asyncio.to_thread(_load_modules, self._sdk)
        idle_timeout = IdleTimeout()
        try:
            response = await self._await_answer(modules, idle_timeout, call)
            reply = HttpReply(response, idle_timeout, self._failures, modules.http)
            try:
                yield reply
            finally:
                await reply.close()
        finally:
            idle_timeout.close()

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await self._sdk.close(client)

    async def _await_answer(
        self, modules: Modules, idle_timeout: IdleTimeout, call: EncodedRequest
    ) -> Response:
        limit = self._route.preset.timeouts.first_byte
        try:
            response = await idle_timeout.wait(self._send_call(modules, call), limit)
        except TimeoutError:
            raise self._failures.build_timeout(_BEGIN, limit) from None
        if not response.is_success:
            raise self._build_refusal(response, call)
        if coding := find_unasked_coding(response):
            await response.aclose()
            raise self._failures.build_stream_error(
                f"sent its answer compressed as {coding!r}, which was not requested"
            )
        return response

    def _build_refusal(self, response: Response, call: EncodedRequest) -> ModelError:
        """Return the error of a response whose status is not a success."""
        status, headers = response.status_code, response.headers
        if response.has_redirect_location:
            asked, location = str(response.request.url), headers["location"]
            return self._failures.build_redirect_error(status, asked, location, call.path)
        is_cut = bool(response.extensions.get(IS_CUT))
        return self._failures.parse_refusal(status, response.text, headers, is_cut=is_cut)

    async def _send_call(self, modules: Modules, call: EncodedRequest) -> Response:
        http, own = modules.http, getattr(modules.sdk, self._sdk.error)
        try:
            client = self._get_client(modules)
            return await self._sdk.post_call(client, modules, self._route, call)
        except (own, http.HTTPError, http.InvalidURL, UnicodeError) as error:
            raise self._failures.build_network_error(self._explain_error(http, error)) from None

    def _explain_error(self, http: Any, error: Exception) -> str:
        cause = error if isinstance(error, http.HTTPError) else error.__cause__ or error
        if isinstance(cause, http.TimeoutException):
            return f"no connection within {self._route.preset.timeouts.connect:g} s"
        return str(cause) or type(cause).__name__

    def _get_client(self, modules: Modules) -> Any:
        if self._client is None:
            http, connect = modules.http, self._route.preset.timeouts.connect
            limits = ClientLimits(
                http.Limits(max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS),
                http.Timeout(None, connect=connect),
                self._route.preset.sizes.error,
            )
            self._client = self._sdk.create_client(modules, self._route, limits)
        return self._client


def _load_modules(sdk: Sdk) -> Modules:
    return Modules(import_module(sdk.package), import_module("httpx2"))
