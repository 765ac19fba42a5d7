"""Google Gemini, v1beta, straight over the HTTP client that its SDK is made of.

The SDK has only a typed interface: it walks the whole history on each call, reads addresses and
keys from the environment, and drops fields of chunks that it does not know. `google_stream` decodes
the answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..transport import Transport
from .request import GoogleRequestEncoder
from .stream import GoogleStreamDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from httpx2 import AsyncClient, Response

    from ...models import Preset
    from ...types import ChoiceMode, Request, StreamEvent
    from ..connection import ClientLimits, EncodedRequest, Modules, Route


class _GoogleHttp:
    package, error = "httpx2", "HTTPError"

    def create_client(self, modules: Modules, route: Route, limits: ClientLimits) -> AsyncClient:
        headers = {
            "Content-Type": "application/json",
            **_build_google_credentials(route),
            **route.preset.headers,
        }
        return limits.open_client(modules.http, headers=headers, timeout=limits.timeout)

    async def post_call(
        self, client: AsyncClient, _: Modules, route: Route, call: EncodedRequest
    ) -> Response:
        url = f"{route.endpoint}/{call.path}"
        asked = client.build_request("POST", url, content=call.body, headers=call.headers)
        return await client.send(asked, stream=True)

    async def close(self, client: AsyncClient) -> None:
        await client.aclose()


class GoogleProvider:
    """Talks to one endpoint with one key."""

    api = "google-generate"
    native_objects = True

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.name, self.endpoint = preset.name, endpoint
        self._transport = Transport(_GoogleHttp(), preset, key, endpoint)
        self._encoder = GoogleRequestEncoder(preset)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        decoder = GoogleStreamDecoder(self._transport.failures, self._encoder.preset.sizes)
        return self._transport.stream_answer(
            partial(self._encoder.encode_request, request), decoder, keep=request.raw
        )

    def supports_tool_choice(self, mode: ChoiceMode) -> bool:
        """Return whether the provider supports this tool choice."""
        return mode in self._encoder.preset.quirks.tool_choices

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()


def _build_google_credentials(route: Route) -> dict[str, str]:
    """Return the key as its host wants it sent."""
    if route.preset.auth == "bearer":
        return {"Authorization": f"Bearer {route.key}"}
    return {route.preset.auth: route.key}
