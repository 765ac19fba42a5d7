"""Values of a foreign JSON object, read without trust: pure."""

from __future__ import annotations

from typing import Any

WireObject = dict[str, Any]
"""A JSON object in an API's own form."""


def wire_object(value: Any) -> WireObject:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def words(value: Any) -> str:
    """Return a text, an empty one for null; raise TypeError for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {value!r}")
    return value
