"""Events of the Converse stream as JSON values, and one answer with all of them."""

from msgspec import Raw

from gong.llm.types import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from tape.model.entries import Usage

START = {"messageStart": {"role": "assistant"}}


def block(index, *deltas, start=None):
    place = {"contentBlockIndex": index}
    return [
        *([{"contentBlockStart": {**place, "start": start}}] if start else []),
        *({"contentBlockDelta": {**place, "delta": delta}} for delta in deltas),
        {"contentBlockStop": place},
    ]


def text_block(index, *pieces):
    return block(index, *({"text": piece} for piece in pieces))


def stop(reason, **usage):
    return [{"messageStop": {"stopReason": reason}}, {"metadata": {"usage": usage}}]


WHOLE = [
    START,
    *block(
        0,
        {"reasoningContent": {"text": "Let me "}},
        {"reasoningContent": {"text": "look."}},
        {"reasoningContent": {"signature": "sig=="}},
    ),
    *text_block(1, "I read", " it —  \u2028🙂"),
    {"somethingNew": {"data": 1}},
    *block(
        2,
        {"toolUse": {"input": '{"path": '}},
        {"toolUse": {"input": '"a.txt"}'}},
        start={"toolUse": {"toolUseId": "tooluse_1", "name": "read"}},
    ),
    *stop(
        "tool_use",
        inputTokens=10,
        outputTokens=25,
        cacheReadInputTokens=90,
        cacheWriteInputTokens=5,
    ),
]
WHOLE_EVENTS = [
    StreamStart("", None),
    ReasoningStart(0),
    ReasoningDelta(0, "Let me "),
    ReasoningDelta(0, "look."),
    ReasoningEnd(0, Raw(b'{"signature":"sig=="}')),
    TextStart(1),
    TextDelta(1, "I read"),
    TextDelta(1, " it —  \u2028🙂"),
    TextEnd(1),
    ToolCallStart(2, "read", "tooluse_1"),
    ToolCallDelta(2, '{"path": '),
    ToolCallDelta(2, '"a.txt"}'),
    ToolCallEnd(2, Raw(b'{"id":"tooluse_1"}')),
    Finish("tool_calls", Usage(10, 25, 4, 90, 5, 130), "tool_use"),
]
