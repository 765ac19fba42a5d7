"""JSON that has not ended yet: what of it is already there.

Nothing half is made up: an open string is kept as far as it goes, an open key, number sign or
literal is left out. Nothing raises, whatever the text.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class Parsed(NamedTuple):
    """What a text holds: a whole document, the beginning of one, or none at all."""

    state: Literal["ok", "partial", "error"]
    value: Any
    """`{}` while there is nothing, and for an error."""


def parse(text: str) -> Parsed:
    """Return the value so far; no text at all is the beginning of an object."""
    if not text.strip():
        return Parsed("partial", {})
    try:
        return Parsed("ok", msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _beginning(text)


def accumulate(buffer: str, chunk: str) -> tuple[str, dict[str, Any]]:
    """Return the grown buffer and the object that is there so far."""
    grown = buffer + chunk
    return grown, arguments(grown)


def arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a tool call so far; `{}` where they are no object."""
    value = parse(text).value
    return value if isinstance(value, dict) else {}


def _beginning(text: str) -> Parsed:
    reader = _reader()
    if reader is None:
        return Parsed("partial", {})
    try:
        return Parsed("partial", reader(text.encode(), partial_mode="trailing-strings"))
    except (ValueError, RecursionError):
        return Parsed("error", {})


@cache
def _reader() -> Callable[..., Any] | None:
    """Return jiter's reader, which comes with the providers' packages; None where it is not."""
    try:
        return cast("Callable[..., Any]", import_module("jiter").from_json)
    except ImportError:
        return None
