"""Events of the Converse stream as JSON values, and one answer with all of them."""

from gong.llm.types import Finish, StreamStart
from tape.model.entries import Usage
from tests.wires import answer_events as events

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
    *events.reasoning(0, b'{"signature":"sig=="}', "Let me ", "look."),
    *events.text(1, "I read", " it —  \u2028🙂"),
    *events.tool_call(2, "read", "tooluse_1", b'{"id":"tooluse_1"}', '{"path": ', '"a.txt"}'),
    Finish("tool_calls", Usage(10, 25, 4, 90, 5, 130), "tool_use"),
]
