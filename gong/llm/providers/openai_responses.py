"""OpenAI Responses, through the official SDK; the provider keeps nothing of a conversation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tape.formats.openai_responses import encoder

from .channel import Channel
from .histories import Histories
from .openai_responses_request import call
from .openai_responses_stream import StreamDecoder
from .openai_sdk import OpenAISdk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..presets import Preset
    from ..types import Request, StreamEvent


class OpenAIResponsesProvider:
    """Talks to one endpoint with one key, in the way its preset says."""

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.name, self.api, self.endpoint = preset.name, preset.api, endpoint
        self.native_objects = preset.quirks.json_schema
        self._preset = preset
        self._channel = Channel(OpenAISdk(), preset, key, endpoint)
        self._histories = Histories(encoder)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        write = partial(call, request, self._preset, self._histories)
        return self._channel.answer(write, StreamDecoder(self._channel.failures))

    async def close(self) -> None:
        """Let go of connections."""
        await self._channel.close()
