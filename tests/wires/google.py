"""Chunks of the Gemini stream as JSON values, and one answer with all kinds of parts."""

import base64

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
from tests.wires.server import chunks

SIGNATURE = base64.b64encode(b"signed").decode()


COUNTS = {"promptTokenCount": 100, "candidatesTokenCount": 7, "thoughtsTokenCount": 5}


def chunk(*parts, finish=None, usage=None, **more):
    """Return one chunk of a stream as the API writes it."""
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    used = {"usageMetadata": usage} if usage else {}
    return {
        "candidates": [candidate],
        **used,
        "modelVersion": "gemini-x",
        "responseId": "r1",
    } | more


def text(words, **more):
    return {"text": words, **more}


def thought(words, **more):
    return {"text": words, "thought": True, **more}


def call(name, args=None, *, id=None, **more):  # noqa: A002 (the API's own word)
    function = {"name": name, **({"args": args} if args is not None else {})}
    return {"functionCall": {**function, **({"id": id} if id else {})}, **more}


def cut_up(path=None, *, name=None, goes_on=True, **value):
    """Return a chunk with a piece of a call, as hosts send it that cut arguments up."""
    pieces = {"partialArgs": [{"jsonPath": path, **value}]} if path else {}
    named = {"name": name} if name else {}
    return chunk(
        {"functionCall": {**named, **pieces, **({"willContinue": True} if goes_on else {})}}
    )


def stream(*parts, crlf=True):
    """Return chunks as the API sends them: no names, no end mark."""
    return chunks(*parts, end="", crlf=crlf)


WHOLE = [
    chunk(thought("Let me "), usage={"promptTokenCount": 100}),
    chunk(thought("look.")),
    chunk(text("I read")),
    chunk(text(" it —  \u2028🙂")),
    chunk(call("read", {"path": "a.txt"}, id="f1", thoughtSignature=SIGNATURE)),
    {"something": "new", "modelVersion": "gemini-x"},
    chunk(call("read", {"path": "b.txt"}), newField=None),
    chunk(
        text(""),
        finish="STOP",
        usage={**COUNTS, "cachedContentTokenCount": 90, "totalTokenCount": 112},
    ),
]
WHOLE_EVENTS = [
    StreamStart("gemini-x", "r1"),
    ReasoningStart(0),
    ReasoningDelta(0, "Let me "),
    ReasoningDelta(0, "look."),
    ReasoningEnd(0, Raw(b'{"thought":true}')),
    TextStart(1),
    TextDelta(1, "I read"),
    TextDelta(1, " it —  \u2028🙂"),
    TextEnd(1),
    ToolCallStart(2, "read", "f1"),
    ToolCallDelta(2, '{"path": "a.txt"}'),
    ToolCallEnd(2, Raw(b'{"thoughtSignature":"%b","id":"f1"}' % SIGNATURE.encode())),
    ToolCallStart(3, "read", ""),
    ToolCallDelta(3, '{"path": "b.txt"}'),
    ToolCallEnd(3),
    Finish("tool_calls", Usage(10, 12, 5, 90, None, 112), "STOP"),
]
