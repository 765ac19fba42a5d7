"""Chunks of the Chat Completions stream as JSON values, and one answer with all of them."""

from msgspec import Raw

from gong.llm.models import Preset
from gong.llm.provider_factory import create_wire_provider
from gong.llm.types import Finish, Request, StreamStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from tape.context.view import Message
from tape.model.entries import Text, Usage
from tests.wires import answer_events as events
from tests.wires.server import WireServer, events_of

PLAIN = Preset(name="host", api="openai-chat", base_url="http://127.0.0.1")
KEY = "sk-test-0123456789"


HELLO = Request(model="model-x", messages=(Message("user", (Text("hello"),)),))


async def events_for(reply, request=HELLO, preset=PLAIN):
    async with WireServer(reply) as server:
        return await events_of(create_wire_provider(preset, KEY, server.url), request)


TOKENS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta=None, finish=None, **fields):
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "chat_1", "model": "x-1", "choices": [choice], **fields}


def call(index, text="", call_id=None, name=None, **fields):
    piece = {"index": index, "id": call_id, "function": {"name": name, "arguments": text}}
    return {key: value for key, value in {**piece, **fields}.items() if value is not None}


def calls(*pieces, finish=None):
    return chunk({"tool_calls": list(pieces)}, finish)


WHOLE = [
    chunk({"role": "assistant", "content": None, "reasoning_content": "Let me "}),
    chunk({"reasoning_content": "look."}),
    chunk({"content": "I read"}),
    chunk({"content": " it —  \u2028🙂", "invented": {"later": 1}}),
    calls(call(0, "", "call_1", "read")),
    calls(call(0, '{"path": ')),
    calls(call(1, "{}", "call_2", "ls"), call(0, '"a.txt"}')),
    chunk(finish="tool_calls"),
    {
        "id": "chat_1",
        "choices": [],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 25,
            "total_tokens": 125,
            "prompt_tokens_details": {"cached_tokens": 90},
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
    },
]
WHOLE_EVENTS = [
    StreamStart("x-1", "chat_1"),
    *events.reasoning(0, b'{"field":"reasoning_content"}', "Let me ", "look."),
    *events.text(1, "I read", " it —  \u2028🙂"),
    ToolCallStart(2, "read", "call_1"),
    ToolCallDelta(2, '{"path": '),
    ToolCallStart(3, "ls", "call_2"),
    ToolCallDelta(3, "{}"),
    ToolCallDelta(2, '"a.txt"}'),
    ToolCallEnd(2, Raw(b'{"id":"call_1"}')),
    ToolCallEnd(3, Raw(b'{"id":"call_2"}')),
    Finish("tool_calls", Usage(10, 25, 7, 90, None, 125), "tool_calls"),
]
