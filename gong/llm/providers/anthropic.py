"""Anthropic Messages through the official SDK: the envelope, and errors translated once.

The SDK is imported by the first call, in a thread, because that takes up to two seconds. It sends
and cuts the answer into server-sent events; what they mean is the job of `anthropic_stream`.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ...errors import InvalidRequest, ModelError, NetworkError, RequestTimeout, StreamError
from ..errors import provider_error
from .anthropic_request import body
from .anthropic_stream import PROVIDER, StreamDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from anthropic import APIStatusError, AsyncAnthropic, AsyncAPIResponse
    from anthropic.types import MessageParam

    from ..types import Request, StreamEvent

DEFAULT_ENDPOINT = "https://api.anthropic.com"
_CONNECT_SECONDS = 10.0
_SAID_BY_US = ("model", "max_tokens", "messages", "stream")


@dataclass(frozen=True, slots=True)
class _Sdk:
    """The modules that are loaded late."""

    anthropic: Any
    http: Any
    """The HTTP client under the SDK, whose errors come through while a stream is read."""

    @classmethod
    async def load(cls) -> _Sdk:
        """Import them without holding up the event loop."""
        return await asyncio.to_thread(
            lambda: cls(import_module("anthropic"), import_module("httpx2"))
        )


class AnthropicProvider:
    """Talks to one endpoint with one key; times are in seconds.

    `first_byte` is how long an answer may take to begin, `idle` how long a stream may be silent.
    """

    name = PROVIDER
    api = "anthropic-messages"

    def __init__(
        self,
        api_key: str,
        endpoint: str = DEFAULT_ENDPOINT,
        *,
        first_byte: float = 120.0,
        idle: float = 30.0,
    ) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._api_key = api_key
        self._first_byte = first_byte
        self._idle = idle
        self._client: AsyncAnthropic | None = None

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        decoder = StreamDecoder()
        try:
            async with aclosing(self._events(request)) as events:
                async for data in events:
                    for event in decoder.feed(data):
                        yield event
                    if decoder.finished:
                        return
            raise StreamError(f"{PROVIDER} stopped in the middle of its answer", provider=PROVIDER)
        except ModelError as error:
            yield decoder.ending(error)

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.close()

    async def _events(self, request: Request) -> AsyncGenerator[str, None]:
        """Yield the data of each server-sent event; raise errors of ours only."""
        sdk = await _Sdk.load()
        try:
            async with self._sent(sdk, request) as response:
                events = sdk.anthropic.AsyncStream.raw_events(response.http_response)
                while (event := await self._next(events)) is not None:
                    if event.data:
                        yield event.data
        except sdk.anthropic.APIStatusError as error:
            raise self._refused(error) from None
        except sdk.anthropic.APITimeoutError:
            raise _too_late("begin its answer", self._first_byte) from None
        except sdk.anthropic.AnthropicError as error:
            raise self._unreachable(error) from None
        except sdk.http.TimeoutException:
            raise _too_late("go on with its answer", self._first_byte) from None
        except (sdk.http.HTTPError, sdk.http.StreamError, UnicodeError) as error:
            raise self._broken(error) from None
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f"the request is no JSON: {error}", provider=PROVIDER) from error

    def _sent(
        self, sdk: _Sdk, request: Request
    ) -> AbstractAsyncContextManager[AsyncAPIResponse[Any]]:
        wire = body(request)
        rest = {name: value for name, value in wire.items() if name not in _SAID_BY_US}
        return self._connected(sdk).messages.with_streaming_response.create(
            model=wire["model"],
            max_tokens=wire["max_tokens"],
            messages=cast("list[MessageParam]", wire["messages"]),
            stream=True,
            extra_body=rest,
        )

    def _connected(self, sdk: _Sdk) -> AsyncAnthropic:
        if self._client is None:
            self._client = sdk.anthropic.AsyncAnthropic(
                api_key=self._api_key,
                base_url=self.endpoint,
                max_retries=0,
                timeout=sdk.anthropic.Timeout(self._first_byte, connect=_CONNECT_SECONDS),
            )
        return self._client

    async def _next(self, events: AsyncIterator[Any]) -> Any:
        """Return the next event, None at the end of the stream."""
        try:
            async with asyncio.timeout(self._idle):
                return await anext(events, None)
        except TimeoutError:
            raise _too_late("go on with its answer", self._idle) from None

    def _refused(self, error: APIStatusError) -> ModelError:
        return provider_error(
            PROVIDER,
            error.status_code,
            self._without_key(error.api_message or _body_text(error)),
            code=error.type,
            retry_after=_seconds(error.response.headers.get("retry-after")),
        )

    def _unreachable(self, error: Exception) -> NetworkError:
        reason = self._without_key(str(error.__cause__ or error))
        return NetworkError(f"cannot reach {self.endpoint}: {reason}", provider=PROVIDER)

    def _broken(self, error: Exception) -> StreamError:
        reason = self._without_key(str(error)) or type(error).__name__
        return StreamError(f"{PROVIDER} broke off its answer: {reason}", provider=PROVIDER)

    def _without_key(self, text: str) -> str:
        return text.replace(self._api_key, "…")


def _too_late(what: str, seconds: float) -> RequestTimeout:
    return RequestTimeout(f"{PROVIDER} did not {what} within {seconds:g} s", provider=PROVIDER)


def _body_text(error: APIStatusError) -> str:
    """Return what a body that is not the API's own JSON says, such as a proxy's page."""
    return error.body if isinstance(error.body, str) and error.body.strip() else "no reason given"


def _seconds(header: str | None) -> float | None:
    """Return a Retry-After in seconds; None when there is none that can be read."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if isfinite(seconds) and seconds >= 0 else None
