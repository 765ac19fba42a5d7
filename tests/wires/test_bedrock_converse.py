"""Converse, with botocore as judge: of each call, and of what comes in frames."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode

import botocore.session
import pytest
from botocore.config import Config
from botocore.eventstream import EventStreamBuffer
from msgspec import Raw
from msgspec.structs import replace

from gong import errors
from gong.llm import Client, Pictures
from gong.llm.models import load_presets
from gong.llm.types import Request, ToolChoice, ToolSpec
from tape.context.view import Message
from tape.model.entries import Text, Thinking
from tests.wires.server import Reply, WireServer, accumulated, events_of, json_reply
from tests.wires.test_clouds import CALL, FIELDS, HISTORIES, TOOL
from tests.wires.test_event_frames import write_exception, write_frame

NOVA = "us.amazon.nova-2-lite-v1:0"
ENVIRON = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "sec"}
CONTENT_TYPE = "application/vnd.amazon.eventstream"


def frame(name, **fields):
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return write_frame(headers, json.dumps({**fields, "p": "abcdef"}).encode())


def delta(index, **fields):
    return frame("contentBlockDelta", contentBlockIndex=index, delta=fields)


def end(reason="end_turn", **usage):
    counts = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, **usage}
    metrics = {"latencyMs": 1}
    return frame("messageStop", stopReason=reason) + frame(
        "metadata", usage=counts, metrics=metrics
    )


START = frame("messageStart", role="assistant")
HELLO_FRAMES = START + delta(0, text="Hel") + delta(0, text="lo 🙂")
WHOLE = [
    START,
    delta(0, reasoningContent={"text": "Let me "}),
    delta(0, reasoningContent={"text": "see."}),
    delta(0, reasoningContent={"signature": "c2ln"}),
    frame("contentBlockStop", contentBlockIndex=0),
    delta(1, reasoningContent={"redactedContent": "b3BhcXVl"}),
    frame("contentBlockStop", contentBlockIndex=1),
    delta(2, text="Reading."),
    frame("contentBlockStop", contentBlockIndex=2),
    frame(
        "contentBlockStart",
        contentBlockIndex=3,
        start={"toolUse": {"toolUseId": "tooluse_1", "name": "read"}},
    ),
    delta(3, toolUse={"input": '{"path": '}),
    delta(3, toolUse={"input": '"a.txt"}'}),
    frame("contentBlockStop", contentBlockIndex=3),
    frame("madeLater", x=1),
    end("tool_use", cacheReadInputTokens=5, cacheWriteInputTokens=6),
]
IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(24)


async def ask(request, *replies):
    """Return the events of one call, and what was sent."""
    async with WireServer(*replies) as server:
        presets = load_presets({"bedrock-converse": {"base_url": server.url}})
        client = Client.from_env(ENVIRON, presets=presets)
        provider, _ = client.resolve(f"bedrock-converse/{request.model}")
        return await events_of(provider, request), server.requests


def frames(*parts, **reply):
    return Reply(b"".join(parts), content_type=CONTENT_TYPE, **reply)


def hello(**fields):
    return Request(model=NOVA, messages=HISTORIES[0], **fields)


@pytest.mark.parametrize("chunk", [None, 1, 50])
async def test_all_kinds_of_blocks_come_whole(chunk):
    events, _ = await ask(hello(), frames(*WHOLE, chunk=chunk))
    answer = accumulated(events)
    thought, hidden, text, call = answer.content
    assert (thought.text, json.loads(bytes(thought.wire))) == ("Let me see.", {"signature": "c2ln"})
    assert (hidden.redacted, json.loads(bytes(hidden.wire))) == (True, {"data": "b3BhcXVl"})
    assert (text.text, call.name, json.loads(bytes(call.args))) == (
        *("Reading.", "read"),
        {"path": "a.txt"},
    )
    assert (answer.stop_reason, answer.usage.input, answer.usage.output) == ("tool_calls", 3, 4)
    assert (answer.usage.cache_read, answer.usage.cache_write) == (5, 6)


def test_the_stream_of_these_tests_is_one_to_botocore():
    buffer = EventStreamBuffer()
    buffer.add_data(b"".join(WHOLE))
    assert len([*buffer]) == len(WHOLE) + 1  # the end is two


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("stop_sequence", "stop"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("made_later", "stop"),
    ],
)
async def test_each_reason_to_stop_has_one_of_ours(reason, stop):
    events, _ = await ask(hello(), frames(HELLO_FRAMES, end(reason)))
    assert (accumulated(events).text, events[-1].stop_reason) == ("Hello 🙂", stop)


async def test_the_counts_may_come_before_the_reason_and_a_start_may_be_missing():
    call = {"toolUse": {"toolUseId": "t", "name": "read"}}
    parts = [
        frame("contentBlockStart", contentBlockIndex=0, start={}),
        delta(0, text="Reading."),
        frame("contentBlockStop", contentBlockIndex=0),
        frame("contentBlockStart", contentBlockIndex=1, start=call),
        delta(1, toolUse={"input": ""}),
        frame("contentBlockStop", contentBlockIndex=1),
        frame("metadata", usage={"inputTokens": 100, "outputTokens": 25, "totalTokens": 125}),
        frame("messageStop", stopReason="tool_use"),
    ]
    events, _ = await ask(hello(), frames(*parts))
    answer = accumulated(events)
    assert (answer.text, answer.stop_reason, answer.usage.total) == ("Reading.", "tool_calls", 125)
    assert json.loads(bytes(answer.tool_calls[0].args)) == {}


async def test_citations_are_kept_with_their_text():
    cited = {"title": "document", "sourceContent": [{"text": "It is so."}]}
    parts = [START, delta(0, citation=cited), delta(0, text="So it is."), end()]
    events, _ = await ask(hello(), frames(*parts))
    (block,) = accumulated(events).content
    assert (block.text, json.loads(bytes(block.wire))) == ("So it is.", {"citations": [cited]})


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([HELLO_FRAMES, write_exception("throttlingException", "slow down")], errors.RateLimited),
        ([HELLO_FRAMES, write_exception("modelStreamErrorException", "x")], errors.ServerError),
        ([HELLO_FRAMES], errors.StreamError),
        ([START, delta(0, text=7)], errors.StreamError),
        ([START, delta(0, toolUse={"input": ["x"]})], errors.StreamError),
        ([frame("contentBlockStart", start={"toolUse": {"name": 1}})], errors.StreamError),
    ],
)
async def test_a_stream_that_breaks_or_makes_no_sense_is_an_error(parts, kind):
    events, _ = await ask(hello(), frames(*parts))
    assert type(events[-1].error) is kind


async def test_an_answer_that_is_not_streamed_is_read_too():
    whole = {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "cw=="}}},
                    {"text": "Hello"},
                    {"toolUse": {"toolUseId": "t", "name": "read", "input": {"path": "a"}}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
    }
    events, _ = await ask(hello(), json_reply(200, whole))
    answer = accumulated(events)
    thought, text, call = answer.content
    assert (thought.text, text.text, json.loads(bytes(call.args))) == ("hm", "Hello", {"path": "a"})
    assert (answer.stop_reason, answer.usage.total) == ("tool_calls", 3)


REASONED = (
    Message("user", (Text("read it"),)),
    Message("assistant", (Thinking("hm", wire=Raw(b'{"signature":"c2ln"}')), Text("Yes."), CALL)),
    Message("tool", (), CALL.id, "read", is_error=True),
    Message("user", (Text("go on"),)),
)


def list_requests():
    """Return forty requests, and some with thinking, pictures and calls without tools."""
    options = {"options": Raw(b'{"requestMetadata":{"team":"a"}}')}
    fields = [options if "options" in one else one for one in FIELDS]
    plain = [
        Request(model=NOVA, messages=messages, **one) for messages in HISTORIES for one in fields
    ]
    pictures = Pictures()
    seen = (Message("user", (Text("look"), pictures.image(IMAGE))),)
    return [
        *plain,
        Request(model=NOVA, messages=REASONED, tools=(TOOL,), tool_choice=ToolChoice("required")),
        Request(model="arn:aws:bedrock:eu-west-1::x/y", messages=REASONED),
        Request(model=NOVA, messages=seen, load=pictures.load),
        Request(model="anthropic.claude-3-haiku", messages=REASONED, reasoning_effort="low"),
        Request(model="openai.gpt-oss-120b", messages=HISTORIES[0], reasoning_effort="xhigh"),
    ]


def unpack_bytes(value, name=""):
    """Return JSON with what botocore takes as bytes."""
    if isinstance(value, dict):
        return {key: unpack_bytes(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [unpack_bytes(inner) for inner in value]
    return b64decode(value) if name in {"bytes", "redactedContent"} else value


def call_botocore(url, asked):
    """Make the same calls with botocore, which checks each of their fields."""
    session = botocore.session.Session()
    client = session.create_client(
        "bedrock-runtime",
        region_name="eu-west-1",
        endpoint_url=url,
        aws_access_key_id="AK",
        aws_secret_access_key="sec",
        config=Config(retries={"total_max_attempts": 1}),
    )
    for model, body in asked:
        answer = client.converse_stream(modelId=model, **unpack_bytes(body))
        events = [*answer["stream"]]
        assert events[1]["contentBlockDelta"]["delta"] == {"text": "Hel"}
    client.close()


async def test_each_call_is_the_one_that_botocore_makes():
    """M138: address and body; botocore knows every field that there is."""
    requests = list_requests()
    reply = frames(HELLO_FRAMES, end())
    ours = [(await ask(request, reply))[1][0] for request in requests]
    async with WireServer(reply) as server:
        asked = [(one.model, sent.body) for one, sent in zip(requests, ours, strict=True)]
        await asyncio.to_thread(call_botocore, server.url, asked)
        theirs = server.requests
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.path, mine.body) == (other.path, other.body)
        assert mine.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AK/")
    assert len(requests) == 45


async def test_calls_of_the_history_have_tools_though_none_are_offered():
    request = Request(model=NOVA, messages=REASONED)
    _, (seen,) = await ask(request, frames(HELLO_FRAMES, end()))
    (tool,) = seen.body["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "read"
    assert seen.body["messages"][2]["content"][0]["toolResult"] == {
        "toolUseId": CALL.id,
        "content": [{"text": "(no output)"}],
        "status": "error",
    }


async def test_a_picture_is_sent_as_its_bytes():
    pictures = Pictures()
    seen = (Message("user", (Text("look"), pictures.image(IMAGE))),)
    request = Request(model=NOVA, messages=seen, load=pictures.load)
    _, (sent,) = await ask(request, frames(HELLO_FRAMES, end()))
    (_, picture) = sent.body["messages"][0]["content"]
    data = b64encode(IMAGE).decode()
    assert picture == {"image": {"format": "png", "source": {"bytes": data}}}


async def test_a_field_that_is_left_out_is_named():
    request = replace(hello(), model="meta.llama3", reasoning_effort="high", metadata={"a": "b"})
    events, _ = await ask(request, frames(HELLO_FRAMES, end()))
    assert [warning.split(":")[0] for warning in events[-1].warnings] == [
        "bedrock-converse was not sent metadata",
        "bedrock-converse was not sent reasoning_effort",
    ]


async def test_a_request_without_any_call_is_refused():
    request = hello(
        tools=(ToolSpec("read", "Read.", Raw(b'{"type":"object"}')),),
        tool_choice=ToolChoice("none"),
    )
    presets = load_presets({"bedrock-converse": {"base_url": "http://127.0.0.1:1"}})
    client = Client.from_env(ENVIRON, presets=presets)
    provider, _ = client.resolve(f"bedrock-converse/{NOVA}")
    with pytest.raises(errors.UnsupportedToolChoice):
        client.stream(request, provider)
