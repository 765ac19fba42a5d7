"""OpenAI Responses, through the official SDK; the provider keeps nothing of a conversation."""

from __future__ import annotations

from ..openai_common import OpenAISdk
from ..transport import WireProvider
from .request import OpenAIResponsesRequestEncoder
from .stream import OpenAIResponsesStreamDecoder


class OpenAIResponsesProvider(WireProvider):
    """Talks to one endpoint with one key."""

    encoder, decoder, sdk = OpenAIResponsesRequestEncoder, OpenAIResponsesStreamDecoder, OpenAISdk
