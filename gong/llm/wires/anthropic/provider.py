"""Anthropic Messages through the official SDK.

The body is sent as bytes through the SDK's low-level `post`, because the typed method walks the
whole history every time. `anthropic_stream` decodes the answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..transport import Transport
from .request import AnthropicRequestEncoder
from .stream import AnthropicStreamDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anthropic import AsyncAnthropic
    from httpx2 import Response

    from ...models import Preset
    from ...types import ChoiceMode, Request, StreamEvent
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


class AnthropicProvider:
    """Talks to one endpoint with one key, over one connection at a time where it can."""

    api = "anthropic-messages"

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.name, self.endpoint = preset.name, endpoint
        self._transport = Transport(_AnthropicSdk(), preset, key, endpoint)
        self._encoder = AnthropicRequestEncoder(preset)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        decoder = AnthropicStreamDecoder(self._transport.failures, self._encoder.preset.sizes)
        return self._transport.stream_answer(
            partial(self._encoder.encode_request, request), decoder, keep=request.raw
        )

    def supports_tool_choice(self, mode: ChoiceMode) -> bool:
        """Return whether the provider supports this tool choice."""
        return mode in self._encoder.preset.quirks.tool_choices

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()
