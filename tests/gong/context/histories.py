"""Paths made by hand and at random, for tests of what stands before a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from msgspec.structs import replace

from tape.context.repair import repair
from tape.context.view import Target, view
from tape.model.entries import (
    Assistant,
    BlobRef,
    Context,
    Error,
    Image,
    Model,
    Text,
    ToolResult,
    ToolStart,
    Usage,
)
from tape.model.line import Entry
from tests.tape.making import answer, result, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tape.context.view import Message
    from tape.model.entries import Payload

TARGET = Target("https://one", "api", "model")
PICTURE = Image(blob=BlobRef("0" * 64, 3), mime="image/png")


def path(payloads: Iterable[Payload]) -> list[Entry]:
    """Return payloads as the entries of a path; their ids are counted in the first digits."""
    return [
        Entry(f"{n:08x}{'0' * 32}", 1, None, n, "", "", data) for n, data in enumerate(payloads)
    ]


def sent(entries: list[Entry]) -> tuple[Message, ...]:
    """Return the messages of a path."""
    return repair(view(entries), TARGET).messages


def told(text: str, usage: Usage | None = None, **fields: str) -> Assistant:
    """Return an answer of the model that all messages are for."""
    return Assistant(
        (Text(text=text),),
        api="api",
        endpoint="https://one",
        usage=usage or Usage(),
        **{"model": "model", **fields},
    )


def steer(text: str, role: str = "user") -> Context:
    """Return words put in between."""
    return Context(role, "steering", (Text(text=text),))


_IDS = st.sampled_from("abcd")
_TEXTS = st.sampled_from(["words", "more words " * 9, "long output " * 60, "é\u2028", " "])
_RESULTS = st.builds(result, _IDS, _TEXTS) | st.builds(
    lambda call, text: ToolResult(call, "read", (PICTURE, Text(text=text))), _IDS, _TEXTS
)
_ANSWERS = st.builds(
    lambda calls, text, stop: replace(answer(*calls, text=text), stop_reason=stop),
    st.lists(_IDS, max_size=3),
    _TEXTS,
    st.sampled_from(["stop", "tool_calls", "tool_calls", "length", "aborted", "error"]),
)
_TURNS = st.builds(
    lambda calls, text: [
        answer(*calls),
        *(ToolStart(call, "bash") for call in calls),
        *(result(call, text) for call in calls),
    ],
    st.lists(_IDS, max_size=3, unique=True),
    _TEXTS,
)
_ODD = st.one_of(
    st.builds(say, _TEXTS),
    st.builds(steer, _TEXTS, st.sampled_from(["user", "system"])),
    _ANSWERS,
    _RESULTS,
    _RESULTS,
    st.builds(lambda call: ToolStart(call, "bash"), _IDS),
    st.just(Model("p", "m")),
    st.just(Error("Aborted", "stopped by the user")),
)
HISTORIES = st.lists(
    _TURNS | st.builds(lambda text: [say(text)], _TEXTS) | st.lists(_ODD, max_size=3), max_size=10
).map(lambda runs: [payload for run in runs for payload in run])
"""Tool histories: most in order, some with results that are late, double, missing or strange."""
