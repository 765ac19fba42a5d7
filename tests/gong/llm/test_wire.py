"""What goes wrong on a wire, and what must not matter there: one table of cases × every adapter.

A row of `WIRES` says how an adapter's host begins, says and ends an answer; the cases know nothing
of any wire. Errors, timeouts and cut connections have to look alike whoever is asked.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from msgspec.structs import replace

from gong import errors
from gong.llm.models import Timeouts, load_presets
from gong.llm.provider_factory import create_provider
from gong.llm.types import Finish, Request, StreamFailure, TextDelta
from tape.context.view import Message
from tape.model.entries import Text
from tests.gong.llm import test_anthropic as anthropic
from tests.gong.llm import test_google as google
from tests.gong.llm import test_openai_chat as chat
from tests.gong.llm import test_openai_responses as responses
from tests.gong.llm.wire_server import (
    Reply,
    WireServer,
    accumulated,
    chunks,
    events_of,
    json_reply,
    sse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-secret-0123456789"
HELLO = Request(model="model-x", messages=(Message("user", (Text("hello"),)),))
PIECES = ("I read", " it —  \u2028🙂", " and \r\n more")


class Wire(NamedTuple):
    """One adapter's wire: events as JSON values, and how they are written."""

    preset: str
    begin: list[Any]
    say: Callable[..., list[Any]]
    """Events of one text, from its pieces."""
    strange: list[Any]
    """Events of a block nobody knows, before the text."""
    end: list[Any]
    write: Callable[..., bytes]
    refuse: Callable[[str], Any]
    """Body of an error with this message."""

    def said(self, *pieces, crlf=False) -> bytes:
        return self.write(*self.begin, *self.say(*pieces), *self.end, crlf=crlf)


WIRES = [
    Wire(
        "anthropic",
        [anthropic.start()],
        lambda *pieces: anthropic.text_block(0, *pieces),
        anthropic.block(7, {"type": "made_later", "x": None}, {"type": "later_delta", "y": 1}),
        anthropic.stop("end_turn"),
        sse,
        lambda message: {"type": "error", "error": {"type": "x", "message": message}},
    ),
    Wire(
        "openai",
        [responses.start()],
        lambda *pieces: responses.message(0, *pieces),
        responses.item(7, {"type": "made_later", "x": None}, {"type": "made_later", "y": 1}),
        [responses.end()],
        sse,
        lambda message: {"error": {"type": "x", "code": None, "message": message}},
    ),
    Wire(
        "openai-chat",
        [chat.chunk({"role": "assistant", "content": None})],
        lambda *pieces: [chat.chunk({"content": piece}) for piece in pieces],
        [chat.chunk({"content": [{"type": "made_later", "x": None}], "made_later": {"y": 1}})],
        [chat.chunk(finish="stop"), "DONE"],
        lambda *events, crlf=False: chunks(
            *(one for one in events if one != "DONE"),
            end="data: [DONE]" if "DONE" in events else "",
            crlf=crlf,
        ),
        lambda message: {"error": {"type": "x", "code": None, "message": message}},
    ),
    Wire(
        "google",
        [google.chunk()],
        lambda *pieces: [google.chunk(google.text(piece)) for piece in pieces],
        [google.chunk({"madeLater": {"x": None}}, {"text": None, "later": 1})],
        [google.chunk(finish="STOP")],
        lambda *events, crlf=False: chunks(*events, end="", crlf=crlf),
        lambda message: {"error": {"code": 0, "status": "X", "message": message}},
    ),
]
every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.preset)


def provider(wire, server, **limits):
    preset = replace(
        load_presets({})[wire.preset], base_url=server.url, timeouts=Timeouts(**limits)
    )
    return create_provider(preset, {}, lambda *_: KEY)


async def events_for(wire, *replies, **limits):
    """Return the events of as many calls as there are replies, by one provider."""
    async with WireServer(*replies) as server:
        asked = provider(wire, server, **limits)
        found = []
        for _ in replies:
            async with aclosing(asked.stream(HELLO)) as stream:
                found.append([event async for event in stream])
        await asked.close()
    return found


async def answer_for(wire, body, **reply):
    (events,) = await events_for(wire, Reply(body, **reply))
    return accumulated(events)


async def error_for(wire, reply, **limits):
    (events,) = await events_for(wire, reply, **limits)
    assert isinstance(events[-1], StreamFailure)
    return events[-1].error


def with_fields(event, **more):
    return {**event, **more} if isinstance(event, dict) else event


@every_wire
@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("size", [None, 1, 3, 64])
async def test_the_answer_is_the_same_however_its_bytes_are_cut(wire, size, crlf):
    (events,) = await events_for(wire, Reply(wire.said(*PIECES, crlf=crlf), chunk=size))
    answer = accumulated(events)
    assert [event.delta for event in events if isinstance(event, TextDelta)] == [*PIECES]
    assert (answer.text, answer.stop_reason) == ("".join(PIECES), "stop")


@every_wire
async def test_comments_and_unknown_fields_do_nothing(wire):
    told = [*wire.begin, *wire.say("x"), *wire.end]
    strange = (with_fields(event, invented={"a": [None]}, obfuscation="zz") for event in told)
    body = b": a comment\n\n" + wire.write(*strange).replace(b"\n\n", b"\nid: 7\nretry: 1\n\n")
    assert (await answer_for(wire, body)).content[0].text == "x"


@every_wire
async def test_blocks_nobody_knows_do_nothing_bad(wire):
    body = wire.write(*wire.begin, *wire.strange, *wire.say("x"), *wire.end)
    answer = await answer_for(wire, body)
    assert (answer.text, answer.tool_calls, answer.stop_reason) == ("x", (), "stop")


@pytest.mark.parametrize("wire", WIRES[:-1], ids=lambda wire: wire.preset)  # Gemini's is a fault
async def test_an_empty_answer_is_an_answer(wire):
    (events,) = await events_for(wire, Reply(wire.write(*wire.begin, *wire.end)))
    assert accumulated(events).content == ()
    assert isinstance(events[-1], Finish)


@every_wire
async def test_no_answer_at_all_is_none(wire):
    assert type(await error_for(wire, Reply(b""))) is errors.StreamError


def broken(wire):
    """Return answers that stop or make no sense after a word, by what is wrong with them."""
    started = wire.write(*wire.begin, *wire.say("Hel")[:2])
    return {
        "cut": Reply(started, cut=True),
        "ended": Reply(started),
        "no json": Reply(started + b"data: {not json\n\n"),
        "half a json": Reply(started + b'data: {"type": "tex\n\n'),
        "no utf-8": Reply(started + b'data: {"a": "\xff\xfe"}\n\n'),
    }


@every_wire
@pytest.mark.parametrize("case", broken(WIRES[0]))
async def test_a_broken_answer_fails_and_the_next_call_works(wire, case):
    """M149 J9-5.2: a clean error, no hang, and the words that came before it."""
    first, second = await events_for(wire, broken(wire)[case], Reply(wire.said("x")))
    assert type(first[-1].error) is errors.StreamError
    assert [event.delta for event in first if isinstance(event, TextDelta)] == ["Hel"]
    assert accumulated(second).text == "x"


@every_wire
@pytest.mark.parametrize("body", [b'{"some": "json"}', b"<html>hello</html>"])
async def test_an_answer_that_is_no_stream_fails(wire, body):
    reply = Reply(body, content_type="application/json")
    assert type(await error_for(wire, reply)) is errors.StreamError


@every_wire
@pytest.mark.parametrize("indent", [None, 2])
async def test_an_error_in_the_place_of_an_answer_is_told(wire, indent):
    """Some hosts answer 200 and say in plain JSON what is wrong."""
    body = json.dumps(wire.refuse(f"The model is overloaded, {KEY}"), indent=indent).encode()
    error = await error_for(wire, Reply(body, content_type="application/json"))
    assert (type(error), str(error)) == (
        errors.ServerError,
        f"{wire.preset} API error: The model is overloaded, …",
    )
    (events,) = await events_for(
        wire, Reply(b"data: " + json.dumps(json.loads(body)).encode() + b"\n\n")
    )
    assert str(events[-1].error) == str(error)


@every_wire
async def test_a_comment_is_a_sign_of_life(wire):
    """Routers send comments while a model thinks: no event, but no silence either."""
    body = b": still there\n\n" * 40 + wire.said("x")
    slow = Reply(body, chunk=15, pause=0.01)
    (events,) = await events_for(wire, slow, first_byte=0.3, idle=0.3)
    assert accumulated(events).text == "x"


@every_wire
async def test_a_silent_stream_times_out(wire):
    """M149 J9-5.4."""
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
    """M150 M207: the message names the provider, the status and what was said."""
    reply = json_reply(status, wire.refuse(message), retry_after="7")
    error = await error_for(wire, reply)
    assert (type(error), error.status, error.provider, error.retry_after) == (
        *(expected, status, wire.preset),
        7.0,
    )
    assert str(error) == f"{wire.preset} API error ({status}): {message}"


@every_wire
async def test_a_proxys_page_is_told_in_one_line(wire):
    error = await error_for(
        wire, Reply(b"<html>\nBad gateway\n</html>", 502, content_type="text/html")
    )
    assert (type(error), str(error)) == (
        errors.ServerError,
        f"{wire.preset} API error (502): <html> Bad gateway </html>",
    )


@every_wire
async def test_the_key_is_sent_and_stands_in_no_error(wire):
    """M150."""
    async with WireServer(json_reply(401, wire.refuse(f"bad key {KEY}"))) as server:
        *_, last = await events_of(provider(wire, server), HELLO)
        (seen,) = server.requests
    assert str(last.error) == f"{wire.preset} API error (401): bad key …"
    assert any(KEY in value for value in seen.headers.values())
    assert KEY not in seen.path + json.dumps(seen.body)
    assert last.error.__cause__ is None


@every_wire
async def test_nobody_listening_is_a_network_error(wire):
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
                async for _ in stream:
                    seen.set()
                    if how == "closed":
                        return

        task = asyncio.create_task(read())
        await seen.wait()
        if how == "cancelled":
            task.cancel()
        await asyncio.wait([task])
        await asyncio.wait_for(server.hung_up.wait(), 120)
        await asked.close()


@every_wire
async def test_calls_after_each_other_share_a_connection(wire):
    async with WireServer(Reply(wire.said("x"))) as server:
        asked = provider(wire, server)
        for _ in range(3):
            async with aclosing(asked.stream(HELLO)) as stream:
                assert accumulated([event async for event in stream]).text == "x"
        await asked.close()
        assert (len(server.requests), server.connections) == (3, 1)
