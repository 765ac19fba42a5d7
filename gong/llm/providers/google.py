"""Google Gemini, v1beta, straight over the HTTP client that its SDK is made of.

The SDK itself has only a typed way in: it walks the whole history on each call, takes addresses and
keys from the environment, and gives chunks as objects that have lost what it has no field for. So
the body goes out as bytes here, and comes back as server-sent events, whose meaning is the job of
`google_stream`. The HTTP client is imported by the first call, in a thread.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import InvalidRequest
from .channel import KEPT, KEPT_SECONDS, Channel
from .google_errors import refused
from .google_request import Writer, path
from .google_stream import StreamDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from httpx2 import AsyncClient

    from ..presets import Preset
    from ..types import Request, StreamEvent

_OK = 200


class GoogleProvider:
    """Talks to one endpoint with one key."""

    api = "google-generate"
    native_objects = True

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.name, self.endpoint = preset.name, endpoint
        self._channel = Channel(preset, key, endpoint)
        self._writer = Writer(preset)
        self._client: AsyncClient | None = None

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        return self._channel.answer(self._events(request), StreamDecoder(self._channel))

    async def close(self) -> None:
        """Let go of connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _events(self, request: Request) -> AsyncGenerator[str, None]:
        """Yield the data of each server-sent event; raise errors of ours only."""
        http = await asyncio.to_thread(import_module, "httpx2")
        begun = False
        try:
            body = self._writer.body(request)
            url = f"{self.endpoint}/{path(request.model)}"
            async with self._connected(http).stream("POST", url, content=body) as response:
                begun = True
                if response.status_code != _OK:
                    await response.aread()
                    raise refused(self._channel, response)
                async for event in http.EventSource(response, max_event_size=None):
                    if event.data:
                        yield event.data
        except (http.HTTPError, http.StreamError, http.InvalidURL, UnicodeError) as error:
            failed = self._channel.broken if begun else self._channel.unreachable
            raise failed(error) from None
        except msgspec.MsgspecError as error:
            why = f"the request is no JSON: {error}"
            raise InvalidRequest(why, provider=self.name) from error

    def _connected(self, http: Any) -> AsyncClient:
        if self._client is None:
            client: AsyncClient = http.AsyncClient(
                headers={"Content-Type": "application/json", **self._headers()},
                timeout=http.Timeout(None, connect=self._channel.preset.timeouts.connect),
                limits=http.Limits(max_keepalive_connections=KEPT, keepalive_expiry=KEPT_SECONDS),
            )
            self._client = client
        return self._client

    def _headers(self) -> dict[str, str]:
        """Return the preset's headers, and the key as it wants it sent."""
        preset, key = self._channel.preset, self._channel.key
        if preset.auth == "bearer":
            return {"Authorization": f"Bearer {key}", **preset.headers}
        return {preset.auth: key, **preset.headers}
