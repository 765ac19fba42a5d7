"""Google Gemini, v1beta, straight over the HTTP client that its SDK is made of.

Google's own SDK has only a typed way in: it walks the whole history on each call, takes addresses
and keys from the environment, and returns chunks as objects without the fields it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..transport import WireProvider
from .request import GoogleRequestEncoder
from .stream import GoogleStreamDecoder

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

    from ..connection import ClientLimits, EncodedRequest, Modules, Route


class _GoogleHttp:
    package, error = "httpx2", "HTTPError"

    def create_client(self, modules: Modules, route: Route, limits: ClientLimits) -> AsyncClient:
        headers: dict[str, str] = {"Content-Type": "application/json"}
        if route.preset.auth == "bearer":
            headers["Authorization"] = f"Bearer {route.key}"
        else:
            headers[route.preset.auth] = route.key
        headers |= route.preset.headers
        return limits.open_client(modules.http, headers=headers, timeout=limits.timeout)

    async def post_call(
        self, client: AsyncClient, _: Modules, route: Route, call: EncodedRequest
    ) -> Response:
        url = f"{route.endpoint}/{call.path}"
        asked = client.build_request("POST", url, content=call.body, headers=call.headers)
        return await client.send(asked, stream=True)

    async def close(self, client: AsyncClient) -> None:
        await client.aclose()


class GoogleProvider(WireProvider):
    """Talks to one endpoint with one key."""

    encoder, decoder, sdk = GoogleRequestEncoder, GoogleStreamDecoder, _GoogleHttp
