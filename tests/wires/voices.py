"""What each host can say beyond text: calls, thinking, results that came back."""

import json
from typing import Any, NamedTuple

import pytest
from msgspec import Struct

from gong.llm import Client, Tool
from tests.wires import anthropic, google
from tests.wires import openai_chat as chat
from tests.wires import openai_responses as responses
from tests.wires.server import Reply, WireServer
from tests.wires.table import WIRES, Wire

PNG = b"\x89PNG\r\n\x1a\n and what follows"


class Person(Struct):
    name: str
    age: int


class Asked(Struct):
    city: str


def weather(asked):
    return f"sun in {asked.city}"


WEATHER = Tool("weather", "Tell the weather.", Asked, weather)


class Voice(NamedTuple):
    """What one wire's host can say, as events."""

    wire: Wire
    calls: Any
    """From cities to an answer that asks for the weather of each."""
    thinks: list[Any]
    """An answer with 7 tokens of reasoning among 25, and 90 of 100 of the prompt cached."""
    results: Any
    """From a body to the results of tools in it."""

    def replies(self, *answers) -> list[Reply]:
        made = []
        for answer in answers:
            text = isinstance(answer, str)
            body = self.wire.said(answer) if text else self.wire.write(*answer)
            made.append(Reply(body))
        return made


def _anthropic_calls(*cities):
    blocks = (
        anthropic.tool_block(n, f"toolu_{n}", "weather", json.dumps({"city": city}))
        for n, city in enumerate(cities)
    )
    inside = [one for block in blocks for one in block]
    return [anthropic.start(), *inside, *anthropic.stop("tool_use")]


def _responses_calls(*cities):
    items = (
        responses.function(n, f"call_{n}", "weather", json.dumps({"city": city}))
        for n, city in enumerate(cities)
    )
    return [responses.start(), *(one for item in items for one in item), responses.end()]


def _chat_calls(*cities):
    pieces = [
        chat.call(n, json.dumps({"city": city}), f"call_{n}", "weather")
        for n, city in enumerate(cities)
    ]
    return [chat.calls(*pieces), chat.chunk(finish="tool_calls"), "DONE"]


def _google_calls(*cities):
    parts = [google.call("weather", {"city": city}) for city in cities]
    return [google.chunk(*parts), google.chunk(finish="STOP")]


VOICES = [
    Voice(
        WIRES[0],
        _anthropic_calls,
        [
            anthropic.start(usage={"input_tokens": 10, "cache_read_input_tokens": 90}),
            *anthropic.THINKING,
            *anthropic.text_block(1, "42"),
            *anthropic.stop(
                "end_turn", output_tokens=25, output_tokens_details={"thinking_tokens": 7}
            ),
        ],
        lambda body: [
            part["content"][0]["text"]
            for message in body["messages"]
            for part in message["content"]
            if part["type"] == "tool_result"
        ],
    ),
    Voice(
        WIRES[1],
        _responses_calls,
        [
            responses.start(),
            *responses.THINKING,
            *responses.message(1, "42"),
            responses.end(usage=responses.WHOLE[-1]["response"]["usage"]),
        ],
        lambda body: [
            item["output"] for item in body["input"] if item.get("type") == "function_call_output"
        ],
    ),
    Voice(
        WIRES[2],
        _chat_calls,
        [
            chat.chunk({"reasoning_content": "Let me look."}),
            chat.chunk({"content": "42"}, "stop"),
            chat.WHOLE[-1],
            "DONE",
        ],
        lambda body: [one["content"] for one in body["messages"] if one["role"] == "tool"],
    ),
    Voice(
        WIRES[3],
        _google_calls,
        [
            google.chunk(google.thought("Let me look.")),
            google.chunk(
                google.text("42"),
                finish="STOP",
                usage={
                    "promptTokenCount": 100,
                    "candidatesTokenCount": 18,
                    "thoughtsTokenCount": 7,
                    "cachedContentTokenCount": 90,
                },
            ),
        ],
        lambda body: [
            part["functionResponse"]["response"]["output"]
            for content in body["contents"]
            for part in content["parts"]
            if "functionResponse" in part
        ],
    ),
]


every_voice = pytest.mark.parametrize("voice", VOICES, ids=lambda voice: voice.wire.preset)


class Host:
    """A server that gives these answers, and a client of it."""

    def __init__(self, voice, *replies):
        self.server = WireServer(*replies)
        self.name = voice.wire.preset
        self.model = f"{self.name}/model-x"

    async def __aenter__(self):
        await self.server.__aenter__()
        variable = f"{self.name.upper().replace('-', '_')}_BASE_URL"
        self.client = Client.from_env({variable: self.server.url})
        return self

    async def __aexit__(self, *_):
        await self.client.close()
        await self.server.__aexit__()

    @property
    def how(self):
        return {"model": self.model, "client": self.client}

    @property
    def bodies(self):
        return [request.body for request in self.server.requests]
