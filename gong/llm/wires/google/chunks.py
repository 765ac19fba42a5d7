"""The shapes of the Gemini stream's chunks, as far as they are read; pure.

Parts stay raw: what one is shows only in its fields, and arguments are kept as they were written.
The Gemini API sends arguments whole; other hosts of its wire may send them bit by bit, each with
the JSON path of its place. `{"jsonPath": "$.edits[0].text", "stringValue": "a", "willContinue":
true}` and then the same path with "b" give `{"edits": [{"text": "ab"}]}`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Raw, Struct

from tape.formats.wire import decode_json, encode_json

from ..json_values import WireObject


class GeminiContent(Struct, frozen=True):
    """The content of a candidate."""

    parts: list[Raw] | None = None


class GeminiCandidate(Struct, frozen=True, rename="camel"):
    """One of the answers."""

    content: GeminiContent | None = None
    finish_reason: str | None = None
    grounding_metadata: WireObject | None = None
    """What the provider found on the web."""
    index: int | None = None


class PromptFeedback(Struct, frozen=True, rename="camel"):
    """The feedback on a refused prompt."""

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
    except (msgspec.DecodeError, UnicodeError):  # usually half a surrogate pair
        return _CHUNK.decode(encode_json(decode_json(data)))


def decode_fields(part: Raw) -> WireObject:
    """Return the fields of a part that are there; null and false are as good as none."""
    fields = _PART.decode(part) or {}
    return {
        name: value for name, value in fields.items() if value is not None and value is not False
    }


def decode_function(part: Raw) -> GeminiFunctionCall:
    """Return the function that a part calls; raises ValueError when it calls none."""
    return _CALL.decode(part).function_call


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[(['\"])(.*?)\3\]")
_VALUES = ("stringValue", "numberValue", "boolValue")

_OF_A_VALUE, _OF_A_STEP = 64, 256
"""Bytes that a value, and an object or array around it, take at most."""


class ArgumentPieces:
    """Puts the arguments of one call together."""

    def __init__(self) -> None:
        self.args: WireObject = {}
        self._growing = ""
        """Path of the text that the next piece may continue."""

    def add_piece(self, piece: WireObject) -> int:
        """Put a piece in its place, and return about how many bytes more there are now.

        Raises ValueError or TypeError for one that has no place.
        """
        path = str(piece["jsonPath"])
        value = next((piece[name] for name in _VALUES if piece.get(name) is not None), None)
        steps_found = list(_STEP.finditer(path, 1))
        if not steps_found or "$" + "".join(step[0] for step in steps_found) != path:
            raise ValueError(f"no path: {path!r}")
        steps = [int(step[2]) if step[2] else step[1] or step[4] for step in steps_found]
        inside: Any = self.args
        last = steps[-1]
        for step, following in pairwise(steps):
            if _get_item(inside, step) is None:
                _set_item(inside, step, [] if isinstance(following, int) else {})
            inside = _get_item(inside, step)
        size = _OF_A_VALUE + (len(value) if isinstance(value, str) else 0)
        if path == self._growing:
            value = _get_item(inside, last) + (value or "")
        else:
            size += _OF_A_STEP * len(steps)
        _set_item(inside, last, value)
        self._growing = path if piece.get("willContinue") else ""
        return size


def _get_item(inside: Any, step: str | int) -> Any:
    if isinstance(inside, dict):
        return inside.get(step)
    return inside[step] if isinstance(step, int) and step < len(inside) else None


def _set_item(inside: Any, step: str | int, value: Any) -> None:
    """Set a field or an item; a list grows by one item at most."""
    if isinstance(inside, list) and step == len(inside):
        inside.append(value)
    elif isinstance(inside, list) == isinstance(step, int):
        inside[step] = value
    else:
        raise TypeError(f"{step!r} has no place in {inside!r}")
