"""What an answer says beside its words, and what odd ones do: every wire."""

import copy
import json

import pytest

from gong import errors
from gong.llm.accumulate import StreamAccumulator
from gong.llm.types import Allowance, RateLimit, Request, StreamFailure
from tape.context.view import Message
from tape.model.entries import Text
from tests.wires import anthropic, google
from tests.wires import openai_chat as chat
from tests.wires import openai_responses as responses
from tests.wires.decoders import FAILURES, PRESET, places, put
from tests.wires.decoders import WIRES as DECODERS
from tests.wires.server import Reply, WireServer, accumulated, chunks, events_of, sse
from tests.wires.table import WIRES, answer_for, every_wire, provider

HELLO = Request(model="model-x", messages=(Message("user", (Text("hello"),)),))
LIMITS = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-remaining-tokens": "7",
}


@every_wire
async def test_limits_in_the_headers_are_in_the_answer(wire):
    """M152: rate_limit."""
    answer = await answer_for(wire, wire.said("x"), headers=LIMITS)
    assert answer.rate_limit == RateLimit(Allowance(60, 59, 1.0), Allowance(remaining=7))
    assert (await answer_for(wire, wire.said("x"))).rate_limit is None


@every_wire
async def test_what_the_provider_sent_is_kept_when_it_is_asked_for(wire):
    """M152: raw, nothing of it otherwise."""
    body = wire.said("x", "y")
    async with WireServer(Reply(body)) as server:
        asked = Request(**{name: getattr(HELLO, name) for name in ("model", "messages")}, raw=True)
        answer = accumulated(await events_of(provider(wire, server), asked))
    told = [*wire.begin, *wire.say("x", "y"), *wire.end]
    assert [json.loads(bytes(one)) for one in answer.raw] == [one for one in told if one != "DONE"]
    assert (await answer_for(wire, body)).raw == ()


NOTHING = ["null", "{}", '{"type": null}', '{"later": {"x": [null]}}']


@every_wire
@pytest.mark.parametrize("odd", NOTHING)
async def test_events_that_say_nothing_do_nothing(wire, odd):
    """M149."""
    odd = f"data: {odd}\n\n".encode()
    parts = [wire.write(*events) for events in (wire.begin, wire.say("x", "y"))]
    body = odd.join([*parts, wire.write(*wire.end)])
    answer = await answer_for(wire, body)
    assert (answer.text, answer.stop_reason) == ("xy", "stop")


def responses_with(content):
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    return sse(responses.start(), responses.end(output=[item]))


ODD = {
    "anthropic string": (0, sse(anthropic.start(content="x"), *anthropic.stop("end_turn"))),
    "anthropic strings": (0, sse(anthropic.start(content=["x"]), *anthropic.stop("end_turn"))),
    "anthropic null": (
        0,
        sse(
            anthropic.start(content=None),
            *anthropic.text_block(0, "x"),
            *anthropic.stop("end_turn"),
        ),
    ),
    "responses string": (1, responses_with("x")),
    "responses list with null": (1, responses_with([None, {"type": "output_text", "text": "x"}])),
    "chat strings": (2, chunks(chat.chunk({"content": ["x"]}), chat.chunk(finish="stop"))),
    "chat null choice": (2, chunks({"choices": [None]}, chat.chunk({"content": "x"}, "stop"))),
    "chat null call": (2, chunks(chat.calls(None), chat.chunk({"content": "x"}, "stop"))),
    "chat whole message": (
        2,
        chunks({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "id": "1"}),
    ),
    "google null parts": (
        3,
        chunks(google.chunk(None, google.text("x")), google.chunk(finish="STOP"), end=""),
    ),
    "google null content": (
        3,
        chunks(
            {"candidates": [{"content": None}, None]},
            google.chunk(google.text("x"), finish="STOP"),
            end="",
        ),
    ),
}


@pytest.mark.parametrize("case", ODD)
async def test_odd_content_is_read_all_the_same(case):
    """M149: a string or null where a list belongs (#1434)."""
    place, body = ODD[case]
    answer = await answer_for(WIRES[place], body)
    assert (answer.text, answer.stop_reason) == ("x", "stop")


@pytest.mark.parametrize(
    ("place", "body"),
    [
        (1, responses_with(None)),
        (1, sse(responses.start(), responses.end(output=None))),
        (1, sse(responses.start(), responses.end(output=[]))),
        (2, chunks(chat.chunk({"content": []}), chat.chunk(finish="stop"))),
        (2, chunks(chat.chunk({"content": None, "tool_calls": None}, "stop"))),
        (0, sse(anthropic.start(content=[]), *anthropic.stop("end_turn"))),
    ],
)
async def test_an_empty_answer_is_an_answer_in_every_form(place, body):
    answer = await answer_for(WIRES[place], body)
    assert (answer.content, answer.tool_calls, answer.stop_reason) == ((), (), "stop")


def outcome(new_decoder, events):
    """Return the last event and what came together of an answer."""
    decoder, answer = new_decoder(FAILURES, PRESET), StreamAccumulator("c_00000000")
    try:
        for event in events:
            for last in decoder.feed(json.dumps(event).encode()):
                answer.process(last)
        ends = (
            decoder.finish()
            if decoder.finished
            else decoder.finish_with_error(FAILURES.build_stopped_error())
        )
    except errors.ModelError as error:
        ends = decoder.finish_with_error(error)
    for last in ends:
        answer.process(last)
    return last, answer


@pytest.mark.parametrize("wire", DECODERS)
@pytest.mark.parametrize("odd", [None, "", 7, [], {}, "made_later"], ids=repr)
def test_nothing_bad_comes_of_any_value_anywhere(wire, odd):
    """M149: an answer, or a failure that may be tried again; never a call with half its words."""
    new_decoder, whole = DECODERS[wire]
    _, meant = outcome(new_decoder, whole)
    said = {bytes(call.args) for call in meant.response().tool_calls}
    for path in places(whole):
        events = copy.deepcopy(whole)
        put(events, path, odd)
        last, answer = outcome(new_decoder, events)
        if isinstance(last, StreamFailure):
            assert last.error.retryable, (path, last.error)
        elif odd is None and "args" not in path:  # there null is an argument
            got = {bytes(call.args) for call in answer.response().tool_calls if not call.args_text}
            assert got <= {*said, b"{}"}, path
