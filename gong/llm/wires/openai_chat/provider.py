"""OpenAI Chat Completions and the many hosts that speak it, through the official SDK."""

from __future__ import annotations

from ..openai_common import OpenAISdk
from ..transport import WireProvider
from .request import OpenAIChatRequestEncoder
from .stream import OpenAIChatStreamDecoder


class OpenAIChatProvider(WireProvider):
    """Talks to one endpoint with one key."""

    encoder, decoder, sdk = OpenAIChatRequestEncoder, OpenAIChatStreamDecoder, OpenAISdk
