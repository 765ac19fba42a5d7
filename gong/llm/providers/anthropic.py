"""Anthropic Messages through the official SDK.

It sends the body through its low-level `post`, as bytes: the typed one walks the whole history
every time. What the answer means is the job of `anthropic_stream`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .anthropic_request import Writer
from .anthropic_stream import StreamDecoder
from .channel import Channel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anthropic import AsyncAnthropic
    from httpx2 import Response

    from ..presets import Preset
    from ..types import ChoiceMode, Request, StreamEvent
    from .connection import Call, Limits, Modules, Route


class _AnthropicSdk:
    package, error = "anthropic", "AnthropicError"

    def client(self, modules: Modules, route: Route, limits: Limits) -> AsyncAnthropic:
        auth = route.preset.auth
        own: dict[str, str] = {} if auth == "bearer" else {auth: route.key}
        client: AsyncAnthropic = modules.sdk.AsyncAnthropic(
            **{"api_key" if own else "auth_token": route.key},
            base_url=route.endpoint,
            max_retries=0,
            timeout=limits.timeout,
            open_telemetry=False,
            http_client=modules.sdk.DefaultAsyncHttpxClient(limits=limits.kept),
        )
        # What the SDK took from the environment may be another provider's; and the key goes as it
        # is documented, where the SDK's own way is a bearer.
        client._custom_headers = {**own, **route.preset.headers}  # noqa: SLF001 (it has no other way)
        return client

    async def post(self, client: Any, modules: Modules, _: Route, call: Call) -> Response:
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
        self._channel = Channel(_AnthropicSdk(), preset, key, endpoint)
        self._writer = Writer(preset)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        decoder = StreamDecoder(self._channel.failures)
        return self._channel.answer(partial(self._writer.call, request), decoder, keep=request.raw)

    def supports_tool_choice(self, mode: ChoiceMode) -> bool:
        """Return whether the provider can be told so."""
        return mode in self._writer.preset.quirks.tool_choices

    async def close(self) -> None:
        """Let go of connections."""
        await self._channel.close()
