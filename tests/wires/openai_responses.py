"""Events of the Responses stream as JSON values, and one answer with all of them."""

import json

from msgspec import Raw

from gong.llm.types import Finish, StreamStart
from tape.model.entries import Usage
from tests.wires import answer_events as events


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
MESSAGE_DATA = {"id": "msg_1", "phase": "commentary", "status": "completed"}
CALL_DATA = {"id": "fc_2", "call_id": "call_1", "status": "completed"}
WHOLE_EVENTS = [
    StreamStart("gpt-x", "resp_1"),
    *events.reasoning(0, compact(REASONING), "Let me ", "look.", "\n\n", "Then read."),
    *events.text(1, "I read", " it —  \u2028🙂", raw=compact(MESSAGE_DATA)),
    *events.tool_call(2, "read", "call_1", compact(CALL_DATA), '{"path": ', '"a.txt"}'),
    Finish("tool_calls", Usage(10, 25, 7, 90, None, 125), "completed"),
]
