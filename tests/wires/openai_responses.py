"""Events of the Responses stream as JSON values, and one answer with all of them."""

import json

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


def compact(value):
    return Raw(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


TOKENS = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


def start():
    return {"type": "response.created", "response": {"id": "resp_1", "model": "gpt-x"}}


def end(status="completed", **fields):
    response = {"id": "resp_1", "model": "gpt-x", "status": status, "usage": TOKENS, **fields}
    return {"type": f"response.{status}", "response": response}


def item(place, added, done, *events):
    """Return the events of one output item."""
    inside = [{"output_index": place, **event} for event in events]
    return [
        {"type": "response.output_item.added", "output_index": place, "item": added},
        *inside,
        {"type": "response.output_item.done", "output_index": place, "item": done},
    ]


def delta(kind, *pieces, **place):
    return [{"type": f"response.{kind}.delta", "delta": piece, **place} for piece in pieces]


def message(place, *pieces, phase="final_answer"):
    begun = {"type": "message", "id": f"msg_{place}", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "".join(pieces), "annotations": [], "logprobs": []}
    done = {**begun, "content": [part], "status": "completed", "phase": phase}
    return item(place, begun, done, *delta("output_text", *pieces, content_index=0))


def function(place, call_id, name, *pieces):
    begun = {"type": "function_call", "id": f"fc_{place}", "call_id": call_id, "name": name}
    done = {**begun, "arguments": "".join(pieces), "status": "completed"}
    events = delta("function_call_arguments", *pieces)
    return item(place, {**begun, "arguments": "", "status": "in_progress"}, done, *events)


REASONING = {
    "type": "reasoning",
    "id": "rs_0",
    "summary": [
        {"type": "summary_text", "text": "Let me look."},
        {"type": "summary_text", "text": "Then read."},
    ],
    "encrypted_content": "gAAA==",
}


THINKING = item(
    0,
    {"type": "reasoning", "id": "rs_0", "summary": []},
    REASONING,
    *delta("reasoning_summary_text", "Let me ", "look.", summary_index=0),
    *delta("reasoning_summary_text", "Then read.", summary_index=1),
)


WHOLE = [
    start(),
    {"type": "response.in_progress", "response": {"id": "resp_1", "model": "gpt-x"}},
    *THINKING,
    {"type": "keepalive", "sequence_number": 9},
    *message(1, "I read", " it —  \u2028🙂", phase="commentary"),
    {"type": "response.invented.delta", "output_index": 1, "delta": {"x": 1}},
    *function(2, "call_1", "read", '{"path": ', '"a.txt"}'),
    end(
        usage={
            "input_tokens": 100,
            "output_tokens": 25,
            "total_tokens": 125,
            "input_tokens_details": {"cached_tokens": 90},
            "output_tokens_details": {"reasoning_tokens": 7},
        }
    ),
]
WHOLE_EVENTS = [
    StreamStart("gpt-x", "resp_1"),
    ReasoningStart(0),
    ReasoningDelta(0, "Let me "),
    ReasoningDelta(0, "look."),
    ReasoningDelta(0, "\n\n"),
    ReasoningDelta(0, "Then read."),
    ReasoningEnd(0, compact(REASONING)),
    TextStart(1),
    TextDelta(1, "I read"),
    TextDelta(1, " it —  \u2028🙂"),
    TextEnd(1, compact({"id": "msg_1", "phase": "commentary", "status": "completed"})),
    ToolCallStart(2, "read", "call_1"),
    ToolCallDelta(2, '{"path": '),
    ToolCallDelta(2, '"a.txt"}'),
    ToolCallEnd(2, compact({"id": "fc_2", "call_id": "call_1", "status": "completed"})),
    Finish("tool_calls", Usage(10, 25, 7, 90, None, 125), "completed"),
]
