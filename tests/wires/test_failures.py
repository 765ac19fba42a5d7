"""What goes wrong on a wire, and what must not matter there: cases × every adapter.

Errors, timeouts and cut connections have to look alike whoever is asked.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong import errors
from gong.llm.models import Timeouts
from gong.llm.types import Finish, StreamStart, TextDelta
from tests.wires.server import Reply, WireServer, accumulated, events_of, joined, json_reply
from tests.wires.table import (
    HELLO,
    KEY,
    PIECES,
    WIRES,
    answer_for,
    broken,
    error_for,
    events_for,
    every_wire,
    provider,
    with_fields,
)


@every_wire
@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("size", [None, 1, 7, 64])
async def test_events_come_in_order_however_the_bytes_are_cut(wire, size, crlf):
    """M037 M147: start with id and model, blocks that begin, grow and end, a stop reason, usage."""
    (events,) = await events_for(wire, Reply(wire.write(*wire.whole, crlf=crlf), chunk=size))
    assert joined(events) == joined(wire.whole_events)


@every_wire
async def test_half_a_surrogate_pair_becomes_a_replacement_character(wire):
    answer = await answer_for(wire, wire.said("xyz").replace(b"xyz", b"x\\ud83d"))
    assert answer.text == "x\ufffd"


@every_wire
async def test_options_that_are_no_object_fail_the_call(wire):
    async with WireServer(Reply()) as server:
        events = await events_of(provider(wire, server), replace(HELLO, options=Raw(b"[1]")))
        assert server.requests == []
    (failed,) = events
    assert type(failed.error) is errors.InvalidRequest


@every_wire
@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("size", [None, 1, 3, 64])
async def test_the_answer_is_the_same_however_its_bytes_are_cut(wire, size, crlf):
    (events,) = await events_for(wire, Reply(wire.said(*PIECES, crlf=crlf), chunk=size))
    answer = accumulated(events)
    texts = [event for event in joined(events) if isinstance(event, TextDelta)]
    assert texts == [TextDelta(0, "".join(PIECES))]
    assert (answer.text, answer.stop_reason) == ("".join(PIECES), "stop")


@every_wire
async def test_comments_and_unknown_fields_do_nothing(wire):
    told = [*wire.begin, *wire.say("x"), *wire.end]
    strange = (with_fields(event, invented={"a": [None]}, obfuscation="zz") for event in told)
    body = b": a comment\n\n" + wire.write(*strange).replace(b"\n\n", b"\nid: 7\nretry: 1\n\n")
    assert (await answer_for(wire, body)).content[0].text == "x"


@every_wire
async def test_unknown_blocks_are_harmless(wire):
    body = wire.write(*wire.begin, *wire.strange, *wire.say("x"), *wire.end)
    answer = await answer_for(wire, body)
    assert (answer.text, answer.tool_calls, answer.stop_reason) == ("x", (), "stop")


@pytest.mark.parametrize("wire", WIRES[:3], ids=lambda wire: wire.preset)  # Gemini's is a fault
async def test_an_empty_answer_is_an_answer(wire):
    (events,) = await events_for(wire, Reply(wire.write(*wire.begin, *wire.end)))
    assert accumulated(events).content == ()
    assert isinstance(events[-1], Finish)


@every_wire
async def test_no_answer_at_all_is_none(wire):
    assert type(await error_for(wire, Reply(b""))) is errors.StreamError


@every_wire
@pytest.mark.parametrize("case", broken(WIRES[0]))
async def test_a_broken_answer_fails_and_the_next_call_works(wire, case):
    """M149 J9-5.2: a clean error, no hang, and the words that came before it."""
    first, second = await events_for(wire, broken(wire)[case], Reply(wire.write(*wire.whole)))
    assert type(first[-1].error) is errors.StreamError
    assert [event.delta for event in first if isinstance(event, TextDelta)] == ["Hel"]
    assert joined(second) == joined(wire.whole_events)


@every_wire
@pytest.mark.parametrize("body", [b'{"some": "json"}', b"<html>hello</html>"])
async def test_an_answer_that_is_no_stream_fails(wire, body):
    reply = Reply(body, content_type="application/json")
    assert type(await error_for(wire, reply)) is errors.StreamError


WHOLE_BODIES = {
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "model": "claude-x",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Hello."}],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    },
    "openai": {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
            }
        ],
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    },
    "openai-chat": {
        "id": "c_1",
        "object": "chat.completion",
        "model": "gpt-x",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Hello."},
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    },
    "google": [
        {
            "candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": 10,
                "candidatesTokenCount": 5,
                "totalTokenCount": 15,
            },
        }
    ],
    "bedrock-converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
    },
}
"""An answer of each API that was not streamed."""


@every_wire
@pytest.mark.parametrize("indent", [None, 2])
async def test_an_answer_that_is_not_streamed_is_read_whole(wire, indent):
    """Some hosts ignore that a stream was asked for."""
    body = json.dumps(WHOLE_BODIES[wire.preset], indent=indent).encode()
    (events,) = await events_for(wire, Reply(body, content_type="application/json"))
    answer = accumulated(events)
    assert (answer.text, answer.stop_reason) == ("Hello.", "stop")
    assert (answer.usage.input, answer.usage.output, answer.usage.total) == (10, 5, 15)


@every_wire
@pytest.mark.parametrize("indent", [None, 2])
async def test_an_error_in_the_place_of_an_answer_is_reported(wire, indent):
    """Some hosts answer 200 and say in plain JSON what is wrong."""
    body = json.dumps(wire.refuse(f"The model is overloaded, {KEY}"), indent=indent).encode()
    error = await error_for(wire, Reply(body, content_type="application/json"))
    assert (type(error), str(error)) == (
        errors.ServerError,
        f"{wire.preset} API error: The model is overloaded, …{error.advice}",
    )
    (events,) = await events_for(
        wire, Reply(b"data: " + json.dumps(json.loads(body)).encode() + b"\n\n")
    )
    assert str(events[-1].error) == str(error)


@every_wire
async def test_a_comment_is_a_sign_of_life(wire):
    """Routers send comments while a model thinks: no event, but no silence either."""
    body = b": still there\n\n" * 120 + wire.said("x")
    slow = Reply(body, chunk=15, pause=0.01)
    (events,) = await events_for(wire, slow, first_byte=1, idle=1)
    assert accumulated(events).text == "x"


@every_wire
async def test_a_silent_stream_times_out(wire):
    """M149 J9-5.4: after 30 s where nothing else is set."""
    assert Timeouts().idle == 30
    started = wire.write(*wire.begin, *wire.say("Hel")[:2])
    error = await error_for(wire, Reply(started, stall=True), idle=0.2)
    assert (type(error), str(error)) == (
        errors.RequestTimeout,
        f"{wire.preset} did not continue its answer within 0.2 s",
    )


@every_wire
async def test_an_answer_that_never_begins_times_out(wire):
    error = await error_for(wire, Reply(mute=True), first_byte=0.2)
    assert (type(error), str(error)) == (
        errors.RequestTimeout,
        f"{wire.preset} did not begin its answer within 0.2 s",
    )


@every_wire
async def test_a_refusal_that_never_ends_times_out_and_its_connection_is_closed(wire):
    async with WireServer(Reply(b'{"error"', 400, stall=True)) as server:
        asked = provider(wire, server, first_byte=0.2)
        async with aclosing(asked.stream(HELLO)) as stream:
            (failed,) = [event async for event in stream]
        await asyncio.wait_for(server.hung_up.wait(), 120)
        await asked.close()
    assert type(failed.error) is errors.RequestTimeout


ADVICE = {
    429: "; wait 7 s, then try again",
    500: "; try again, or switch to another provider or model (-m, /model)",
    503: "; it is down or overloaded: try again in 7 s",
    529: "; it is down or overloaded: try again in 7 s",
}


@every_wire
@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (400, "messages: empty", errors.InvalidRequest),
        (400, "maximum context length is 9 tokens", errors.ContextLengthExceeded),
        (400, "tool_use ids were found without tool_result blocks", errors.MalformedHistory),
        (401, "invalid key", errors.AuthenticationError),
        (402, "pay first", errors.QuotaExceeded),
        (403, "not yours", errors.AccessDenied),
        (404, "no such model", errors.ModelNotFound),
        (413, "too big", errors.ContextLengthExceeded),
        (429, "slow down", errors.RateLimited),
        (429, "You exceeded your current quota", errors.QuotaExceeded),
        (500, "oops", errors.ServerError),
        (503, "down", errors.ServerError),
        (529, "Overloaded", errors.ServerError),
    ],
)
async def test_http_errors_become_ours(wire, status, message, expected):
    """M150 M207 M229: the message names provider, status and what was said, and what to do."""
    reply = json_reply(status, wire.refuse(message), retry_after="7")
    error = await error_for(wire, reply)
    assert (type(error), error.status, error.provider, error.retry_after) == (
        *(expected, status, wire.preset),
        7.0,
    )
    advice = ADVICE.get(status, "") if expected.retryable else ""
    asked = f"; asked for {HELLO.model} at " if status not in {400, 413} else ""
    start = f"{wire.preset} API error ({status}): {message}{advice}{asked}"
    assert str(error).startswith(start)
    assert str(error).removeprefix(start).startswith("http://127.0.0.1:" if asked else "")


@every_wire
async def test_a_proxys_page_is_reported_in_one_line(wire):
    error = await error_for(
        wire, Reply(b"<html>\nBad gateway\n</html>", 502, content_type="text/html")
    )
    assert (type(error), str(error)) == (
        errors.ServerError,
        f"{wire.preset} API error (502): <html> Bad gateway </html>{error.advice}",
    )


@every_wire
async def test_the_key_is_sent_and_is_in_no_error(wire):
    """M150."""
    async with WireServer(json_reply(401, wire.refuse(f"bad key {KEY}"))) as server:
        *_, last = await events_of(provider(wire, server), HELLO)
        (seen,) = server.requests
    assert str(last.error).startswith(f"{wire.preset} API error (401): bad key …; asked for ")
    assert any(KEY in value for value in seen.headers.values())
    assert KEY not in seen.path + json.dumps(seen.body)
    assert last.error.__cause__ is None


@every_wire
async def test_a_refused_connection_is_a_network_error(wire):
    async with WireServer(Reply()) as server:
        asked = provider(wire, server)
    (failed,) = await events_of(asked, HELLO)
    assert type(failed.error) is errors.NetworkError
    assert server.url in str(failed.error)


@every_wire
@pytest.mark.parametrize("how", ["cancelled", "closed"])
async def test_leaving_an_answer_closes_its_connection(wire, how):
    started = wire.write(*wire.begin, *wire.say("Hel")[:2])
    async with WireServer(Reply(started, stall=True)) as server:
        asked, seen = provider(wire, server), asyncio.Event()

        async def read():
            async with aclosing(asked.stream(HELLO)) as stream:
                async for event in stream:
                    assert seen.is_set() or isinstance(event, StreamStart)
                    seen.set()
                    if how == "closed":
                        return

        task = asyncio.create_task(read())
        await seen.wait()
        if how == "cancelled":
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() == (how == "cancelled")
        await asyncio.wait_for(server.hung_up.wait(), 120)
        await asked.close()


@every_wire
async def test_calls_after_each_other_share_a_connection(wire):
    async with WireServer(Reply(wire.said("x"))) as server:
        asked = provider(wire, server)
        for _ in range(5):
            async with aclosing(asked.stream(HELLO)) as stream:
                assert accumulated([event async for event in stream]).text == "x"
        await asked.close()
        assert (len(server.requests), server.connections) == (5, 1)


@every_wire
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
        ({"retry_after": "Sun, 22 Nov 2020 02:00:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "inf"}, None),
        ({}, None),
    ],
)
async def test_retry_after_is_read(wire, headers, seconds):
    error = await error_for(wire, json_reply(429, wire.refuse("slow down"), **headers))
    assert error.retry_after == seconds
