"""JSON objects of an API: foreign ones read without trust, our own put together; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tape.formats.wire import encode_json
from tape.model.entries import NO_JSON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..models import Preset
    from ..types import Request


_MAX_TOKENS = 10**12
_KIB, _MIB = 1_024, 1_048_576

WireObject = dict[str, Any]
"""A JSON object in an API's own form."""


def parse_count(value: Any) -> int | None:
    """Return a count of tokens; None for what cannot be one, such as -1, true or 2 to the 63."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= _MAX_TOKENS else None


def parse_counts(values: WireObject, names: Iterable[str]) -> dict[str, int]:
    """Return those of the counts with these names that can be counts of tokens."""
    counts = {name: parse_count(values.get(name)) for name in names}
    return {name: number for name, number in counts.items() if number is not None}


_USUAL_SERVICES = frozenset({"", "standard", "default", "auto", "on_demand"})


def parse_service(value: Any) -> str | None:
    """Return the service that a provider names, such as `flex`; None for the usual one."""
    service = value.lower() if isinstance(value, str) else ""
    is_word = service.isascii() and service.replace("_", "").isalpha()
    return service if is_word and service not in _USUAL_SERVICES else None


def read_object(value: Any) -> WireObject:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def read_objects(value: Any, kind: str) -> list[WireObject]:
    """Return the objects of an array; a text in its place, or in it, is one of this type."""
    items = value if isinstance(value, list) else [value]
    texts = ({"type": kind, "text": item} if isinstance(item, str) else item for item in items)
    return [item for item in texts if isinstance(item, dict)]


def read_text(value: Any) -> str:
    """Return a text, an empty one for null; raise TypeError for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {type(value).__name__}")
    return value


def format_size_limit(count: int) -> str:
    """Return a number of bytes for people: 8 MiB, 64 KiB."""
    return f"{count // _MIB:,} MiB" if count >= _MIB else f"{max(count // _KIB, 1)} KiB"


def encode_with_array(fields: WireObject, name: bytes, elements: list[bytes]) -> bytes:
    """Return fields as JSON, with an array after them unless they have one of this name.

    A long history is copied just once: beginning and end go to its outermost elements.
    """
    if name.decode() in fields:
        return encode_json(fields)
    first, *others = elements or [b""]
    before = encode_json(fields)[:-1] + (b"," if fields else b"")
    pieces = [b'%b"%b":[%b' % (before, name, first), *others]
    pieces[-1] += b"]}"
    return b",".join(pieces)


def list_unsent_fields(
    preset: Preset, request: Request, **sent: tuple[bool, str]
) -> tuple[str, ...]:
    """Return a warning for each field of the request that has a value and was not sent.

    `sent` gives for a field's name whether it was, and why it is not.
    """
    return tuple(
        f"{preset.name} was not sent {name}: {why}"
        for name, (is_sent, why) in sent.items()
        if not is_sent and getattr(request, name) not in (None, {})
    )


def parse_options(request: Request) -> WireObject:
    """Return the request's own options; raises MsgspecError if they are not a JSON object."""
    options = request.options
    return {} if options == NO_JSON else msgspec.json.decode(options, type=dict[str, Any])


def take_server_tools(options: WireObject) -> list[WireObject]:
    """Remove the tools that the provider runs itself from options, and return them."""
    tools = options.pop("tools", [])
    return tools if isinstance(tools, list) else []
