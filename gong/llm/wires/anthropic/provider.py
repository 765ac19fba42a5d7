"""Anthropic Messages through the official SDK.

It sends the body through its low-level `post`, as bytes: the typed one walks the whole history
every time. What the answer means is the job of `stream`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..transport import WireProvider
from .request import AnthropicRequestEncoder
from .stream import AnthropicStreamDecoder

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from httpx2 import Response

    from ..connection import ClientLimits, EncodedRequest, Modules, Route


class _AnthropicSdk:
    package, error = "anthropic", "AnthropicError"

    def create_client(self, modules: Modules, route: Route, limits: ClientLimits) -> AsyncAnthropic:
        auth = route.preset.auth
        own: dict[str, str] = {} if auth == "bearer" else {auth: route.key}
        client: AsyncAnthropic = modules.sdk.AsyncAnthropic(
            **{"api_key" if own else "auth_token": route.key},
            base_url=route.endpoint,
            max_retries=0,
            timeout=limits.timeout,
            open_telemetry=False,
            http_client=limits.open_client(modules.http),
        )
        # Values that the SDK took from the environment may be another provider's; send the key as
        # documented, where the SDK would send a bearer token.
        client._custom_headers = {**own, **route.preset.headers}  # noqa: SLF001 (it has no other way)
        return client

    async def post_call(
        self, client: Any, modules: Modules, _: Route, call: EncodedRequest
    ) -> Response:
        try:
            response = await client.post(
                call.path,
                cast_to=modules.http.Response,
                content=call.body,
                stream=True,
                options={"headers": call.headers},
            )
        except modules.sdk.APIStatusError as error:
            response = error.response
        return cast("Response", response)

    async def close(self, client: AsyncAnthropic) -> None:
        await client.close()


class AnthropicProvider(WireProvider):
    """Talks to one endpoint with one key."""

    encoder, decoder, sdk = AnthropicRequestEncoder, AnthropicStreamDecoder, _AnthropicSdk
    native_objects = False
