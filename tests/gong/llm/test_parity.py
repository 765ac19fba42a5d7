"""The same fifteen things on every wire, each through `generate` and real HTTP (llm.md, 8.9)."""

import json
from base64 import b64encode
from typing import Any, NamedTuple

import pytest
from msgspec import Raw, Struct

from gong.errors import AuthenticationError, RateLimited
from gong.llm import Client, StepFinish, Tool, generate, generate_object, stream_text
from gong.llm.types import Finish, StreamStart, ToolCallEnd
from tape.context.view import Message
from tape.model.entries import Text
from tests.gong.llm import test_anthropic as anthropic
from tests.gong.llm import test_google as google
from tests.gong.llm import test_openai_chat as chat
from tests.gong.llm import test_openai_responses as responses
from tests.gong.llm.test_wire import WIRES, Wire
from tests.gong.llm.wire_server import Reply, WireServer, json_reply

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


@every_voice
async def test_simple_and_streamed_text_are_the_same(voice):
    """M152: rows 1, 2 and 13: text, a stream that joins to it, start, finish, usage."""
    async with Host(voice, *voice.replies("Hi there.")) as host:
        whole = await generate(prompt="hi", **host.how)
        stream = stream_text(prompt="hi", **host.how)
        events = [event async for event in stream]
        result = await stream.result()
    assert (whole.text, whole.finish_reason, result.text) == ("Hi there.", "stop", "Hi there.")
    assert isinstance(events[0], StreamStart)
    assert isinstance(events[-2], Finish)
    assert isinstance(events[-1], StepFinish)
    assert events[0].response_id == whole.response.response_id
    assert (whole.usage, whole.response.model) == (result.usage, result.response.model)


@every_voice
async def test_pictures_by_bytes_and_by_address(voice):
    """M152: rows 3 and 4."""
    address = "https://x.example/a.png"
    async with Host(voice, *voice.replies("A cat.")) as host:
        await generate(prompt="what?", pictures=[PNG, address], **host.how)
        sent = json.dumps(host.bodies[0])
    assert [b64encode(PNG).decode() in sent, address in sent] == [True, True]


@every_voice
async def test_one_tool_and_parallel_tools_go_back_in_one_request(voice):
    """M141, M152: rows 5 and 6: tools told, calls read, ids made, results in their order."""
    for cities in (["Rome"], ["Rome", "Oslo", "Rome"]):
        async with Host(voice, *voice.replies(voice.calls(*cities), "Sunny.")) as host:
            result = await generate(prompt="weather?", tools=[WEATHER], **host.how)
            first, second = host.bodies
        assert "Tell the weather." in json.dumps(first["tools"])
        assert (result.text, len(result.steps)) == ("Sunny.", 2)
        assert voice.results(second) == [f"sun in {city}" for city in cities]
        ids = [call.id for call in result.steps[0].tool_calls]
        assert len({*ids}) == len(cities)


@every_voice
async def test_more_than_three_rounds_with_a_stream(voice):
    """M152: rows 7 and 8; what was sent before is sent again, byte for byte."""
    cities = ["Rome", "Oslo", "Bern", "Kyiv"]
    answers = [*(voice.calls(city) for city in cities), "Sunny."]
    async with Host(voice, *voice.replies(*answers)) as host:
        stream = stream_text(prompt="weather?", tools=[WEATHER], max_tool_rounds=9, **host.how)
        events = [event async for event in stream]
        bodies = host.bodies
    assert len([event for event in events if isinstance(event, ToolCallEnd)]) == 4
    assert len([event for event in events if isinstance(event, StepFinish)]) == 5
    assert voice.results(bodies[-1]) == [f"sun in {city}" for city in cities]
    usage = (await stream.result()).total_usage
    assert usage.output == sum(event.usage.output for event in events if isinstance(event, Finish))


@every_voice
async def test_an_object_is_checked(voice):
    """M152: row 9: Alice, 30, in the provider's own way where it has one."""
    alice = {"name": "Alice", "age": 30}
    said = json.dumps(alice)
    if voice.wire.preset == "anthropic":
        call = anthropic.tool_block(0, "toolu_1", "answer", said)
        said = [anthropic.start(), *call, *anthropic.stop("tool_use")]
    async with Host(voice, *voice.replies(said)) as host:
        result = await generate_object(kind=Person, prompt="Who?", **host.how)
        sent = json.dumps(host.bodies[0])
    assert result.output == Person("Alice", 30)
    assert '"age"' in sent


@every_voice
async def test_thinking_and_what_was_cached_are_counted(voice):
    """M141, M147, M152: rows 10, 13 and 14."""
    async with Host(voice, *voice.replies(voice.thinks)) as host:
        result = await generate(prompt="think", **host.how)
    usage = result.usage
    assert (result.text, result.reasoning[:12]) == ("42", "Let me look.")
    assert (usage.input, usage.output, usage.reasoning, usage.cache_read) == (10, 25, 7, 90)
    assert usage.total == 125


@every_voice
async def test_a_second_turn_begins_with_the_bytes_of_the_first(voice):
    """M152: row 14: a provider can find in its cache what it has seen."""
    first = Message("user", (Text("one"),))
    said = Message("assistant", (Text("two"),))
    turns = [(first,), (first, said, Message("user", (Text("three"),)))]
    async with Host(voice, *voice.replies("two")) as host:
        for messages in turns:
            await generate(messages=messages, system="Be brief.", tools=[WEATHER], **host.how)
        one, two = (_unmarked(body) for body in host.bodies)
    name = {"openai": "input", "google": "contents"}.get(host.name, "messages")
    assert two[name][: len(one[name])] == one[name]
    assert {**two, name: 0} == {**one, name: 0}


@every_voice
async def test_by_the_fifth_turn_most_of_a_call_can_come_from_a_cache(voice):
    """M152: llm.md, 8.6: more than half of it begins as the call before it did."""
    messages = []
    async with Host(voice, *voice.replies("An answer of a few words.")) as host:
        for turn in range(5):
            messages.append(Message("user", (Text(f"Question {turn}, of a few words as well."),)))
            done = await generate(messages=messages, system="Be brief.", **host.how)
            messages.append(Message("assistant", done.response.content))
        *_, fourth, fifth = (json.dumps(_unmarked(body)).encode() for body in host.bodies)
    same = next(
        place for place, pair in enumerate(zip(fourth, fifth, strict=False)) if len({*pair}) > 1
    )
    assert same > len(fifth) / 2


def _unmarked(value):
    """Return a body without the marks of Anthropic's cache, which wander to the newest turn."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return value


@every_voice
async def test_a_bad_key_fails_at_once_and_a_busy_host_is_asked_again(voice):
    """M150, M152: rows 11 and 12."""
    async with Host(voice, json_reply(401, voice.wire.refuse("invalid key"))) as host:
        with pytest.raises(AuthenticationError):
            await generate(prompt="x", **host.how)
        assert len(host.bodies) == 1
    busy = json_reply(429, voice.wire.refuse("slow down"), retry_after="0")
    async with Host(voice, busy, *voice.replies("late")) as host:
        assert (await generate(prompt="x", **host.how)).text == "late"
        assert len(host.bodies) == 2
    async with Host(voice, busy) as host:
        with pytest.raises(RateLimited):
            await generate(prompt="x", max_retries=0, **host.how)
        assert len(host.bodies) == 1


@every_voice
async def test_options_of_the_provider_pass_through(voice):
    """M152: row 15."""
    async with Host(voice, *voice.replies("x")) as host:
        await generate(prompt="x", options=Raw(b'{"made_later":{"x":[1]}}'), **host.how)
        assert host.bodies[0]["made_later"] == {"x": [1]}
