"""The smallest events of each wire, for tests that send many of them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Wire(NamedTuple):
    """How the host of one preset begins, goes on with and ends an answer; events as values."""

    preset: str
    variable: str
    begin: tuple[Any, ...]
    text_start: tuple[Any, ...]
    text: Any
    """A piece of text, with PIECE in it."""
    call_start: tuple[Any, ...]
    call: Any
    """A piece of a call's arguments."""
    block: Any
    """A whole block, with a number in the place of NUMBER; None where events have none."""
    quiet: Any
    """An event that says nothing."""
    end: tuple[Any, ...]

    def bytes_of(self, *events):
        """Return events as they are sent."""
        return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)

    def piece(self, text):
        """Return a piece of text as it is sent."""
        return self.bytes_of(self.text).replace(b"PIECE", json.dumps(text).encode()[1:-1])

    def call_piece(self, text):
        """Return a piece of arguments as it is sent."""
        inner = json.dumps(text).encode()[1:-1]
        return self.bytes_of(self.call).replace(b"PIECE", inner)

    def answer(self, *texts):
        """Return a whole answer as it is sent."""
        said = b"".join(self.piece(text) for text in texts)
        return self.bytes_of(*self.begin, *self.text_start) + said + self.bytes_of(*self.end)


def _choice(**fields):
    return {"id": "c", "model": "m", "choices": [{"index": 0, **fields}]}


def _parts(*parts, **more):
    return {"candidates": [{"content": {"parts": [*parts]}, **more}], "modelVersion": "m"}


_USAGE = {"input_tokens": 1, "output_tokens": 1}
WIRES = (
    Wire(
        "anthropic",
        "ANTHROPIC",
        ({"type": "message_start", "message": {"id": "m", "model": "m", "usage": _USAGE}},),
        ({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},),
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "PIECE"},
        },
        (
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "t", "name": "write"},
            },
        ),
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "PIECE"},
        },
        {"type": "content_block_start", "index": "NUMBER", "content_block": {"type": "text"}},
        {"type": "ping"},
        (
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": _USAGE},
            {"type": "message_stop"},
        ),
    ),
    Wire(
        "openai",
        "OPENAI",
        ({"type": "response.created", "response": {"id": "r", "model": "m"}},),
        (
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "message", "id": "i"},
            },
        ),
        {"type": "response.output_text.delta", "output_index": 0, "delta": "PIECE"},
        (
            {
                "type": "response.output_item.added",
                "output_index": 1,
                "item": {"type": "function_call", "id": "f", "call_id": "t", "name": "write"},
            },
        ),
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "PIECE"},
        {
            "type": "response.output_item.added",
            "output_index": "NUMBER",
            "item": {"type": "reasoning", "id": "i"},
        },
        {"type": "response.in_progress", "response": {"id": "r", "model": "m"}},
        (
            {
                "type": "response.completed",
                "response": {"id": "r", "model": "m", "status": "completed", "usage": _USAGE},
            },
        ),
    ),
    Wire(
        "openai-chat",
        "OPENAI_CHAT",
        (_choice(delta={"role": "assistant"}),),
        (),
        _choice(delta={"content": "PIECE"}),
        (
            _choice(
                delta={
                    "tool_calls": [
                        {"index": 0, "id": "t", "function": {"name": "write", "arguments": ""}}
                    ]
                }
            ),
        ),
        _choice(delta={"tool_calls": [{"index": 0, "function": {"arguments": "PIECE"}}]}),
        _choice(
            delta={
                "tool_calls": [{"index": "NUMBER", "function": {"name": "write", "arguments": ""}}]
            }
        ),
        {"object": "ping"},
        (_choice(delta={}, finish_reason="stop"),),
    ),
    Wire(
        "google",
        "GOOGLE",
        (_parts(),),
        (),
        _parts({"text": "PIECE"}),
        (_parts({"functionCall": {"name": "write", "willContinue": True}}),),
        _parts(
            {
                "functionCall": {
                    "partialArgs": [
                        {"jsonPath": "$.a", "stringValue": "PIECE", "willContinue": True}
                    ],
                    "willContinue": True,
                }
            }
        ),
        _parts({"functionCall": {"name": "write", "args": {"n": "NUMBER"}}}),
        {"responseId": "r"},
        (_parts(finishReason="STOP"),),
    ),
)
