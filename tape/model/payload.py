"""A payload and its JSON: encoding and decoding of an entry's data (tape.md §2, §3).

Raw JSON is not changed; a lone surrogate becomes U+FFFD, the key `$blob` is reserved for the store.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from ..errors import InvalidEntry
from ..text import replace_surrogates
from .entries import (
    NO_JSON,
    PAYLOADS,
    Audio,
    BlobRef,
    Block,
    Document,
    Image,
    Payload,
    Text,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

BLOB_KEY = b'"$blob"'
"""The key of a reference to a payload in a blob."""
READ_BYTES = 5 * 1024 * 1024
"""Most bytes of a tool's full output that is loaded together with its entry."""
JSON_ERRORS = (ValueError, RecursionError)
"""Errors for bytes that are not JSON, not UTF-8, of another shape, or nested too deep."""

_BLOB_REF = re.compile(
    rb'\{"\$blob":"([0-9a-f]{64})","bytes":([0-9]{1,18}),"head":("(?:[^"\\]++|\\.)*+")\}', re.DOTALL
)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_MEDIA = frozenset({"image", "document", "audio"})
_HOLD_BLOBS = frozenset({"mode", "checkpoint"})  # their payloads have typed blob fields
_BLOCK: msgspec.json.Decoder[Block] = msgspec.json.Decoder(Block)


class Unread(Payload, frozen=True, gc=False):
    """Data kept as raw JSON: of an unknown type, of an unexpected shape, or redacted."""

    entry_type: ClassVar[str] = "?"
    type: str
    raw: Raw
    why: str


def encode_payload(payload: Payload) -> bytes:
    """Return a payload as the compact JSON of its line; lone surrogates become U+FFFD.

    Raises InvalidEntry if a raw field is not JSON, or has the reserved key `$blob`.
    """
    return normalize_payload(payload)[0]


def normalize_payload(payload: Payload) -> tuple[bytes, Payload]:
    """Return a payload as compact JSON, and the payload decoded from that; see `encode_payload`."""
    try:
        data = msgspec.json.encode(payload)
    except UnicodeEncodeError:
        payload = _normalize_strings(payload)
        data = msgspec.json.encode(payload)
    raws = _collect_raw_fields(payload)
    if all(map(_is_compact_json, raws)):  # JSON outside raw fields always is compact
        return data, payload
    data = _compact_json(payload, data)
    if any(BLOB_KEY in raw for raw in map(bytes, raws)):
        _refuse_blob_keys(msgspec.json.decode(data))
    return data, msgspec.json.decode(data, type=type(payload))


def _collect_raw_fields(payload: Payload) -> list[Raw]:
    """Return the raw fields, including those of content blocks and of an anchor's state."""
    found = _collect_struct_raws(payload)
    for block in getattr(payload, "content", ()):
        if type(block) is not Text:
            found += _collect_struct_raws(block)
        elif block.wire is not NO_JSON:  # nearly all blocks are plain text
            found.append(block.wire)
    state = getattr(payload, "state", None)
    return found + _collect_struct_raws(state) if state is not None else found


def _collect_struct_raws(part: Struct) -> list[Raw]:
    return [
        raw
        for name, absent in list_raw_fields(type(part))
        if (raw := getattr(part, name)) is not absent
    ]


@cache
def list_raw_fields(kind: type[Struct]) -> tuple[tuple[str, object], ...]:
    """Return the name and the default of each field that holds raw JSON."""
    return tuple((field.name, field.default) for field in fields(kind) if field.type is Raw)


def _is_compact_json(raw: Raw) -> bool:
    """Return whether raw JSON can be written as it is: no blanks, nothing to refuse or replace."""
    data = bytes(raw)
    if b"\\u" in data or BLOB_KEY in data:
        return False
    try:
        return msgspec.json.format(data, indent=-1) == data and bool(data.decode())
    except JSON_ERRORS:
        return False


def _compact_json(payload: Payload, data: bytes) -> bytes:
    """Return JSON without blanks and lone surrogates in its raw fields."""
    if b"\\ud" in data or b"\\uD" in data:
        data = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
    try:
        data = msgspec.json.format(data, indent=-1)
        data.decode()
    except JSON_ERRORS as error:
        raise InvalidEntry(f"a raw field of {payload.entry_type} is not JSON: {error}") from error
    return data


def _refuse_blob_keys(data: dict[str, Any]) -> None:
    """Raise InvalidEntry for a `$blob` key outside a picture or a file."""
    for block in data.get("content", ()):
        if block["type"] in _MEDIA:
            del block["blob"]
    if isinstance(data.get("full"), dict):  # a typed field: only a reference is encoded like this
        del data["full"]
    if _has_blob_key(data):
        raise InvalidEntry("the key $blob is the store's own and may not be written")


def _has_blob_key(value: Any) -> bool:
    if isinstance(value, dict):
        return "$blob" in value or any(map(_has_blob_key, value.values()))
    return isinstance(value, list) and any(map(_has_blob_key, value))


def _normalize_strings(value: Any) -> Any:
    match value:
        case str():
            return replace_surrogates(value)
        case Struct():
            parts = {
                name: _normalize_strings(getattr(value, name)) for name in value.__struct_fields__
            }
            return type(value)(**parts)
        case tuple():
            return tuple(map(_normalize_strings, value))
        case _:
            return value


def describe_missing_blob(ref: BlobRef) -> str:
    """Return the placeholder for a payload whose blob is missing."""
    return f"{ref.head}\n[{ref.bytes} bytes in all; blob {ref.hash[:16]} is missing]"


def decode_payload(kind: str, raw: Raw, expand: Callable[[BlobRef], str]) -> Payload:
    """Return the payload of data; data that cannot be decoded is kept raw, with the reason."""
    payload = PAYLOADS.get(kind)
    if payload is None:
        return Unread(kind, raw, "unknown type")
    try:
        members = msgspec.json.decode(raw, type=dict[str, Raw] | None)
        if members is None:
            return Unread(kind, raw, "redacted")
        return msgspec.json.decode(_inline_blobs(kind, members, expand), type=payload)
    except msgspec.ValidationError as error:
        return Unread(kind, raw, f"unexpected shape: {error}")


def _inline_blobs(kind: str, members: dict[str, Raw], expand: Callable[[BlobRef], str]) -> bytes:
    """Return data with blob references replaced by their texts; all else is unchanged."""
    content = members.pop("content", None)
    if kind not in _HOLD_BLOBS:
        members = {
            key: value if key == "full" and _is_long_blob(value) else _expand_blobs(value, expand)
            for key, value in members.items()
        }
    if content is not None:
        members["content"] = Raw(msgspec.json.encode(_expand_content(content, expand)))
    return msgspec.json.encode(members)


def _is_long_blob(raw: Raw) -> bool:
    """Return whether this names a blob that is too long to be loaded with its entry."""
    found = _BLOB_REF.fullmatch(raw)
    return found is not None and int(found[2]) > READ_BYTES


def _expand_blobs(raw: Raw, expand: Callable[[BlobRef], str]) -> Raw:
    data = bytes(raw)
    if BLOB_KEY not in data:
        return raw

    def text(found: re.Match[bytes]) -> bytes:
        ref = BlobRef(found[1].decode(), int(found[2]), msgspec.json.decode(found[3]))
        return msgspec.json.encode(expand(ref))

    return Raw(_BLOB_REF.sub(text, data))


def _expand_content(content: Raw, expand: Callable[[BlobRef], str]) -> list[Raw]:
    """Return content as a list of known blocks: a bare string is text, null is nothing."""
    if bytes(content).startswith(b"{"):
        content = _expand_blobs(content, expand)
    found = msgspec.json.decode(content, type=list[Raw] | str | None)
    if isinstance(found, str):
        return [Raw(msgspec.json.encode(Text(text=found)))]
    return [_expand_block(raw, expand) for raw in found or ()]


def _expand_block(raw: Raw, expand: Callable[[BlobRef], str]) -> Raw:
    if isinstance(_decode_known_block(raw), Image | Document | Audio):
        return raw
    whole = _expand_blobs(raw, expand)
    if _decode_known_block(whole) is None:
        return Raw(msgspec.json.encode(Unknown(raw=raw)))
    return whole


def _decode_known_block(raw: Raw) -> Block | None:
    try:
        return _BLOCK.decode(raw)
    except msgspec.ValidationError:
        return None
