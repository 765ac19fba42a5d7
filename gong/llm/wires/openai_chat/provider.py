"""OpenAI Chat Completions and the many hosts that speak it, through the official SDK."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..openai_common import OpenAISdk
from ..transport import Transport
from .request import OpenAIChatRequestEncoder
from .stream import OpenAIChatStreamDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ...models import Preset
    from ...types import ChoiceMode, Request, StreamEvent


class OpenAIChatProvider:
    """Calls one endpoint with one key, according to its preset."""

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.name, self.api, self.endpoint = preset.name, preset.api, endpoint
        self.native_objects = preset.quirks.json_schema
        self._transport = Transport(OpenAISdk(), preset, key, endpoint)
        self._encoder = OpenAIChatRequestEncoder(preset)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        preset = self._encoder.preset
        tags = preset.quirks.think_tags
        decoder = OpenAIChatStreamDecoder(self._transport.failures, preset.sizes, think_tags=tags)
        return self._transport.stream_answer(
            partial(self._encoder.encode_request, request), decoder, keep=request.raw
        )

    def supports_tool_choice(self, mode: ChoiceMode) -> bool:
        """Return whether the provider supports this tool choice."""
        return mode in self._encoder.preset.quirks.tool_choices

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()
