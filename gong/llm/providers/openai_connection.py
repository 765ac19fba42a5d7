"""One host that speaks an OpenAI wire, through the official SDK: a body out, data of events in.

The SDK's own way for requests it has no types for is used: its typed one walks the whole history
again on each call. It is imported by the first call, in a thread, because that takes a second. Only
errors of ours come out. A connection serves call after call.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .channel import KEPT, KEPT_SECONDS
from .openai_errors import Errors
from .openai_patience import Patience
from .openai_sse import Events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from httpx2 import Response
    from openai import AsyncOpenAI

    from ..presets import Preset

_DRAIN_SECONDS = 0.1
"""How long the end of a finished answer is waited for; without it the connection is lost."""


@dataclass(frozen=True, slots=True)
class _Sdk:
    """The modules that are loaded late."""

    openai: Any
    http: Any
    """The HTTP client under the SDK, whose errors come through while a stream is read."""

    @classmethod
    async def load(cls) -> _Sdk:
        """Import them without holding up the event loop."""
        return await asyncio.to_thread(
            lambda: cls(import_module("openai"), import_module("httpx2"))
        )


class Answer:
    """An answer on its way, whose status said that it is one."""

    def __init__(self, preset: Preset, errors: Errors, sdk: _Sdk, response: Response) -> None:
        self._limits, self._errors, self._sdk = preset.timeouts, errors, sdk
        self._response = response
        self._chunks = response.aiter_bytes()
        self._patience = Patience()

    async def data(self) -> AsyncGenerator[bytes, None]:
        """Yield the data of each event; raise errors of ours only."""
        events, limit, what = Events(), self._limits.first_byte, "begin its answer"
        while (chunk := await self._next(limit, what)) is not None:
            for data in events.feed(chunk):
                yield data
            limit, what = self._limits.idle, "go on with its answer"

    async def drain(self) -> None:
        """Read what is left of a finished answer, so that its connection can be used again."""
        with suppress(TimeoutError, self._sdk.http.HTTPError, self._sdk.http.StreamError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._chunks:
                    pass

    async def close(self) -> None:
        """Close the connection, unless the answer was read to its end."""
        self._patience.close()
        await self._response.aclose()
        await self._chunks.aclose()

    async def _next(self, limit: float, what: str) -> bytes | None:
        """Return the next bytes, whatever is in them a sign of life; None at the end."""
        try:
            return await self._patience.wait(anext(self._chunks, None), limit)
        except (TimeoutError, self._sdk.http.TimeoutException):
            raise self._errors.late(what, limit) from None
        except (self._sdk.http.HTTPError, self._sdk.http.StreamError) as error:
            raise self._errors.broken(error) from None


class Connection:
    """Talks to one endpoint with one key."""

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.errors = Errors(preset.name, key, endpoint)
        self._preset, self._key, self._endpoint = preset, key, endpoint
        self._sdk: _Sdk | None = None
        self._client: AsyncOpenAI | None = None

    @asynccontextmanager
    async def answer(self, path: str, body: bytes) -> AsyncIterator[Answer]:
        """Send a body and give the answer; leaving closes it, and what was not read with it."""
        if self._sdk is None:
            self._sdk = await _Sdk.load()
        response = await self._sent(self._sdk, path, body)
        answer = Answer(self._preset, self.errors, self._sdk, response)
        try:
            yield answer
        finally:
            await answer.close()

    async def close(self) -> None:
        """Let go of connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _sent(self, sdk: _Sdk, path: str, body: bytes) -> Response:
        try:
            response: Response = await self._connected(sdk).post(
                path,
                cast_to=sdk.http.Response,
                content=body,
                options={"headers": self._credentials(sdk)},
                stream=True,
                stream_cls=sdk.openai.AsyncStream[object],
            )
        except sdk.openai.APIStatusError as error:
            said = error.response
            raise self.errors.refused(said.status_code, said.text, said.headers) from None
        except (sdk.openai.APITimeoutError, sdk.http.TimeoutException):
            limit = self._preset.timeouts.first_byte
            raise self.errors.late("begin its answer", limit) from None
        except (sdk.openai.OpenAIError, sdk.http.HTTPError, sdk.http.InvalidURL) as error:
            raise self.errors.unreachable(error) from None
        return response

    def _credentials(self, sdk: _Sdk) -> dict[str, Any]:
        """Return the header that holds the key; given with each call, no variable changes it."""
        if self._preset.auth == "bearer":
            return {"Authorization": f"Bearer {self._key}"}
        return {self._preset.auth: self._key, "Authorization": sdk.openai.Omit()}

    def _connected(self, sdk: _Sdk) -> AsyncOpenAI:
        if self._client is None:
            limits = self._preset.timeouts
            kept = sdk.http.Limits(max_keepalive_connections=KEPT, keepalive_expiry=KEPT_SECONDS)
            client: AsyncOpenAI = sdk.openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self._endpoint,
                max_retries=0,
                timeout=sdk.http.Timeout(limits.first_byte, connect=limits.connect),
                http_client=sdk.openai.DefaultAsyncHttpx2Client(limits=kept),
            )
            # What the SDK took from the environment may be another provider's.
            client.organization = client.project = None
            client._custom_headers = self._preset.headers  # noqa: SLF001 (it has no other way)
            self._client = client
        return self._client
