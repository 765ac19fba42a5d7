"""Random histories of four providers' answers; ways between payloads, messages and arrays."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from hypothesis import strategies as st
from msgspec import Raw

from tape.context.repair import repair
from tape.context.view import Message, Target, view
from tape.errors import NotFound
from tape.formats.registry import FORMATS
from tape.model.entries import (
    Assistant,
    Audio,
    BlobRef,
    Context,
    Document,
    Error,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolStart,
    Unknown,
    User,
)
from tape.model.line import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import Payload

FILES = {
    sha256(data).hexdigest(): data
    for data in (b"\x89PNG", b"%PDF-1.7", b"RIFFsound", b"plain words", b" ")
}
LOST = BlobRef("0" * 64, 3)


def load(blob):
    if blob.hash not in FILES:
        raise NotFound("blob is missing")
    return FILES[blob.hash]


def put(data: bytes) -> BlobRef:
    FILES[sha256(data).hexdigest()] = data
    return BlobRef(sha256(data).hexdigest(), len(data))


def blob(data: bytes) -> BlobRef:
    return BlobRef(sha256(data).hexdigest(), len(data))


def raw(value) -> Raw:
    return Raw(msgspec.json.encode(value))


def path(payloads: Sequence[Payload]) -> list[Entry]:
    return [Entry(f"{n:040x}", 1, None, n, "", "", data) for n, data in enumerate(payloads)]


def repaired(payloads: Sequence[Payload], target: Target) -> tuple[Message, ...]:
    return repair(view(path(payloads)), target).messages


def as_messages(payloads: Sequence[Payload]) -> list[Message]:
    """Return what payloads say, with nothing repaired."""
    found = []
    for data in payloads:
        match data:
            case User():
                found.append(Message("user", data.content))
            case Context():
                found.append(Message("system" if data.role == "system" else "user", data.content))
            case Assistant():
                found.append(Message("assistant", data.content))
            case ToolResult():
                found.append(Message("tool", data.content, data.call_id, data.name, data.is_error))
    return found


def emitted(name: str, messages: Sequence[Message]):
    """Return the array that export gives, as values."""
    return msgspec.json.decode(FORMATS[name].encoder(load).array(messages))


ENDPOINT, MODEL = "https://one", "model"
TARGETS = {name: Target(ENDPOINT, one.api, MODEL) for name, one in FORMATS.items()}

IDS = st.sampled_from(
    ["a", "b", "c_1a2b3c4d_0", "c_1a2b3c4d_1", "call|1", "call_1", "", "x" * 90, "x" * 91, "é"]
)
NAMES = st.sampled_from(["bash", "read", "read file", "", "n" * 80, "functions.bash"])
TEXTS = st.sampled_from(["", " ", "\n", "words", "more words ", "é\u2028", "\ud83d", '{"a":1}'])
FILE_BLOCKS = st.sampled_from(
    [
        Image(blob=blob(b"\x89PNG"), mime="image/png"),
        Image(blob=blob(b"\x89PNG"), mime="image/bmp"),
        Image(blob=LOST, mime="image/png"),
        Document(blob=blob(b"%PDF-1.7"), mime="application/pdf", name="a.pdf"),
        Document(blob=blob(b"plain words"), mime="text/plain"),
        Document(blob=blob(b" "), mime="text/plain"),
        Audio(blob=blob(b"RIFFsound"), mime="audio/wav"),
        Audio(blob=blob(b"RIFFsound"), mime="audio/ogg"),
    ]
)
WORDS = TEXTS.map(lambda text: Text(text=text))
CONTENTS = st.lists(
    WORDS | WORDS | FILE_BLOCKS | st.just(Unknown(raw=raw({"type": "?"}))), max_size=3
).map(tuple)
ARGUMENTS = st.sampled_from(
    [
        {"args": Raw(b"{}")},
        {"args": Raw(b'{"path": "a","n":1.50}')},
        {"args_text": '{"path": "a'},
        {"args_text": "*** Begin Patch"},
        {"args_text": ""},
        {"args_text": "[1]"},
        {},
    ]
)

OWN = {
    "anthropic": [
        Thinking("hm", wire=raw({"signature": "c2ln"})),
        Thinking("", wire=raw({"signature": "c2ln"})),
        Thinking("", redacted=True, wire=raw({"data": "ZGF0YQ"})),
        Text("cited", wire=raw({"citations": [{"type": "char_location"}]})),
        Opaque(raw=raw({"type": "server_tool_use", "id": "srv_1", "name": "web", "input": {}})),
    ],
    "openai-chat": [
        Thinking("hm", wire=raw({"field": "reasoning"})),
        Thinking("", wire=raw({"field": "reasoning_content"})),
        Thinking("", wire=raw({"details": [{"type": "reasoning.encrypted", "data": "x"}]})),
        Text("No.", wire=raw({"refusal": True})),
    ],
    "openai-responses": [
        Thinking(
            "hm",
            wire=raw({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}),
        ),
        Thinking("", wire=raw({"type": "reasoning", "summary": [], "encrypted_content": None})),
        Text("said", wire=raw({"id": "msg_1", "phase": "commentary"})),
        Text("said", wire=raw({"id": "msg_1_"})),
        Text("No.", wire=raw({"id": "msg_1", "type": "refusal"})),
        Opaque(raw=raw({"type": "web_search_call", "id": "ws_1", "status": "completed"})),
    ],
    "gemini": [
        Thinking("hm", wire=raw({"thought": True})),
        Thinking("hm", wire=raw({"thoughtSignature": "c2ln"})),
        Text("signed", wire=raw({"thoughtSignature": "c2ln"})),
        Opaque(raw=raw({"text": "", "thoughtSignature": "c2ln"})),
        Opaque(raw=raw({"executableCode": {"code": "1", "language": "PYTHON"}})),
    ],
}
CALL_WIRE = {
    "anthropic": [{"id": "toolu_1"}, {"id": "toolu_1", "caller": {"type": "direct"}}],
    "openai-chat": [{"id": "call_1"}, {"id": "call_2", "details": [{"id": "call_2"}]}],
    "openai-responses": [
        {"id": "fc_1", "call_id": "call_1"},
        {"id": "f" * 70, "call_id": "call_2"},
        {"call_id": "call_1", "type": "custom_tool_call"},
    ],
    "gemini": [{"thoughtSignature": "c2ln"}, {"id": "1", "thoughtSignature": "c2ln"}],
}


APIS = st.sampled_from(sorted(FORMATS))
STOP_REASONS = st.sampled_from(["stop", "stop", "tool_calls", "length", "aborted", "error"])


@cache
def _blocks_of(name: str) -> st.SearchStrategy[list]:
    own = st.sampled_from(OWN[name])
    wires = st.none() | st.sampled_from(CALL_WIRE[name])
    calls = st.builds(_call, IDS, NAMES, ARGUMENTS, wires)
    unsigned = st.sampled_from([Thinking("unsigned"), Thinking("")])
    return st.lists(calls | calls | WORDS | own | unsigned | FILE_BLOCKS, max_size=5)


@st.composite
def answers(draw, name: str) -> Assistant:
    """Return an answer of one provider, or of another model whose blocks nobody else can read."""
    foreign = draw(st.booleans())
    name = draw(APIS) if foreign else name
    blocks = draw(_blocks_of(name))
    stop = draw(STOP_REASONS)
    return Assistant(
        tuple(blocks),
        api=FORMATS[name].api,
        endpoint=ENDPOINT,
        model="another" if foreign else MODEL,
        stop_reason=stop,
    )


def _call(call_id, name, arguments, wire) -> ToolCall:
    kept = {"wire": raw(wire)} if wire else {}
    return ToolCall(id=call_id, name=name, **arguments, **kept)


# A strategy is cached: what it may draw is worked out once, not for each example.
@cache
def histories(name: str, size: int = 12) -> st.SearchStrategy[list[Payload]]:
    """Return histories with orphans, duplicates, late results, repeated ids and stopped turns."""
    events = st.one_of(
        st.builds(User, CONTENTS),
        st.builds(
            lambda role, content: Context(role, "steering", content),
            st.sampled_from(["user", "system"]),
            CONTENTS,
        ),
        answers(name),
        answers(name),
        st.builds(ToolResult, IDS, NAMES, CONTENTS, st.booleans()),
        st.builds(ToolResult, IDS, NAMES, CONTENTS, st.booleans()),
        st.builds(lambda call: ToolStart(call, "bash"), IDS),
        st.just(Error("Aborted", "stopped by the user")),
    )
    return st.lists(events, max_size=size)
