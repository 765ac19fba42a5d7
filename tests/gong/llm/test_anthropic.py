import hashlib
import json
from contextlib import aclosing
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import Raw
from msgspec.structs import replace

from gong import errors
from gong.llm import Client, generate
from gong.llm.models import Timeouts, load_presets
from gong.llm.provider_factory import create_wire_provider
from gong.llm.types import (
    Request,
    Response,
    StreamFailure,
    TextDelta,
    ToolChoice,
    ToolSpec,
)
from gong.llm.wires.anthropic.request import AnthropicRequestEncoder, build_envelope
from tape.context.view import Message
from tape.formats.anthropic import rules
from tape.model.entries import BlobRef, Image, Opaque, Text, Thinking, ToolCall, Usage
from tests.tape.formats import histories
from tests.wires.anthropic import WHOLE, WHOLE_EVENTS, block, start, stop, text_block, tool_block
from tests.wires.server import Reply, WireServer, accumulated, joined, json_reply, sse

KEY = "sk-ant-test-0123456789"
HELLO = Request(model="claude-sonnet-5-5", messages=(Message("user", (Text("hello"),)),))
MARK = {"cache_control": {"type": "ephemeral"}}
READ = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{}}'))


PRESET = load_presets({})["anthropic"]


def provider_of(url, **limits):
    return create_wire_provider(replace(PRESET, timeouts=Timeouts(**limits)), KEY, url)


async def events_of(url, request=HELLO, **limits):
    provider = provider_of(url, **limits)
    try:
        async with aclosing(provider.stream(request)) as stream:
            return [event async for event in stream]
    finally:
        await provider.close()


async def accumulate(provider, request=HELLO, *, close=True):
    """Read one answer to its end."""
    async with aclosing(provider.stream(request)) as stream:
        answer = accumulated([event async for event in stream])
    if close:
        await provider.close()
    return answer


async def events_for(reply, request=HELLO, **limits):
    async with WireServer(reply) as server:
        return await events_of(server.url, request, **limits)


async def answer_for(*wire, **reply):
    return accumulated(await events_for(Reply(sse(*wire), **reply)))


async def error_for(reply, **limits):
    *_, last = await events_for(reply, **limits)
    assert isinstance(last, StreamFailure)
    return last.error


async def sent_for(request):
    async with WireServer(Reply(sse(start(), *stop("end_turn")))) as server:
        await events_of(server.url, request)
        return server.requests[0].body


async def test_the_answer_is_the_same_as_one_that_was_not_streamed():
    assert await answer_for(*WHOLE) == Response(
        content=(
            Thinking("Let me look.", wire=Raw(b'{"signature":"sig=="}')),
            Text("I read it —  \u2028🙂"),
            ToolCall(
                id="c_00000000_0",
                name="read",
                args=Raw(b'{"path": "a.txt"}'),
                wire=Raw(b'{"id":"toolu_1"}'),
            ),
        ),
        stop_reason="tool_calls",
        usage=Usage(10, 25, 4, 90, 5, 130),
        model="claude-x",
        raw_stop="tool_use",
        response_id="msg_1",
    )


async def test_thinking_tokens_are_counted_as_reasoning():
    details = {"thinking_tokens": 7}
    answer = await answer_for(
        start(), *stop("end_turn", output_tokens=9, output_tokens_details=details)
    )
    assert answer.usage == Usage(10, 9, 7, None, None, 19)


async def test_thinking_that_is_not_counted_is_estimated_but_never_above_the_output():
    """llm.md, 8.5: reasoning tokens from every provider."""
    thought = {"type": "thinking_delta", "thinking": "one two three four " * 10}
    thinks = block(0, {"type": "thinking", "thinking": ""}, thought)
    for output, least, most in ((500, 20, 80), (7, 7, 7)):
        answer = await answer_for(start(), *thinks, *stop("end_turn", output_tokens=output))
        assert least <= answer.usage.reasoning <= most
        assert answer.usage.output == output
    plain = await answer_for(start(), *text_block(0, "x"), *stop("end_turn"))
    assert plain.usage.reasoning is None


async def test_redacted_thinking_is_kept_opaque():
    answer = await answer_for(
        start(), *block(0, {"type": "redacted_thinking", "data": "xyz"}), *stop("end_turn")
    )
    assert answer.content == (Thinking("", redacted=True, wire=Raw(b'{"data":"xyz"}')),)


async def test_blocks_of_the_providers_own_tools_are_no_calls_of_ours():
    answer = await answer_for(
        start(),
        *block(
            0,
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"query":'},
            {"type": "input_json_delta", "partial_json": '"x"}'},
        ),
        *block(1, {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}),
        *block(2, {"type": "made_later", "text": "?"}, {"type": "later_delta", "more": [1]}),
        *stop("pause_turn"),
    )
    assert answer.content == (
        Opaque(
            raw=Raw(
                b'{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}}'
            )
        ),
        Opaque(raw=Raw(b'{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}')),
        Opaque(raw=Raw(b'{"type":"made_later","text":"?","more":[1]}')),
    )
    assert (answer.tool_calls, answer.stop_reason, answer.raw_stop) == ((), "stop", "pause_turn")


async def test_a_pause_continues_where_scripts_ask():
    pause = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    replies = (
        Reply(sse(start(), *block(0, pause), *stop("pause_turn"))),
        Reply(sse(start(), *text_block(0, "Found."), *stop("end_turn"))),
    )
    async with WireServer(*replies) as server:
        client = Client({"anthropic": provider_of(server.url)})
        done = await generate("anthropic/m", prompt="look", max_tool_rounds=0, client=client)
        await client.close()
        sent = server.requests[1].body["messages"]
    assert (done.text, len(done.steps)) == ("Found.", 2)
    assert sent[-1] == {"role": "assistant", "content": [pause]}


async def test_nulls_do_nothing():
    answer = await answer_for(
        start(model=None, id=None, usage=None, content=None, stop_reason=None),
        {"type": "content_block_start", "index": None, "content_block": TEXT_OF_NULLS},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 0},
        *block(1, {"type": "tool_use", "name": "ls", "id": None, "input": None, "caller": None}),
        {"type": "message_delta", "delta": None, "usage": None},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"x": None}},
        {"type": "message_stop"},
    )
    assert (answer.content[0], answer.model) == (Text("x"), "")
    assert [(call.name, call.args) for call in answer.tool_calls] == [("ls", Raw(b"{}"))]


async def test_a_block_that_looks_like_ours_goes_back_as_it_came():
    strange = {"type": "made_later", "$blob": "x"}
    answer = await answer_for(start(), *block(0, strange), *text_block(1, "."), *stop("end_turn"))
    history = (*HELLO.messages, Message("assistant", answer.content))
    assert body_of(replace(HELLO, messages=history))["messages"][1]["content"][0] == strange


async def test_citations_go_along_with_their_text():
    answer = await answer_for(
        start(),
        *block(
            0,
            {"type": "text", "text": "", "citations": None},
            {"type": "citations_delta", "citation": {"cited_text": "a"}},
            {"type": "text_delta", "text": "A."},
        ),
        *stop("end_turn"),
    )
    assert answer.content == (Text("A.", wire=Raw(b'{"citations":[{"cited_text":"a"}]}')),)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-4-5", 64_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-3-haiku-20240307", 4_096),
        ("never-heard-of", 16_000),
    ],
)
def test_an_answer_may_be_as_long_as_the_model_can(model, tokens):
    """The API must be told a limit: it is the model's own."""
    assert build_envelope(replace(HELLO, model=model), PRESET)["max_tokens"] == tokens


@pytest.mark.parametrize(
    ("raw", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("a_reason_made_later", "stop"),
    ],
)
async def test_stop_reasons_are_ours_and_keep_the_original(raw, ours):
    answer = await answer_for(start(), *stop(raw))
    assert (answer.stop_reason, answer.raw_stop) == (ours, raw)


async def test_the_explanation_of_a_refusal_is_kept():
    details = {"type": "refusal", "category": "cyber", "explanation": "This looks like an attack."}
    refused = stop("refusal")
    refused[0]["delta"]["stop_details"] = details
    *_, last = await events_for(Reply(sse(start(), *refused)))
    assert (last.stop_reason, last.raw_stop) == ("content_filter", "refusal")
    assert last.why == "cyber: This looks like an attack."


async def test_the_borders_of_a_block_may_be_missing_or_repeated():
    began, *pieces, ended = text_block(0, "Hel", "lo")
    for events in ([began, *pieces, ended, ended], [*pieces, ended], [*pieces]):
        answer = await answer_for(start(), *events, *stop("end_turn"))
        assert answer.content == (Text("Hello"),)


async def test_a_repeated_message_start_counts_once():
    answer = await answer_for(start(), start(id="msg_2"), *text_block(0, "x"), *stop("end_turn"))
    assert (answer.text, answer.response_id) == ("x", "msg_1")


async def test_an_answer_may_come_whole_in_its_message_start():
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
    answer = await answer_for(
        start(content=[call], stop_reason="tool_use"), {"type": "message_stop"}
    )
    assert [(call.name, call.args) for call in answer.tool_calls] == [
        ("read", Raw(b'{"path":"a"}'))
    ]
    assert answer.stop_reason == "tool_calls"


async def test_arguments_cut_off_by_the_token_limit_are_kept_as_text():
    answer = await answer_for(
        start(), *tool_block(0, "toolu_1", "write", '{"path": "a'), *stop("max_tokens")
    )
    assert answer.tool_calls[0].args_text == '{"path": "a'
    assert answer.stop_reason == "length"


async def test_a_tool_round_trip_sends_the_result_under_our_id():
    """M145 M146: the system prompt in its own field, thinking with its signature."""
    async with WireServer(
        Reply(sse(*WHOLE)), Reply(sse(start(), *text_block(0, "Done."), *stop("end_turn")))
    ) as server:
        first = accumulated(await events_of(server.url))
        result = Message("tool", (Text("12 lines"),), "c_00000000_0", "read")
        history = (*HELLO.messages, Message("assistant", first.content), result)
        request = Request(model=HELLO.model, messages=history, system="Be brief.", tools=(READ,))
        second = accumulated(await events_of(server.url, request))
        assert second.text == "Done."
        assert server.requests[1].body == {
            "model": "claude-sonnet-5-5",
            "max_tokens": 128_000,
            "stream": True,
            "system": [{"type": "text", "text": "Be brief.", **MARK}],
            "tools": [
                {
                    "name": "read",
                    "description": "Read a file.",
                    "input_schema": {"type": "object", "properties": {}},
                    "eager_input_streaming": True,
                    **MARK,
                }
            ],
            "tool_choice": {"type": "auto"},
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello", **MARK}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Let me look.", "signature": "sig=="},
                        {"type": "text", "text": "I read it —  \u2028🙂"},
                        {
                            "type": "tool_use",
                            "id": "c_00000000_0",
                            "name": "read",
                            "input": {"path": "a.txt"},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "c_00000000_0",
                            "content": [{"type": "text", "text": "12 lines"}],
                            **MARK,
                        }
                    ],
                },
            ],
        }


async def test_the_body_satisfies_the_sdks_own_types():
    anthropic_types = import_module("anthropic.types")
    pydantic = import_module("pydantic")
    sent = await sent_for(HELLO)
    adapter = pydantic.TypeAdapter(list[anthropic_types.MessageParam])
    assert [dict(message) for message in adapter.validate_python(sent["messages"])]


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ("x-api-key", {"x-api-key": KEY}),
        ("bearer", {"authorization": f"Bearer {KEY}"}),
    ],
)
async def test_the_key_goes_where_the_preset_says_and_nothing_else_comes_along(
    auth, expected, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: of-the-environment")
    preset = replace(PRESET, auth=auth, headers={"X-Mine": "1"})
    async with WireServer(Reply(sse(start(), *stop("end_turn")))) as server:
        provider = create_wire_provider(preset, KEY, server.url)
        await accumulate(provider)
    (seen,) = server.requests
    names = ("x-api-key", "authorization")
    assert {name: seen.headers[name] for name in names if name in seen.headers} == expected
    assert (seen.path, seen.headers["x-mine"]) == ("/v1/messages", "1")
    assert seen.headers["anthropic-version"]
    assert "of-the-environment" not in str(seen.headers)


ADAPTIVE = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("claude-sonnet-5-5", None, {}),
        (
            "claude-sonnet-5-5",
            "high",
            {"thinking": ADAPTIVE, "output_config": {"effort": "high"}},
        ),
        (
            "claude-opus-5-5",
            "xhigh",
            {"thinking": ADAPTIVE, "output_config": {"effort": "xhigh"}},
        ),
        (
            "claude-opus-4-6",
            "xhigh",
            {"thinking": ADAPTIVE, "output_config": {"effort": "high"}},
        ),
        (
            "claude-sonnet-4-5-20250929",
            "medium",
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        ),
        (
            "claude-opus-4-20250514",
            "xhigh",
            {"thinking": {"type": "enabled", "budget_tokens": 16_384}},
        ),
        ("claude-3-5-haiku-20241022", "high", {}),
        ("glm-5.2", "high", {"thinking": {"type": "enabled", "budget_tokens": 8192}}),
    ],
)
def test_effort_is_sent_in_the_form_the_model_understands(model, effort, expected):
    wire = build_envelope(replace(HELLO, model=model, reasoning_effort=effort), PRESET)
    assert {name: wire[name] for name in ("thinking", "output_config") if name in wire} == expected


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        (ToolChoice(), {"type": "auto"}),
        (ToolChoice("none"), {"type": "none"}),
        (ToolChoice("required"), {"type": "any"}),
        (ToolChoice("named", "read"), {"type": "tool", "name": "read"}),
    ],
)
async def test_a_forced_call_excludes_thinking(choice, wire):
    request = Request(
        model=HELLO.model,
        messages=HELLO.messages,
        tools=(READ,),
        tool_choice=choice,
        reasoning_effort="low",
    )
    sent = await sent_for(request)
    assert sent["tool_choice"] == wire
    assert ("thinking" in sent) == (choice.mode in {"auto", "none"})


async def test_sampling_and_options_reach_the_body():
    request = Request(
        model=HELLO.model,
        messages=HELLO.messages,
        max_tokens=9,
        temperature=0.5,
        stop_sequences=("END",),
        options=Raw(b'{"service_tier":"auto","max_tokens":7}'),
    )
    sent = await sent_for(request)
    assert {name: sent[name] for name in sent if name not in {"messages", "model"}} == {
        "max_tokens": 7,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "service_tier": "auto",
        "stream": True,
    }


async def test_betas_of_preset_call_and_thinking_go_in_one_header():
    preset = replace(PRESET, headers={"Anthropic-Beta": "one"})
    asked = replace(
        HELLO,
        model="claude-sonnet-4-5",
        tools=(READ,),
        reasoning_effort="high",
        options=Raw(b'{"betas":["two","one"]}'),
    )
    async with WireServer(Reply(sse(start(), *stop("end_turn")))) as server:
        await accumulate(create_wire_provider(preset, KEY, server.url), asked)
    (seen,) = server.requests
    assert seen.headers["anthropic-beta"] == "one,two,interleaved-thinking-2025-05-14"
    assert "betas" not in seen.body


def test_the_newest_models_are_sent_no_temperature():
    asked = replace(HELLO, temperature=0.5)
    models = ("claude-opus-5-5", "claude-opus-4-7", "claude-opus-4-6", "claude-sonnet-5-5")
    sent = [replace(asked, model=model) for model in models]
    assert ["temperature" in build_envelope(request, PRESET) for request in sent] == [
        *(False, False),
        *(True, True),
    ]


TEXT_OF_NULLS = {"type": "text", "text": None, "citations": None}


def body_of(request, writer=None):
    return json.loads((writer or AnthropicRequestEncoder(PRESET)).encode_request(request).body)


def marks(value):
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(marks, value.values()))
    return sum(map(marks, value)) if isinstance(value, list) else 0


LONG = tuple(
    message
    for turn in range(9)
    for message in (
        Message("user", (Text(f"question {turn}"),)),
        Message("assistant", (Text(f"answer {turn}"),)),
    )
)


def test_no_call_has_more_than_four_cache_marks_and_none_when_they_are_off():
    """The last tool, the system prompt and the last blocks of the two newest user messages."""
    marked = Raw(b'{"$api":"anthropic-messages","cache_control":{"type":"ephemeral"}}')
    imported = Message("user", (Text("imported", wire=marked),))
    request = replace(
        HELLO, messages=(imported, *LONG, *HELLO.messages), system="Be brief.", tools=(READ, READ)
    )
    body = body_of(request)
    assert marks(body) == 4
    asked = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
    assert [marks(content) for content in asked] == [*([0] * (len(asked) - 2)), 1, 1]
    assert [marks(tool) for tool in body["tools"]] == [0, 1]
    off = body_of(replace(request, options=Raw(b'{"auto_cache":false}')))
    assert marks(off) == 0
    assert "auto_cache" not in off


def test_a_growing_history_is_written_as_if_it_were_new():
    writer = AnthropicRequestEncoder(PRESET)
    for length in range(1, len(LONG) + 1, 2):
        request = replace(HELLO, messages=LONG[:length])
        assert body_of(request, writer) == body_of(request)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(histories.histories("anthropic"))
def test_histories_of_any_provider_make_a_body_the_rules_allow(payloads):
    messages = histories.repaired(payloads, histories.TARGETS["anthropic"])
    request = replace(HELLO, messages=messages, system="Be brief.", tools=(READ,))
    body = body_of(request)
    assert rules.check_array(body["messages"], strict=True) == []
    assert marks(body) <= 4


def test_a_picture_goes_as_base64_where_its_bytes_can_be_had():
    picture = Image(blob=BlobRef("0" * 64, 4), mime="image/png")
    messages = (Message("user", (Text("what is it?"), picture)),)
    asked = Request(model="m", messages=messages, load=lambda _: b"\x89PNG")
    *_, block = body_of(asked)["messages"][0]["content"]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert block == {"type": "image", "source": source, **MARK}
    *_, told = body_of(replace(HELLO, messages=messages))["messages"][0]["content"]
    assert told["type"] == "text"


def api_error(status, kind, message, **headers):
    return json_reply(
        status, {"type": "error", "error": {"type": kind, "message": message}}, **headers
    )


@pytest.mark.parametrize(
    ("status", "kind", "message", "expected"),
    [
        (400, "invalid_request_error", "messages: empty", errors.InvalidRequest),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", errors.ContextLengthExceeded),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            errors.QuotaExceeded,
        ),
        (401, "authentication_error", "invalid x-api-key", errors.AuthenticationError),
        (402, "billing_error", "pay first", errors.QuotaExceeded),
        (403, "permission_error", "not yours", errors.AccessDenied),
        (404, "not_found_error", "model: claude-9", errors.ModelNotFound),
        (413, "request_too_large", "too big", errors.ContextLengthExceeded),
        (429, "rate_limit_error", "too many tokens per minute", errors.RateLimited),
        (500, "api_error", "oops", errors.ServerError),
        (503, "api_error", "down", errors.ServerError),
        (529, "overloaded_error", "Overloaded", errors.ServerError),
    ],
)
async def test_http_errors_become_ours(status, kind, message, expected):
    error = await error_for(api_error(status, kind, message))
    assert (type(error), str(error), error.status, error.provider) == (
        expected,
        f"anthropic API error ({status}): {message}{error.advice}",
        status,
        "anthropic",
    )


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("overloaded_error", "Come back", errors.ServerError),
        ("rate_limit_error", "Come back", errors.RateLimited),
        ("invented_error", "Overloaded", errors.ServerError),
        ("invented_error", "Come back", errors.StreamError),
    ],
)
async def test_an_error_event_ends_the_stream_with_what_came_before(kind, message, expected):
    event = {"type": "error", "error": {"type": kind, "message": message}}
    events = await events_for(Reply(sse(start(), *text_block(0, "Hel"), event)))
    assert TextDelta(0, "Hel") in events
    assert type(events[-1].error) is expected
    assert message in str(events[-1].error)
    assert events[-1].usage == Usage(10, 1, total=11)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(sse(start(), *text_block(0, "x")[1:])),
        Reply(sse(start(), *block(0, {"type": "text"}, {"type": "text_delta", "text": 5}))),
    ],
    ids=["no start", "wrong type"],
)
async def test_a_broken_stream_fails_and_the_next_call_works(reply):
    async with WireServer(reply, Reply(sse(*WHOLE))) as server:
        provider = provider_of(server.url)
        first = [event async for event in provider.stream(HELLO)]
        second = [event async for event in provider.stream(HELLO)]
        await provider.close()
    assert type(first[-1].error) is errors.StreamError
    assert joined(second) == joined(WHOLE_EVENTS)


@pytest.mark.parametrize("cut", [True, False])
async def test_an_answer_whose_last_event_is_lost_is_whole(cut):
    events = await events_for(Reply(sse(*WHOLE[:-1]), cut=cut))
    assert joined(events) == joined(WHOLE_EVENTS)


BYTEWISE = pytest.param(1, False, marks=pytest.mark.slow)
CORPUS = Path(__file__).parents[3].parent / "shared/corpus/sse/anthropic"


def kinds_of(response):
    names = {Text: "text", Thinking: "thinking", ToolCall: "tool_use"}
    return [
        json.loads(bytes(block.raw))["type"] if isinstance(block, Opaque) else names[type(block)]
        for block in response.content
    ]


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("chunk", "crlf"), [(None, False), BYTEWISE, (7, True), (64, False)], ids=str
)
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.sse")), ids=lambda path: path.stem)
async def test_recorded_streams_give_the_recorded_answer(path, chunk, crlf):
    expected = json.loads(path.with_suffix("").with_suffix(".expected.json").read_text())[
        "expected"
    ]
    recorded = path.read_bytes()
    stream = recorded.replace(b"\n", b"\r\n") if crlf else recorded
    answer = accumulated(await events_for(Reply(stream, chunk=chunk)))
    thoughts = [block for block in answer.content if isinstance(block, Thinking)]
    usage = expected["usage"]
    assert answer.text == expected["text"]
    assert "".join(thought.text for thought in thoughts) == expected["thinking"]
    assert [(call.name, json.loads(bytes(call.args))) for call in answer.tool_calls] == [
        (call["name"], call["arguments"]) for call in expected["tool_calls"]
    ]
    assert [json.loads(bytes(call.wire))["id"] for call in answer.tool_calls] == [
        call["id"] for call in expected["tool_calls"]
    ]
    assert kinds_of(answer) == expected["block_types"]
    assert (answer.raw_stop, answer.model, answer.response_id) == (
        expected["stop_reason"],
        expected["model"],
        expected["id"],
    )
    assert (
        answer.usage.input,
        answer.usage.output,
        answer.usage.cache_read,
        answer.usage.cache_write,
    ) == (
        usage["input_tokens"],
        usage["output_tokens"],
        usage["cache_read_input_tokens"],
        usage["cache_creation_input_tokens"],
    )
    signatures = [json.loads(bytes(thought.wire))["signature"] for thought in thoughts]
    assert [hashlib.sha256(text.encode()).hexdigest() for text in signatures] == [
        signature["sha256"] for signature in expected.get("signatures", [])
    ]


async def test_what_is_cached_for_an_hour_is_counted_apart():
    usage = {
        "input_tokens": 1000,
        "output_tokens": 1,
        "cache_read_input_tokens": 10_000,
        "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000},
    }
    answer = await answer_for(start(usage=usage), *text_block(0, "Hi"), *stop("end_turn"))
    assert (answer.usage.cache_write, answer.usage.cache_write_hour) == (3000, 2000)
