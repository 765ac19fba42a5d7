"""Parses incomplete JSON: returns the part that is already there.

Nothing is invented: an open string is kept so far, an open key, number sign or literal is left
out. No text raises an error.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec


class PartialJson(NamedTuple):
    """What a text holds: a whole document, the beginning of one, or none at all."""

    state: Literal["ok", "partial", "error"]
    value: Any
    """`{}` while there is nothing, and for an error."""


def parse_partial_json(text: str) -> PartialJson:
    """Return the value so far; no text at all is an empty object, as a call without arguments."""
    if not text.strip():
        return PartialJson("ok", {})
    try:
        return PartialJson("ok", msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass  # it has not ended yet, or is no JSON
    from jiter import from_json  # only for what has not ended yet

    try:
        return PartialJson("partial", from_json(text.encode(), partial_mode="trailing-strings"))
    except (ValueError, RecursionError):
        return PartialJson("error", {})


def accumulate_json(buffer: str, chunk: str) -> tuple[str, dict[str, Any]]:
    """Return the grown buffer and the object that is there so far."""
    grown = buffer + chunk
    return grown, parse_partial_arguments(grown)


def parse_partial_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a tool call so far; `{}` where they are no object."""
    value = parse_partial_json(text).value
    return value if isinstance(value, dict) else {}
