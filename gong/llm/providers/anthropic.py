"""Anthropic Messages through the official SDK: what is sent, and errors translated once.

The SDK is imported by the first call, in a thread, because that takes up to two seconds. It sends
and cuts the answer into server-sent events; what they mean is the job of `anthropic_stream`. The
body goes as bytes through its low-level `post`: the typed one walks the whole history every time.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import InvalidRequest
from .anthropic_request import Writer
from .anthropic_stream import StreamDecoder
from .channel import KEPT, KEPT_SECONDS, Channel, retry_after

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anthropic import APIStatusError, AsyncAnthropic

    from ...errors import ModelError
    from ..presets import Preset
    from ..types import Request, StreamEvent

_PATH = "/v1/messages"


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
    """Talks to one endpoint with one key, over one connection at a time where it can."""

    api = "anthropic-messages"

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.name, self.endpoint = preset.name, endpoint
        self._channel = Channel(preset, key, endpoint)
        self._writer = Writer(preset)
        self._client: AsyncAnthropic | None = None

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        return self._channel.answer(self._events(request), StreamDecoder(self._channel))

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.close()

    async def _events(self, request: Request) -> AsyncGenerator[str, None]:
        """Yield the data of each server-sent event; raise errors of ours only."""
        sdk = await _Sdk.load()
        try:
            async with aclosing(await self._sent(sdk, request)) as response:
                async for event in sdk.anthropic.AsyncStream.raw_events(response):
                    if event.data:
                        yield event.data
        except sdk.anthropic.APIStatusError as error:
            raise self._refused(error) from None
        except sdk.anthropic.AnthropicError as error:
            raise self._channel.unreachable(error.__cause__ or error) from None
        except (sdk.http.HTTPError, sdk.http.StreamError, UnicodeError) as error:
            raise self._channel.broken(error) from None
        except msgspec.MsgspecError as error:
            why = f"the request is no JSON: {error}"
            raise InvalidRequest(why, provider=self.name) from error

    async def _sent(self, sdk: _Sdk, request: Request) -> Any:
        """Send the request and return the response, whose body is still to come."""
        call = self._writer.call(request)
        client: Any = self._connected(sdk)
        return await client.post(
            _PATH,
            cast_to=sdk.http.Response,
            content=call.body,
            stream=True,
            options={"headers": call.headers},
        )

    def _connected(self, sdk: _Sdk) -> AsyncAnthropic:
        if self._client is None:
            preset = self._channel.preset
            kept = sdk.http.Limits(max_keepalive_connections=KEPT, keepalive_expiry=KEPT_SECONDS)
            client: AsyncAnthropic = sdk.anthropic.AsyncAnthropic(
                **self._credentials(),
                base_url=self.endpoint,
                max_retries=0,
                timeout=sdk.anthropic.Timeout(None, connect=preset.timeouts.connect),
                open_telemetry=False,
                http_client=sdk.anthropic.DefaultAsyncHttpxClient(limits=kept),
            )
            # What the SDK took from the environment may be another provider's.
            client._custom_headers = self._headers()  # noqa: SLF001 (it has no other way)
            self._client = client
        return self._client

    def _credentials(self) -> dict[str, str]:
        is_bearer = self._channel.preset.auth == "bearer"
        return {"auth_token" if is_bearer else "api_key": self._channel.key}

    def _headers(self) -> dict[str, str]:
        """Return the preset's headers, and the key as it is documented; the SDK's is a bearer."""
        preset, key = self._channel.preset, self._channel.key
        return preset.headers if preset.auth == "bearer" else {preset.auth: key, **preset.headers}

    def _refused(self, error: APIStatusError) -> ModelError:
        return self._channel.told(
            error.status_code,
            error.api_message or _body_text(error),
            error.type,
            retry_after(error.response.headers.get("retry-after")),
        )


def _body_text(error: APIStatusError) -> str:
    """Return what a body says that is not the API's own JSON, such as a proxy's page."""
    body: Any = error.body
    if isinstance(body, str):
        return body.strip()
    return msgspec.json.encode(body).decode() if body else ""
