"""Message arrays of the Anthropic Messages API, written from our messages: pure.

Rules of that API kept here: user and assistant alternate; all results of a batch stand first in
the one user message after their calls; no empty text; ids of [a-zA-Z0-9_-] up to 64; thinking goes
back only with its signature. Call ids on the wire are ours, so calls and results always match.
"""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from ..blocks import (
    NO_JSON,
    Audio,
    Block,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Unknown,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Raw

    from ..view import Message

WireObject = dict[str, Any]
"""A JSON object in the API's own form."""

_LONGEST_ID = 64
_DIGEST = 12


def messages(messages: Iterable[Message]) -> list[WireObject]:
    """Return the array for repaired `messages`; those of role system are left to `system_text`.

    `wire` data is taken to come from this API, as repair drops any other.
    """
    spoken = (
        (_role(message), _content(message)) for message in messages if message.role != "system"
    )
    full = (turn for turn in spoken if turn[1])
    merged = groupby(full, key=itemgetter(0))
    return _without_trailing_blank(
        [{"role": role, "content": _results_first(turns)} for role, turns in merged]
    )


def system_text(system: str, messages: Iterable[Message]) -> str:
    """Return `system` and the texts of the system messages, which the API takes in one place."""
    later = (text_of(message.content) for message in messages if message.role == "system")
    return "\n\n".join(text for text in (system, *later) if text.strip())


def wire_id(call_id: str) -> str:
    """Return a call id the API accepts; ids of ours and of most others stay as they are."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)
    if len(plain) <= _LONGEST_ID:
        return plain
    digest = sha256(call_id.encode()).hexdigest()[:_DIGEST]
    return f"{plain[: _LONGEST_ID - _DIGEST - 1]}_{digest}"


def _role(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _content(message: Message) -> list[WireObject]:
    return [_result(message)] if message.role == "tool" else _blocks(message.content)


def _results_first(turns: Iterable[tuple[str, list[WireObject]]]) -> list[WireObject]:
    blocks = [block for _, content in turns for block in content]
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _result(message: Message) -> WireObject:
    assert message.call_id is not None, "a tool message answers a call"
    result: WireObject = {"type": "tool_result", "tool_use_id": wire_id(message.call_id)}
    if content := _blocks(message.content):
        result["content"] = content
    if message.is_error:
        result["is_error"] = True
    return result


def _blocks(content: Iterable[Block]) -> list[WireObject]:
    return [wire for block in content if (wire := _block(block)) is not None]


def _block(block: Block) -> WireObject | None:
    match block:
        case Text():
            return _text(block)
        case Thinking():
            return _thinking(block)
        case ToolCall():
            return _tool_use(block)
        case Opaque():
            return _decoded(block.raw)
        case Image() | Document() | Audio():
            return {"type": "text", "text": f"({block.mime} of {block.blob.bytes} bytes: not sent)"}
        case Unknown():
            return None
    assert_never(block)


def _text(block: Text) -> WireObject | None:
    if not block.text.strip():
        return None
    return {"type": "text", "text": block.text, **_decoded(block.wire)}


def _thinking(block: Thinking) -> WireObject | None:
    """Return a thinking block as it came; None without the signature that vouches for it."""
    wire = _decoded(block.wire)
    if block.redacted:
        return {"type": "redacted_thinking", **wire} if "data" in wire else None
    return {"type": "thinking", "thinking": block.text, **wire} if "signature" in wire else None


def _tool_use(call: ToolCall) -> WireObject:
    return {
        **_decoded(call.wire),
        "type": "tool_use",
        "id": wire_id(call.id),
        "name": call.name,
        "input": _input(call),
    }


def _input(call: ToolCall) -> WireObject:
    """Return the arguments as the object the API insists on, whatever the model wrote."""
    if call.args_text is None:
        return _decoded(call.args)
    try:
        written = msgspec.json.decode(call.args_text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        written = None
    return written if isinstance(written, dict) else {"text": call.args_text}


def _decoded(raw: Raw) -> WireObject:
    return {} if raw == NO_JSON else msgspec.json.decode(raw, type=WireObject)


def _without_trailing_blank(turns: list[WireObject]) -> list[WireObject]:
    """Return the turns with no blank at the end of a last answer's text, which is refused."""
    if not turns or turns[-1]["role"] != "assistant" or turns[-1]["content"][-1]["type"] != "text":
        return turns
    *before, last = turns[-1]["content"]
    last = {**last, "text": last["text"].rstrip()}
    return [*turns[:-1], {"role": "assistant", "content": [*before, last]}]
