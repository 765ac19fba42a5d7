"""One endpoint reached with one key: a body out, the bytes of an answer in, in time.

Only errors of gong are raised; what comes and goes is the job of `http_client` or `sdk_client`.

`asyncio.timeout` sets and clears a timer for each wait, which costs as much as a streamed piece of
an answer does; `IdleTimeout` sets a timer that has come too early again.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from ...errors import ModelError
from .http_client import HttpError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping

    from .failures import ProviderFailures
    from .http_client import EncodedRequest, HttpResponse, Route


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


_DRAIN_SECONDS = 0.1
"""Seconds to wait for the end of a finished answer; without it the connection is closed."""
_MAX_AHEAD = 65_536
"""Bytes that are read ahead of the reader of an answer."""
_BEGIN = "begin its answer"


class EndpointClient(Protocol):
    """Posts calls to one endpoint, by itself or through an SDK."""

    async def prepare(self) -> None:
        """Load what sending needs, once: it takes time that is not the host's."""
        ...

    async def post_call(self, call: EncodedRequest) -> HttpResponse:
        """Return the response of any status, once prepared; raises HttpError and UnicodeError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class HttpReply:
    """The bytes of a running answer.

    A task of its own reads them ahead, up to `_MAX_AHEAD`. It goes through all pieces that have
    arrived before the reader of the answer gets a turn, so that what came together costs one wait.
    """

    def __init__(
        self, response: HttpResponse, idle_timeout: IdleTimeout, failures: ProviderFailures
    ) -> None:
        self._response, self._idle_timeout, self._failures = response, idle_timeout, failures
        self.headers: Mapping[str, str] = response.headers
        self.unpacked = 0
        """Number of bytes, decompressed."""
        self._waiting: list[bytes] = []
        """Pieces that nobody has taken yet."""
        self._size = 0
        """Bytes of them."""
        self._has_news, self._has_room = asyncio.Event(), asyncio.Event()
        self._reading = asyncio.create_task(self._read_ahead())

    @property
    def received(self) -> int:
        """Number of bytes received, compressed."""
        return self._response.received

    async def read_chunk(self, seconds: float) -> bytes | None:
        """Return the next bytes, None at the end; raises TimeoutError and StreamError."""
        await self._idle_timeout.wait(self._has_news.wait(), seconds)
        chunk, self._waiting, self._size = b"".join(self._waiting), [], 0
        self._has_room.set()
        if not self._reading.done():
            self._has_news.clear()
        if chunk:
            return chunk
        try:
            await self._reading
        except HttpError as error:
            raise self._failures.build_broken_error(error) from None
        return None

    async def drain_rest(self) -> None:
        """Read what is left of a finished answer, so that its connection can be used again."""
        with suppress(TimeoutError, ModelError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while await self.read_chunk(_DRAIN_SECONDS) is not None:
                    pass

    async def close(self) -> None:
        """Stop reading, and close the connection unless the answer was read to its end."""
        self._reading.cancel()
        try:
            await asyncio.gather(self._reading, return_exceptions=True)
        finally:  # also where a second Ctrl+C cancels the wait
            await self._response.close()

    async def _read_ahead(self) -> None:
        """Collect pieces until the end or an error; news are bytes, or that no more come."""
        try:
            async for piece in self._response.read_pieces():
                if not piece:
                    continue
                self._waiting.append(piece)
                self._size += len(piece)
                self.unpacked += len(piece)
                self._has_news.set()
                if self._size >= _MAX_AHEAD:
                    self._has_room.clear()
                    await self._has_room.wait()
        finally:
            self._has_news.set()


class Connection:
    """Sends calls to one endpoint."""

    def __init__(self, client: EndpointClient, route: Route) -> None:
        self._client, self._route = client, route

    @asynccontextmanager
    async def open_reply(
        self, call: EncodedRequest, failures: ProviderFailures
    ) -> AsyncIterator[HttpReply]:
        """Send a call and give its answer; leaving closes it, and what was not read with it.

        Raises ModelError, made by `failures`, also for an answer whose status says that it is none.
        """
        await self._client.prepare()
        failures = failures._replace(path=call.path)
        idle_timeout = IdleTimeout()
        try:
            response = await self._await_answer(idle_timeout, call, failures)
            access = self._route.access
            if not response.is_success and await access.renew(response.status, response.text):
                failures = failures._replace(key=access.secret)
                response = await self._await_answer(idle_timeout, call, failures)
            await self._check_answer(response, call, failures)
            reply = HttpReply(response, idle_timeout, failures)
            try:
                yield reply
            finally:
                await reply.close()
        finally:
            idle_timeout.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _await_answer(
        self, idle_timeout: IdleTimeout, call: EncodedRequest, failures: ProviderFailures
    ) -> HttpResponse:
        limit = self._route.preset.timeouts.first_byte
        try:
            response = await idle_timeout.wait(self._client.post_call(call), limit)
        except TimeoutError:
            raise failures.build_timeout(_BEGIN, limit) from None
        except (HttpError, UnicodeError) as error:
            raise failures.build_network_error(str(error)) from None
        return response

    async def _check_answer(
        self, response: HttpResponse, call: EncodedRequest, failures: ProviderFailures
    ) -> None:
        """Raise ModelError for a response that is no answer."""
        if not response.is_success:
            status, location = response.status, response.location
            if location is not None:
                raise failures.build_redirect_error(status, response.url, location, call.path)
            raise failures.parse_refusal(
                status, response.text, response.headers, is_cut=response.is_cut
            )
        if coding := response.unasked_coding:
            await response.close()
            raise failures.build_stream_error(
                f"sent its answer compressed as {coding!r}, which was not requested"
            )
