"""The decoders alone, and the places in what they read."""

from gong.llm.models import Preset
from gong.llm.wires.anthropic.stream import AnthropicStreamDecoder
from gong.llm.wires.failures import ProviderFailures
from gong.llm.wires.google.stream import GoogleStreamDecoder
from gong.llm.wires.openai_chat.stream import OpenAIChatStreamDecoder
from gong.llm.wires.openai_responses.stream import OpenAIResponsesStreamDecoder
from tests.wires import anthropic, google
from tests.wires import openai_chat as chat
from tests.wires import openai_responses as responses

PRESET = Preset(name="host", api="openai-chat", base_url="http://127.0.0.1")


FAILURES = ProviderFailures("host", "sk-test-0123456789", "http://127.0.0.1")


WIRES = {
    "chat": (OpenAIChatStreamDecoder, chat.WHOLE),
    "responses": (OpenAIResponsesStreamDecoder, responses.WHOLE),
    "anthropic": (AnthropicStreamDecoder, anthropic.WHOLE),
    "google": (GoogleStreamDecoder, google.WHOLE),
}


def places(value, path=()):
    """Yield the path of everything inside a JSON value."""
    inside = enumerate(value) if isinstance(value, list) else value.items()
    for key, part in inside:
        yield (*path, key)
        if isinstance(part, list | dict):
            yield from places(part, (*path, key))


def put(value, path, new):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new
