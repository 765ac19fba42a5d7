"""The same fifteen things on every wire, each through `generate` and real HTTP (llm.md, 8.9)."""

import json
from base64 import b64encode

import pytest
from msgspec import Raw

from gong.errors import AuthenticationError, RateLimited
from gong.llm import StepFinish, generate, generate_object, stream_text
from gong.llm.types import Finish, StreamStart, ToolCallEnd
from tape.context.view import Message
from tape.model.entries import Text
from tests.wires import anthropic
from tests.wires.server import json_reply
from tests.wires.voices import (
    PNG,
    WEATHER,
    Host,
    Person,
    every_voice,
)


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
async def test_a_bad_key_fails_immediately_and_a_busy_host_is_asked_again(voice):
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
