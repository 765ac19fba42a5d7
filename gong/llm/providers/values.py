"""Values of a foreign JSON object, read without trust: pure."""

from __future__ import annotations

from typing import Any

WireObject = dict[str, Any]
"""A JSON object in an API's own form."""


def wire_object(value: Any) -> WireObject:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def wire_objects(value: Any, kind: str) -> list[WireObject]:
    """Return the objects of an array; a text in its place, or in it, is one of this type."""
    given = value if isinstance(value, list) else [value]
    texts = ({"type": kind, "text": one} if isinstance(one, str) else one for one in given)
    return [one for one in texts if isinstance(one, dict)]


def words(value: Any) -> str:
    """Return a text, an empty one for null; raise TypeError for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {type(value).__name__}")
    return value
