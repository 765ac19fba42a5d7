from itertools import groupby
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from gong.errors import ServerError, StreamError
from gong.llm.accumulate import StreamAccumulator, join_deltas
from gong.llm.types import (
    Finish,
    OpaqueBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Response,
    StreamFailure,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from tape.model.entries import Opaque, Text, Thinking, ToolCall, Usage

SIGNED = Raw(b'{"signature":"s"}')
WHOLE = [
    StreamStart("m", "r1"),
    ReasoningStart(0),
    ReasoningDelta(0, "Hm."),
    ReasoningEnd(0, SIGNED),
    OpaqueBlock(1, Raw(b'{"type":"x"}')),
    TextStart(2),
    ToolCallStart(3, "read", "p1"),
    TextDelta(2, "Hel"),
    ToolCallDelta(3, '{ "path":'),
    TextDelta(2, "lo"),
    TextEnd(2),
    ToolCallDelta(3, ' "a" }'),
    ToolCallEnd(3, Raw(b'{"id":"p1"}')),
    ToolCallStart(4, "ls", "p2"),
    ToolCallEnd(4),
    Finish("tool_calls", Usage(1, 2, total=3), "tool_use"),
]
CONTENT = (
    Thinking("Hm.", wire=SIGNED),
    Opaque(raw=Raw(b'{"type":"x"}')),
    Text("Hello"),
    ToolCall(
        id="c_1a2b3c4d_0", name="read", args=Raw(b'{ "path": "a" }'), wire=Raw(b'{"id":"p1"}')
    ),
    ToolCall(id="c_1a2b3c4d_1", name="ls", args=Raw(b"{}")),
)


def fed(events):
    answer = StreamAccumulator("c_1a2b3c4d")
    for event in events:
        answer.process(event)
    return answer


def test_the_blocks_keep_their_places_and_calls_get_our_ids():
    assert fed(WHOLE).response() == Response(
        content=CONTENT,
        stop_reason="tool_calls",
        usage=Usage(1, 2, total=3),
        model="m",
        raw_stop="tool_use",
        response_id="r1",
    )


def test_a_partial_answer_has_no_half_calls_and_no_blank_blocks():
    assert fed(WHOLE[:10]).partial() == (
        Thinking("Hm.", wire=SIGNED),
        Opaque(raw=Raw(b'{"type":"x"}')),
        Text("Hello"),
    )
    assert fed([StreamStart("m"), TextStart(0), TextDelta(0, " \n")]).partial() == ()
    assert fed([StreamStart("m"), ReasoningStart(0)]).partial() == ()


def test_thinking_that_is_only_a_signature_is_kept():
    answer = fed([ReasoningStart(0), ReasoningEnd(0, SIGNED), Finish("stop", Usage())])
    assert answer.response().content == (Thinking("", wire=SIGNED),)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        "[1]",
        "null",
        "nonsense",
        '{"a": NaN}',
        '{"$blob": "x"}',
        '{"a": [{"\\u0024blob": 1}]}',
        "[" * 100_000,
    ],
)
def test_arguments_an_entry_cannot_hold_as_json_become_text(text):
    answer = fed(
        [
            ToolCallStart(0, "t", "p"),
            ToolCallDelta(0, text),
            ToolCallEnd(0),
            Finish("stop", Usage()),
        ]
    )
    assert answer.response().tool_calls == (ToolCall(id="c_1a2b3c4d_0", name="t", args_text=text),)


@given(st.text(), st.integers(min_value=1, max_value=5))
def test_cutting_a_text_into_deltas_changes_nothing(text, size):
    deltas = [TextDelta(0, text[at : at + size]) for at in range(0, len(text), size)]
    answer = fed([TextStart(0), *deltas, TextEnd(0), Finish("stop", Usage())])
    assert answer.response().text == text


def test_a_failed_stream_raises_its_error_and_keeps_usage():
    error = ServerError("down")
    answer = fed([*WHOLE[:5], StreamFailure(error, Usage(5, total=5))])
    assert (answer.error, answer.usage) == (error, Usage(5, total=5))
    with pytest.raises(ServerError, match="down"):
        answer.response()


def test_an_answer_that_has_not_ended_is_none():
    with pytest.raises(StreamError, match="has not ended"):
        fed(WHOLE[:-1]).response()


_PIECES = st.builds(
    lambda kind, index, text: kind(index, text),
    st.sampled_from([TextDelta, ReasoningDelta, ToolCallDelta]),
    st.integers(0, 2),
    st.text(max_size=3),
)
_EVENTS = st.lists(st.one_of(_PIECES, st.sampled_from([TextStart(0), TextEnd(0)])), max_size=30)


@given(_EVENTS)
def test_joined_pieces_are_the_same_text_in_the_same_order(events):
    found = list(join_deltas(events))
    runs = [(kind, list(run)) for kind, run in groupby(events, lambda one: (type(one), one.index))]
    assert found == [
        one
        for (kind, index), run in runs
        for one in (
            run
            if kind in {TextStart, TextEnd}
            else [kind(index, "".join(map(attrgetter("delta"), run)))]
        )
    ]


def test_pieces_before_an_error_are_joined_and_come_before_it():
    def fail():
        yield TextDelta(0, "a")
        yield TextDelta(0, "b")
        raise StreamError("cut")

    found = []
    with pytest.raises(StreamError):
        found.extend(join_deltas(fail()))
    assert found == [TextDelta(0, "ab")]
