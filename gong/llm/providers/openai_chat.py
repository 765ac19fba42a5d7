"""OpenAI Chat Completions and the many hosts that speak it, through the official SDK."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .channel import Channel
from .openai_chat_request import Writer
from .openai_chat_stream import StreamDecoder
from .openai_sdk import OpenAISdk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..presets import Preset
    from ..types import ChoiceMode, Request, StreamEvent


class OpenAIChatProvider:
    """Talks to one endpoint with one key, in the way its preset says."""

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.name, self.api, self.endpoint = preset.name, preset.api, endpoint
        self.native_objects = preset.quirks.json_schema
        self._channel = Channel(OpenAISdk(), preset, key, endpoint)
        self._writer = Writer(preset)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        tags = self._writer.preset.quirks.think_tags
        decoder = StreamDecoder(self._channel.failures, think_tags=tags)
        return self._channel.answer(partial(self._writer.call, request), decoder, keep=request.raw)

    def supports_tool_choice(self, mode: ChoiceMode) -> bool:
        """Return whether the provider can be told so."""
        return mode in self._writer.preset.quirks.tool_choices

    async def close(self) -> None:
        """Let go of connections."""
        await self._channel.close()
