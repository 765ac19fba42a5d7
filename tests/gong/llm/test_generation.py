import asyncio
import json
from contextlib import aclosing

import msgspec
import pytest
from msgspec import Struct

from gong.errors import (
    ConfigurationError,
    NoObject,
    RateLimited,
    RequestTimeout,
    ServerError,
)
from gong.llm import (
    Client,
    StepFinish,
    Tool,
    generate,
    generate_object,
    set_default_client,
    stream_object,
    stream_text,
)
from gong.llm.types import StreamStart, TextDelta, ToolChoice
from gong.sdk.objects import (
    build_json_schema,
    build_response_format,
    parse_object,
    parse_object_schema,
    remove_fence,
)
from tape.context.view import Message
from tape.model.entries import Text


class City(Struct):
    name: str
    people: int = 0


class Asked(Struct):
    city: str


@pytest.fixture
def scripted(tmp_path):
    """Return a client and the name of a model that plays the given answers."""

    def make(*answers, middleware=()):
        path = tmp_path / "script.json"
        path.write_text(json.dumps(list(answers)))
        return {
            "model": f"scripted/{path}",
            "client": Client.from_env({}, middleware=middleware),
        }

    return make


def calling(*calls):
    return {"tool_calls": [{"name": name, "args": args} for name, args in calls]}


def weather(asked):
    if asked.city == "Nowhere":
        raise ValueError("no such city")
    return {"city": asked.city, "sun": True}


WEATHER = Tool("weather", "Tell the weather.", Asked, weather)


async def test_a_prompt_or_messages_but_not_both(scripted):
    """M152."""
    assert (await generate(prompt="hi", **scripted({"text": "ho"}))).text == "ho"
    messages = [Message("user", (Text("hi"),))]
    assert (await generate(messages=messages, **scripted({"text": "hu"}))).text == "hu"
    for wrong in ({}, {"prompt": "a", "messages": messages}):
        with pytest.raises(ConfigurationError, match="either a prompt or messages"):
            await generate(**wrong, **scripted({"text": "x"}))


async def test_a_field_of_a_request_that_is_unknown_is_named(scripted):
    for ask, more in ((generate, {}), (generate_object, {"kind": City})):
        with pytest.raises(ConfigurationError) as caught:
            await ask(prompt="x", max_token=5, **more, **scripted({"text": "x"}))
        assert str(caught.value) == "unknown setting max_token: did you mean max_tokens?"


async def test_the_words_of_a_stream_join_to_the_text(scripted):
    """M152: stream and whole answer are the same."""
    stream = stream_text(prompt="haiku", **scripted({"text": "an old silent pond"}))
    pieces = [piece async for piece in stream.text_stream()]
    assert len(pieces) > 1
    result = await stream.result()
    assert "".join(pieces) == result.text == "an old silent pond"
    assert result.finish_reason == "stop"


async def test_calls_run_together_and_go_back_in_one_request(scripted):
    """M152: parallel, in order, one continuation, failures as results."""
    calls = calling(("weather", {"city": "Rome"}), ("weather", {"city": "Nowhere"}), ("fly", {}))
    seen = []

    async def watch(request, call):
        seen.append(request)
        async for event in call(request):
            yield event

    how = scripted(calls, {"text": "sunny"}, middleware=[watch])
    result = await generate(prompt="weather?", tools=[WEATHER], **how)
    assert result.text == "sunny"
    assert [(one.output, one.is_error) for one in result.steps[0].tool_results] == [
        ('{"city":"Rome","sun":true}', False),
        ("ValueError: no such city", True),
        ("there is no tool fly", True),
    ]
    assert len(seen) == 2
    roles = [message.role for message in seen[1].messages]
    assert roles == ["user", "assistant", "tool", "tool", "tool"]
    ids = [call.id for call in result.steps[0].tool_calls]
    assert [message.call_id for message in seen[1].messages[2:]] == ids
    assert result.total_usage == result.steps[0].usage + result.steps[1].usage
    assert result.usage == result.steps[1].usage


@pytest.mark.parametrize(("rounds", "calls"), [(0, 1), (1, 2), (2, 3)])
async def test_rounds_are_counted(scripted, rounds, calls):
    """M152: at most rounds + 1 calls; 0 leaves the tool calls to the caller."""
    answers = [calling(("weather", {"city": "Rome"}))] * 4
    how = scripted(*answers)
    result = await generate(prompt="x", tools=[WEATHER], max_tool_rounds=rounds, **how)
    assert len(result.steps) == calls
    assert result.tool_calls[0].name == "weather"
    assert result.tool_results == ()


async def test_a_tool_without_a_body_is_the_callers_and_stop_when_stops(scripted):
    """M152: passive tools, stop_when."""
    passive = Tool("ask", "Ask.", {"type": "object", "properties": {}})
    result = await generate(
        prompt="x", tools=[passive], max_tool_rounds=5, **scripted(calling(("ask", {})))
    )
    assert (len(result.steps), result.tool_results) == (1, ())
    again = [calling(("weather", {"city": "Rome"}))] * 5
    result = await generate(
        prompt="x",
        tools=[WEATHER],
        max_tool_rounds=9,
        stop_when=lambda steps: len(steps) == 2,
        **scripted(*again),
    )
    assert len(result.steps) == 2


async def test_wrong_arguments_are_a_result_and_a_body_gets_what_it_asks_for(scripted):
    """M152: arguments checked; call_id and messages by name."""

    async def execute(arguments, call_id, messages):
        return f"{arguments['a']} {call_id[:2]} {len(messages)}"

    tool = Tool("t", "T.", {"type": "object"}, execute)
    calls = calling(("t", {"a": 1}), ("weather", {"city": 5}))
    result = await generate(prompt="x", tools=[tool, WEATHER], **scripted(calls, {"text": "."}))
    first, second = result.steps[0].tool_results
    assert first.output == "1 c_ 1"
    assert second.is_error
    assert second.output.startswith("wrong arguments: Expected `str`, got `int`")


async def test_a_call_that_cannot_run_may_be_repaired(scripted):
    """M152: repair_tool_call, for wrong arguments and names; what is repaired is what goes on."""
    seen, asked = [], []

    async def watch(request, call):
        seen.append(request)
        async for event in call(request):
            yield event

    async def repair(call, why):
        asked.append((call.name, why))
        if call.name == "wether":
            return msgspec.structs.replace(call, name="weather", id="another")
        return None

    calls = calling(("wether", {"city": "Rome"}), ("weather", {}), ("weather", {"city": "Oslo"}))
    how = scripted(calls, {"text": "sunny"}, middleware=[watch])
    result = await generate(prompt="x", tools=[WEATHER], repair_tool_call=repair, **how)
    first, second, third = result.steps[0].tool_results
    assert (first.output, first.is_error) == ('{"city":"Rome","sun":true}', False)
    assert (second.output[:16], third.is_error) == ("wrong arguments:", False)
    assert [name for name, _ in asked] == ["wether", "weather"]
    assert asked[0][1] == "there is no tool wether"
    _, answer, *results = seen[1].messages
    assert [call.name for call in answer.content] == ["weather"] * 3
    ids = [call.id for call in result.steps[0].tool_calls]
    assert [message.call_id for message in results] == ids == [one.id for one in answer.content]
    assert result.steps[0].tool_calls[0].name == "wether"


async def test_a_repair_may_give_other_arguments_and_be_no_coroutine(scripted):
    def repair(call, _):
        return msgspec.structs.replace(call, args=msgspec.Raw(b'{"city":"Rome"}'), args_text=None)

    how = scripted(calling(("weather", {"town": "Rome"})), {"text": "ok"})
    result = await generate(prompt="x", tools=[WEATHER], repair_tool_call=repair, **how)
    assert result.steps[0].tool_results[0].output == '{"city":"Rome","sun":true}'


async def test_an_object_is_asked_for_in_words_where_no_call_can_be_forced(scripted):
    how = scripted(calling(("answer", {"name": "Rome"})))
    provider, _ = how["client"].resolve(how["model"])
    provider.supports_tool_choice = lambda mode: mode == "auto"
    assert (await generate_object(kind=City, prompt="x", **how)).output == City("Rome")


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a" * 65])
def test_a_tool_is_checked_when_it_is_made(name):
    """M152."""
    with pytest.raises(ConfigurationError, match="not a tool name"):
        Tool(name, "", {"type": "object"})
    with pytest.raises(ConfigurationError, match="must be an object"):
        Tool("ok", "", {"type": "string"})
    with pytest.raises(ConfigurationError):
        Tool("ok", "", int)


def failing(kind, **more):
    return {"error": {"class": kind, "message": "no", **more}}


async def test_a_call_is_tried_again_before_it_speaks_and_an_error_is_raised(scripted):
    """M152: each call on its own, none with max_retries 0."""
    quick = failing("RateLimited", retry_after=0)
    assert (await generate(prompt="x", **scripted(quick, quick, {"text": "late"}))).text == "late"
    with pytest.raises(RateLimited):
        await generate(prompt="x", max_retries=0, **scripted(quick, {"text": "late"}))
    with pytest.raises(ServerError):
        await generate(prompt="x", max_retries=0, **scripted(failing("ServerError")))


async def test_a_limit_in_time_closes_the_stream(scripted):
    closed = []

    async def slow(request, call):
        try:
            await asyncio.sleep(60)
            yield TextDelta(0, "never")
        finally:
            closed.append(True)

    with pytest.raises(RequestTimeout, match=r"within 1 s"):
        await generate(prompt="x", timeout=1, **scripted({"text": "x"}, middleware=[slow]))
    assert closed == [True]


async def test_closing_a_stream_closes_the_call_under_it(scripted):
    """M152: abort closes the connection."""
    closed = []

    async def watch(request, call):
        try:
            async with aclosing(call(request)) as events:
                async for event in events:
                    yield event
        finally:
            closed.append(True)

    how = scripted({"text": "one two three"}, middleware=[watch])
    stream = stream_text(prompt="x", **how)
    assert isinstance(await anext(aiter(stream)), StreamStart)
    assert closed == []
    await stream.close()
    assert closed == [True]


async def test_an_object_by_a_forced_call(scripted):
    """M152: generate_object on a provider without a way of its own."""
    seen = []

    async def watch(request, call):
        seen.append(request)
        async for event in call(request):
            yield event

    how = scripted(calling(("answer", {"name": "Alice", "people": 30})), middleware=[watch])
    result = await generate_object(kind=City, prompt="x", **how)
    assert result.output == City("Alice", 30)
    assert seen[0].tool_choice == ToolChoice("named", "answer")
    assert seen[0].response_format is None


async def test_an_object_in_the_providers_own_way(scripted):
    """M152: provider-native where it exists."""
    how = scripted({"text": '{"name": "Rome", "people": 3}'})
    provider, _ = how["client"].resolve(how["model"])
    provider.native_objects = True
    assert (await generate_object(kind=City, prompt="x", **how)).output == City("Rome", 3)


@pytest.mark.parametrize("answer", [calling(("answer", {"people": 1})), {"text": "sorry"}])
async def test_what_is_no_such_object_is_an_error_and_not_tried_again(scripted, answer):
    """M152."""
    with pytest.raises(NoObject, match="the answer is not a City") as caught:
        await generate_object(kind=City, prompt="x", **scripted(answer, answer))
    assert caught.value.text in {'{"people":1}', "sorry"}


async def test_an_object_grows(scripted):
    """M055, M152."""
    said = calling(("answer", {"name": "a long name for a city", "people": 30}))
    how = scripted({**said, "chunk": 5})
    seen = [one async for one in stream_object(kind=City, prompt="x", **how)]
    assert seen[-1] == City("a long name for a city", 30)
    names = [one.get("name", "") for one in seen[:-1]]
    assert names == sorted(names, key=len)
    assert len(set(names)) > 2


async def test_steps_are_marked_in_a_stream(scripted):
    """M152: step_finish between the rounds."""
    stream = stream_text(
        prompt="x",
        tools=[WEATHER],
        **scripted(calling(("weather", {"city": "Rome"})), {"text": "ok"}),
    )
    marks = [event.step.text async for event in stream if isinstance(event, StepFinish)]
    assert marks == ["", "ok"]


async def test_the_default_client_is_used_where_none_is_given(scripted):
    """M152: set_default_client."""
    how = scripted({"text": "default"})
    set_default_client(how["client"])
    try:
        assert (await generate(how["model"], prompt="x")).text == "default"
    finally:
        set_default_client(None)


class Inner(Struct):
    default: int = 1


class Nested(Struct):
    inner: list[Inner]
    either: int | None = None


class Free(Struct):
    words: dict[str, int]


def test_a_schema_is_strict_where_all_its_fields_can_be_named():
    shape = build_response_format(Nested)
    assert (shape.name, shape.strict) == ("Nested", True)
    schema = json.loads(bytes(shape.schema))
    assert schema["required"] == ["inner", "either"]
    assert schema["$defs"]["Inner"]["required"] == ["default"]
    assert schema["$defs"]["Inner"]["additionalProperties"] is False
    assert not build_response_format(Free).strict
    assert build_json_schema(City)["required"] == ["name"]


CITY_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
    "required": ["name", "people"],
    "additionalProperties": False,
}


async def test_an_object_of_a_json_schema_is_a_dict(scripted):
    """M152."""
    how = scripted(calling(("answer", {"name": "Rome", "people": 3})))
    result = await generate_object(kind=CITY_SCHEMA, prompt="x", **how)
    assert result.output == {"name": "Rome", "people": 3}


async def test_what_does_not_fit_a_json_schema_is_named_with_its_place(scripted):
    how = scripted(calling(("answer", {"name": "Rome", "people": 0})))
    with pytest.raises(NoObject, match=r"the schema: \$\.people: 0 is less than the minimum of 1"):
        await generate_object(kind=CITY_SCHEMA, prompt="x", **how)


@pytest.mark.parametrize(
    ("changes", "strict"),
    [
        ({}, True),
        ({"required": ["name"]}, False),
        ({"additionalProperties": True}, False),
        ({"minProperties": 1}, False),
        ({"anyOf": [{"type": "object", "additionalProperties": False}]}, False),
        ({"$defs": {"day": {"type": "string", "format": "date"}}}, True),
        ({"$defs": {"day": {"type": "string", "format": "iri"}}}, False),
        ({"$defs": {"day": {"$ref": "#/$defs/day", "title": "Day"}}}, False),
        ({"$defs": {"part": {"type": "object"}}}, False),
    ],
)
def test_a_json_schema_is_sent_as_it_is_and_strict_where_it_is_closed(changes, strict):
    schema = CITY_SCHEMA | changes
    shape = build_response_format(schema)
    assert (json.loads(bytes(shape.schema)), shape.strict) == (schema, strict)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is not a JSON object"),
        ('{"type": "array"}', 'its "type" must be "object"'),
        ('{"type": "objekt"}', 'its "type" must be "object"'),
        (
            '{"properties": {"a": {"type": "text"}}}',
            r"\$\.properties\.a\.type: 'text' is not",
        ),
        ('{"required": "a"}', "'a' is not of type 'array'"),
        ('{"properties": {"a": {"$ref": "#/$defs/b"}}}', "refers to #/\\$defs/b, which is not in"),
        ('{"$ref": "http://127.0.0.1:9/schema"}', "which is not in it"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(text, why):
    """Without any request to another host."""
    with pytest.raises(ConfigurationError, match=why):
        parse_object_schema(text)


def test_schemas_of_older_drafts_and_with_definitions_are_taken():
    schema = parse_object_schema(
        '{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type":'
        ' "integer"}}, "properties": {"a": {"$ref": "#/definitions/n"}, "$ref": {}}}'
    )
    assert parse_object('{"a": 1}', schema) == {"a": 1}
    with pytest.raises(NoObject, match=r"\$\.a: 'x' is not of type 'integer'"):
        parse_object('{"a": "x"}', schema)


def test_a_schema_without_end_is_an_error_of_the_answer():
    with pytest.raises(NoObject, match="the schema has no end"):
        parse_object("{}", parse_object_schema('{"$ref": "#"}'))


@pytest.mark.parametrize("text", ['{"a": 1}', ' {"a": 1}\n', '```json\n{"a": 1}\n```\n'])
def test_a_fence_around_an_object_is_removed(text):
    assert remove_fence(text) == '{"a": 1}'
