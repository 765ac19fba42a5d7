import json
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong import errors
from gong.llm.models import Preset, load_presets
from gong.llm.provider_factory import create_wire_provider
from gong.llm.types import (
    OpaqueBlock,
    Request,
    ResponseFormat,
    StreamFailure,
    TextDelta,
    ToolChoice,
    ToolSpec,
)
from tape.context.view import Message
from tape.model.entries import Opaque, Text, Thinking, ToolCall, Usage
from tests.wires.openai_responses import (
    REASONING,
    WHOLE,
    compact,
    delta,
    end,
    function,
    item,
    message,
    start,
)
from tests.wires.server import Reply, WireServer, accumulated, events_of, sse

KEY = "sk-test-0123456789"
HELLO = Request(model="gpt-6.1-sol", messages=(Message("user", (Text("hello"),)),))
READ = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{}}'))
PLAIN = Preset(name="host", api="openai-responses", base_url="http://127.0.0.1")
OPENAI = load_presets({})["openai"]


async def events_for(reply, request=HELLO, preset=PLAIN):
    async with WireServer(reply) as server:
        return await events_of(create_wire_provider(preset, KEY, server.url), request)


async def answer_for(*events, **reply):
    return accumulated(await events_for(Reply(sse(*events), **reply)))


async def sent_for(request=HELLO, preset=OPENAI):
    async with WireServer(Reply(sse(start(), end()))) as server:
        await events_of(create_wire_provider(preset, KEY, server.url), request)
        return server.requests[0].body


async def test_a_tool_round_trip_sends_reasoning_back_before_what_it_led_to():
    """The encrypted item goes back whole, to the same place."""
    async with WireServer(
        Reply(sse(*WHOLE)), Reply(sse(start(), *message(0, "Done."), end()))
    ) as server:
        provider = create_wire_provider(OPENAI, KEY, server.url)
        first = accumulated([event async for event in provider.stream(HELLO)])
        result = Message("tool", (Text("12 lines"),), "c_00000000_0", "read")
        steering = Message("system", (Text("Hurry."),))
        history = (*HELLO.messages, Message("assistant", first.content), result, steering)
        request = Request(
            model="gpt-6.1-sol",
            messages=history,
            system="Be brief.",
            tools=(READ,),
            session="t1",
            reasoning_effort="high",
        )
        second = accumulated(await events_of(provider, request))
        assert (second.text, server.connections) == ("Done.", 1)
        assert server.requests[1].path == "/responses"
        assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"
        part = {"type": "output_text", "text": "I read it —  \u2028🙂", "annotations": []}
        assert server.requests[1].body == {
            "model": "gpt-6.1-sol",
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "t1",
            "instructions": "Be brief.",
            "reasoning": {"effort": "high", "summary": "auto"},
            "tools": [
                {
                    "type": "function",
                    "name": "read",
                    "description": "Read a file.",
                    "parameters": {"type": "object", "properties": {}},
                    "strict": False,
                }
            ],
            "input": [
                {"role": "user", "content": "hello"},
                REASONING,
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [part],
                    "id": "msg_1",
                    "phase": "commentary",
                    "status": "completed",
                },
                {
                    "type": "function_call",
                    "id": "fc_2",
                    "call_id": "c_00000000_0",
                    "name": "read",
                    "arguments": '{"path": "a.txt"}',
                    "status": "completed",
                },
                {
                    "type": "function_call_output",
                    "call_id": "c_00000000_0",
                    "output": "12 lines",
                },
                {"role": "developer", "content": "Hurry."},
            ],
        }


async def test_reasoning_in_full_is_thinking_too():
    done = {"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": "hm"}]}
    answer = await answer_for(
        start(),
        *item(0, {"type": "reasoning"}, done, *delta("reasoning_text", "h", "m", content_index=0)),
        end(),
    )
    assert answer.content == (Thinking("hm", wire=compact(done)),)


async def test_encrypted_reasoning_is_redacted():
    done = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gAAA=="}
    answer = await answer_for(start(), *item(0, {"type": "reasoning"}, done), end())
    assert answer.content == (Thinking("", redacted=True, wire=compact(done)),)


async def test_a_refusal_is_text_that_goes_back_as_one():
    begun = {"type": "message", "id": "m"}
    done = {**begun, "content": [{"type": "refusal", "refusal": "No."}]}
    answer = await answer_for(
        start(), *item(0, begun, done, *delta("refusal", "No", ".", content_index=0)), end()
    )
    assert answer.content == (Text("No.", wire=compact({"id": "m", "type": "refusal"})),)
    assert answer.stop_reason == "stop"


async def test_parts_of_one_message_are_blocks_with_its_id():
    begun = {"type": "message", "id": "m"}
    cited = [{"type": "url_citation", "url": "u"}]
    parts = [
        {"type": "output_text", "text": "a", "annotations": cited},
        {"type": "output_text", "text": "b", "annotations": []},
    ]
    answer = await answer_for(
        start(),
        *item(
            0,
            begun,
            {**begun, "content": parts},
            *delta("output_text", "a", content_index=0),
            *delta("output_text", "b", content_index=1),
        ),
        end(),
    )
    assert answer.content == (
        Text("a", wire=compact({"id": "m", "annotations": cited})),
        Text("b", wire=compact({"id": "m"})),
    )


async def test_a_freeform_call_keeps_its_text_and_type():
    begun = {"type": "custom_tool_call", "id": "ct", "call_id": "call_1", "name": "sql"}
    answer = await answer_for(
        start(),
        *item(
            0,
            {**begun, "input": ""},
            {**begun, "input": "SELECT 1"},
            *delta("custom_tool_call_input", "SELECT ", "1"),
        ),
        end(),
    )
    wire = {"type": "custom_tool_call", "id": "ct", "call_id": "call_1"}
    assert answer.tool_calls == (
        ToolCall(id="c_00000000_0", name="sql", args_text="SELECT 1", wire=compact(wire)),
    )
    assert answer.stop_reason == "tool_calls"


async def test_items_of_the_providers_own_tools_are_no_calls_of_ours():
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    later = {"type": "made_later_call", "call_id": "call_9", "name": "bash", "arguments": "{}"}
    events = await events_for(
        Reply(
            sse(
                start(),
                *item(0, {**search, "status": "in_progress"}, search),
                {"type": "response.web_search_call.searching", "output_index": 0},
                *item(1, later, later, *delta("made_later_call_arguments", "{}")),
                *message(2, "Found."),
                end(),
            )
        )
    )
    assert [event for event in events if isinstance(event, OpaqueBlock)] == [
        OpaqueBlock(0, compact(search)),
        OpaqueBlock(1, compact(later)),
    ]
    answer = accumulated(events)
    assert (answer.tool_calls, answer.text, answer.stop_reason) == ((), "Found.", "stop")


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "response.function_call_arguments.done", "arguments": '{"n":1}'}],
        [*delta("function_call_arguments", '{"n"')],
        [],
    ],
    ids=["only done", "cut short", "only the item"],
)
async def test_arguments_that_were_not_streamed_are_taken_from_the_whole(events):
    begun = {"type": "function_call", "id": "fc", "call_id": "call_1", "name": "ls"}
    done = {**begun, "arguments": '{"n":1}'}
    answer = await answer_for(start(), *item(0, begun, done, *events), end())
    assert [one.args for one in answer.tool_calls] == [Raw(b'{"n":1}')]


async def test_an_answer_may_come_whole_in_its_last_event():
    begun = {"type": "message", "id": "m"}
    output = [{**begun, "content": [{"type": "output_text", "text": "x"}]}]
    answer = await answer_for(end(output=output))
    assert (answer.text, answer.model, answer.response_id) == ("x", "gpt-x", "resp_1")


async def test_items_without_an_end_are_whole_when_the_answer_is():
    call = function(0, "call_1", "ls", "{", "}")[:-1]
    said = message(1, "Hel", "lo")[:-1]
    answer = await answer_for(start(), *call, *said, end())
    assert [one.args for one in answer.tool_calls] == [Raw(b"{}")]
    assert answer.content[1] == Text("Hello", wire=compact({"id": "msg_1"}))


async def test_an_item_that_is_ended_twice_is_one():
    said = message(0, "Hello")
    answer = await answer_for(start(), *said, said[-1], end())
    assert answer.text == "Hello"


async def test_an_answer_may_end_in_the_word_of_other_hosts():
    answer = await answer_for(start(), *message(0, "Hello"), {**end(), "type": "response.done"})
    assert (answer.text, answer.stop_reason) == ("Hello", "stop")


async def test_items_are_distinguished_by_id_where_they_have_no_place():
    def unplaced(event):
        return {key: value for key, value in event.items() if key != "output_index"}

    one, other = function(1, "a", "ls", "{", "}"), function(2, "b", "read", '{"n":', "1}")
    mixed = [event for pair in zip(one, other, strict=True) for event in pair]
    placed = [
        {**event, "item_id": f"fc_{event['output_index']}"} if "delta" in event else event
        for event in mixed
    ]
    answer = await answer_for(start(), *map(unplaced, placed), end())
    assert [(call.name, call.args) for call in answer.tool_calls] == [
        ("ls", Raw(b"{}")),
        ("read", Raw(b'{"n":1}')),
    ]


async def test_events_of_items_without_a_start_are_ignored():
    answer = await answer_for(
        start(), *delta("output_text", "lost", output_index=7), *message(0, "x"), end()
    )
    assert answer.text == "x"


@pytest.mark.parametrize(
    ("reason", "ours"),
    [
        ("max_output_tokens", "length"),
        ("content_filter", "content_filter"),
        ("made_later", "length"),
    ],
)
async def test_an_incomplete_answer_says_why(reason, ours):
    details = {"incomplete_details": {"reason": reason}}
    answer = await answer_for(start(), *message(0, "x"), end("incomplete", **details))
    assert (answer.text, answer.stop_reason, answer.raw_stop) == ("x", ours, reason)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (end("failed", error={"code": "server_error", "message": "oops"}), errors.ServerError),
        (
            end("failed", error={"code": "rate_limit_exceeded", "message": "slow down"}),
            errors.RateLimited,
        ),
        (end("failed", error={"code": "insufficient_quota", "message": "?"}), errors.QuotaExceeded),
        (
            end("failed", error={"code": "context_length_exceeded", "message": "?"}),
            errors.ContextLengthExceeded,
        ),
        (end("failed", error={"code": "invalid_prompt", "message": "?"}), errors.InvalidRequest),
        (end("failed", error=None), errors.StreamError),
        ({"type": "error", "code": "server_error", "message": "oops"}, errors.ServerError),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "?"}},
            errors.InvalidRequest,
        ),
        ({"type": "error", "code": "invented", "message": "?"}, errors.StreamError),
        ({"type": "error", "code": None, "message": f"bad {KEY}"}, errors.StreamError),
    ],
)
async def test_a_failure_in_the_stream_becomes_ours(event, expected):
    events = await events_for(Reply(sse(start(), *message(0, "Hel")[:-1], event)))
    assert TextDelta(0, "Hel") in events
    assert isinstance(events[-1], StreamFailure)
    assert type(events[-1].error) is expected
    assert KEY not in str(events[-1].error)


async def test_a_failure_keeps_what_was_counted():
    events = await events_for(Reply(sse(start(), end("failed", error={"code": "server_error"}))))
    assert events[-1].usage == Usage(10, 5, total=15)


CHOSEN = Request(
    model="gpt-6.1-sol",
    messages=HELLO.messages,
    tools=(READ,),
    tool_choice=ToolChoice("named", "read"),
    max_tokens=9,
    temperature=0.5,
    options=Raw(b'{"service_tier":"flex","max_output_tokens":7}'),
    response_format=ResponseFormat("Answer", Raw(b'{"type":"object"}'), strict=True),
)


async def test_sampling_choices_and_formats_reach_the_body():
    preset = replace(OPENAI, body={"service_tier": "auto", "truncation": "disabled"})
    sent = await sent_for(CHOSEN, preset)
    expected = {
        "max_output_tokens": 7,
        "temperature": 0.5,
        "service_tier": "flex",
        "truncation": "disabled",
        "tool_choice": {"type": "function", "name": "read"},
        "text": {
            "format": {
                "type": "json_schema",
                "name": "Answer",
                "schema": {"type": "object"},
                "strict": True,
            }
        },
    }
    assert {name: sent[name] for name in expected} == expected
    assert {"reasoning", "instructions"} & sent.keys() == set()


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("gpt-6.1-sol", True),
        ("gpt-5-nano", True),
        ("o4-mini", True),
        ("gpt-4o", False),
        ("gpt-4.1-mini", False),
        ("gpt-5-chat-latest", False),
    ],
)
async def test_only_models_that_reason_are_asked_for_reasoning(model, asked):
    assert ("include" in await sent_for(replace(HELLO, model=model))) == asked


async def test_other_hosts_get_no_cache_marks():
    sent = await sent_for(replace(CHOSEN, session="t1"), PLAIN)
    assert {"store", "include", "prompt_cache_key"} & sent.keys() == set()
    assert "strict" not in sent["tools"][0]


async def test_stop_sequences_are_refused_because_the_api_has_none():
    request = replace(HELLO, stop_sequences=("END",))
    provider = create_wire_provider(OPENAI, KEY, "http://127.0.0.1:1")
    (last,) = await events_of(provider, request)
    assert type(last.error) is errors.InvalidRequest
    assert "stop sequences" in str(last.error)


async def test_the_body_satisfies_the_sdks_own_types():
    types = import_module("openai.types.responses.response_create_params")
    pydantic = import_module("pydantic")
    adapter = pydantic.TypeAdapter(types.ResponseCreateParamsStreaming)
    assert adapter.validate_python(await sent_for(CHOSEN))["model"] == "gpt-6.1-sol"


CORPUS = Path(__file__).parents[3].parent / "shared/corpus/sse/openai_responses"


def kind_of(block):
    if isinstance(block, Opaque):
        return json.loads(bytes(block.raw))["type"]
    if isinstance(block, ToolCall):
        return json.loads(bytes(block.wire)).get("type", "function_call")
    return "message" if isinstance(block, Text) else "reasoning"


def called(one):
    wire = json.loads(bytes(one.wire))
    given = bytes(one.args).decode() if one.args_text is None else one.args_text
    return wire["call_id"], wire["id"], one.name, given


@pytest.mark.corpus
@pytest.mark.parametrize(("size", "crlf"), [(None, False), (7, True)], ids=["whole", "7 bytes"])
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.sse")), ids=lambda path: path.stem)
async def test_recorded_streams_give_the_recorded_answer(path, size, crlf):
    recorded = json.loads(path.with_suffix(".expected.json").read_text())
    expected, usage = recorded["expected"], recorded["expected"]["usage"]
    stream = path.read_bytes()
    if crlf:
        stream = stream[:100_000].replace(b"\n", b"\r\n") + stream[100_000:]
    answer = await answer_for_bytes(stream, size if len(stream) < 100_000 else 997)
    thoughts = [block for block in answer.content if isinstance(block, Thinking)]
    if "hand_trimmed" not in recorded["tags"]:
        assert answer.text == expected["text"] + expected["refusal"]
    assert "".join(block.text for block in thoughts).replace("\n\n", "") == (
        expected["reasoning_summary"] + expected["reasoning_text"]
    ).replace("\n\n", "")
    assert [called(one) for one in answer.tool_calls] == [
        (one["call_id"], one["id"], one["name"], one.get("arguments_raw", one.get("input")))
        for one in expected["tool_calls"]
    ]
    assert [kind_of(block) for block in answer.content] == expected["output_types"]
    encrypted = [json.loads(bytes(block.wire)).get("encrypted_content") for block in thoughts]
    assert len([*filter(None, encrypted)]) == expected["encrypted_reasoning_items"]
    assert (answer.raw_stop, answer.model, answer.response_id) == (
        expected["status"],
        expected["model"],
        expected["id"],
    )
    read, write = answer.usage.cache_read or 0, answer.usage.cache_write or 0
    whole = answer.usage.input + read + write
    assert (whole, answer.usage.output, answer.usage.total, read) == (
        usage["input_tokens"],
        usage["output_tokens"],
        usage["total_tokens"],
        usage["cached_tokens"],
    )
    assert (answer.usage.reasoning or 0) == usage["reasoning_tokens"]


async def answer_for_bytes(stream, size):
    return accumulated(await events_for(Reply(stream, chunk=size)))
