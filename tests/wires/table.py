"""One row for each adapter: how its host begins, says, ends and refuses an answer.

The cases of this room know nothing of any wire; a new one is a row here.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from msgspec.structs import replace

from gong.llm.models import Timeouts, load_presets
from gong.llm.provider_factory import create_provider
from gong.llm.types import Request, StreamFailure
from tape.context.view import Message
from tape.model.entries import Text
from tests.wires import anthropic, converse, google
from tests.wires import openai_chat as chat
from tests.wires import openai_responses as responses
from tests.wires.server import Reply, WireServer, accumulated, chunks, sse

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
    whole: list[Any]
    """An answer with all there is."""
    whole_events: list[Any]
    """What it is to us."""

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
        anthropic.WHOLE,
        anthropic.WHOLE_EVENTS,
    ),
    Wire(
        "openai",
        [responses.start()],
        lambda *pieces: responses.message(0, *pieces),
        responses.item(7, {"type": "made_later", "x": None}, {"type": "made_later", "y": 1}),
        [responses.end()],
        sse,
        lambda message: {"error": {"type": "x", "code": None, "message": message}},
        responses.WHOLE,
        responses.WHOLE_EVENTS,
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
        [*chat.WHOLE, "DONE"],
        chat.WHOLE_EVENTS,
    ),
    Wire(
        "google",
        [google.chunk()],
        lambda *pieces: [google.chunk(google.text(piece)) for piece in pieces],
        [google.chunk({"madeLater": {"x": None}}, {"text": None, "later": 1})],
        [google.chunk(finish="STOP")],
        lambda *events, crlf=False: chunks(*events, end="", crlf=crlf),
        lambda message: {"error": {"code": 0, "status": "X", "message": message}},
        google.WHOLE,
        google.WHOLE_EVENTS,
    ),
    Wire(
        "bedrock-converse",
        [converse.START],
        lambda *pieces: converse.text_block(0, *pieces),
        converse.block(7, {"madeLater": {"x": None}}, {"laterDelta": 1}, start={"later": {}}),
        converse.stop("end_turn"),
        lambda *events, crlf=False: chunks(*events, end="", crlf=crlf),
        lambda message: {"type": "error", "error": {"type": "x", "message": message}},
        converse.WHOLE,
        converse.WHOLE_EVENTS,
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
