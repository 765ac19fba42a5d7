"""Chunks of the Gemini stream as JSON values, and one answer with all kinds of parts."""

import base64

from gong.llm.types import Finish, StreamStart
from tape.model.entries import Usage
from tests.wires import answer_events as events
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
SIGNED_CALL = b'{"thoughtSignature":"%b","id":"f1"}' % SIGNATURE.encode()
WHOLE_EVENTS = [
    StreamStart("gemini-x", "r1"),
    *events.reasoning(0, b'{"thought":true}', "Let me ", "look."),
    *events.text(1, "I read", " it —  \u2028🙂"),
    *events.tool_call(
        2,
        "read",
        "f1",
        SIGNED_CALL,
        '{"path": "a.txt"}',
    ),
    *events.tool_call(3, "read", "", None, '{"path": "b.txt"}'),
    Finish("tool_calls", Usage(10, 12, 5, 90, None, 112), "STOP"),
]
