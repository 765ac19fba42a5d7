"""The JSON of a call, put together from fields and from messages that are JSON already: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tape.blocks import NO_JSON
from tape.formats.wire import encode_json

if TYPE_CHECKING:
    from ..presets import Preset
    from ..types import Request
    from .json_values import WireObject


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
    given = request.options
    return {} if given == NO_JSON else msgspec.json.decode(given, type=dict[str, Any])
