"""Events of the Anthropic Messages stream as JSON values, and one answer with all of them."""

from gong.llm.types import Finish, StreamStart
from tape.model.entries import Usage
from tests.wires import answer_events as events


def start(**message):
    usage = {"input_tokens": 10, "output_tokens": 1}
    whole = {"id": "msg_1", "model": "claude-x", "content": [], "usage": usage, **message}
    return {"type": "message_start", "message": whole}


def block(index, block, *deltas):
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text_block(index, *pieces):
    deltas = ({"type": "text_delta", "text": piece} for piece in pieces)
    return block(index, {"type": "text", "text": ""}, *deltas)


def tool_block(index, tool_id, name, *pieces):
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, {"type": "tool_use", "id": tool_id, "name": name, "input": {}}, *deltas)


def stop(reason, **usage):
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


THINKING = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Let me "},
    {"type": "thinking_delta", "thinking": "look."},
    {"type": "signature_delta", "signature": "sig=="},
)


WHOLE = [
    start(usage={"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 90}),
    *THINKING,
    {"type": "ping"},
    *text_block(1, "I read", " it —  \u2028🙂"),
    {"type": "something_new", "data": 1},
    *tool_block(2, "toolu_1", "read", '{"path": ', '"a.txt"}'),
    *stop("tool_use", output_tokens=25, input_tokens=None, cache_creation_input_tokens=5),
]
WHOLE_EVENTS = [
    StreamStart("claude-x", "msg_1"),
    *events.reasoning(0, b'{"signature":"sig=="}', "Let me ", "look."),
    *events.text(1, "I read", " it —  \u2028🙂"),
    *events.tool_call(2, "read", "toolu_1", b'{"id":"toolu_1"}', '{"path": ', '"a.txt"}'),
    Finish("tool_calls", Usage(10, 25, 4, 90, 5, 130), "tool_use"),
]
