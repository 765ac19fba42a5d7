"""The shapes of the Gemini stream's chunks, as far as they are read; pure.

Parts stay raw: what one is shows only in its fields, and arguments are kept as they were written.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from tape.formats.wire import decode_json, encode_json

from .json_values import WireObject


class GeminiContent(Struct, frozen=True):
    """What a candidate says."""

    parts: list[Raw] | None = None


class GeminiCandidate(Struct, frozen=True, rename="camel"):
    """One of the answers."""

    content: GeminiContent | None = None
    finish_reason: str | None = None
    index: int | None = None


class PromptFeedback(Struct, frozen=True, rename="camel"):
    """What is said of a prompt that was refused."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class GeminiChunk(Struct, frozen=True, rename="camel"):
    """One event of the stream."""

    candidates: list[GeminiCandidate | None] | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: WireObject | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: Any = None


class GeminiFunctionCall(Struct, frozen=True):
    """The call of a function, its arguments as they were written."""

    name: str
    id: str | None = None
    args: Raw = Raw(b"null")


class _CallPart(Struct, frozen=True, rename="camel"):
    function_call: GeminiFunctionCall


_CHUNK = msgspec.json.Decoder(GeminiChunk)
_PART = msgspec.json.Decoder(WireObject | None)
_CALL = msgspec.json.Decoder(_CallPart)


def decode_chunk(data: bytes) -> GeminiChunk:
    """Return the chunk in an event's data; raises ValueError, for wrong types too."""
    if data == b"null":
        return GeminiChunk()
    try:
        return _CHUNK.decode(data)
    except (msgspec.DecodeError, UnicodeError):  # half a surrogate pair, where it is not worse
        return _CHUNK.decode(encode_json(decode_json(data)))


def decode_fields(part: Raw) -> WireObject:
    """Return the fields of a part that are there; null and false are as good as none."""
    given = _PART.decode(part) or {}
    return {
        name: value for name, value in given.items() if value is not None and value is not False
    }


def decode_function(part: Raw) -> GeminiFunctionCall:
    """Return the function that a part calls; raises ValueError when it calls none."""
    return _CALL.decode(part).function_call
