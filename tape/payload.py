"""A payload and its JSON: what an entry's data says, and what may stand there (tape.md §2, §3).

Raw JSON goes through as it came; a lone surrogate becomes U+FFFD, a key `$blob` is the store's own.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from .blocks import NO_JSON, Audio, BlobRef, Block, Document, Image, Text, Unknown
from .entries import PAYLOADS, Payload
from .errors import InvalidEntry
from .text import well_formed

if TYPE_CHECKING:
    from collections.abc import Callable

BLOB = b'"$blob"'
"""The key that says a payload stands in a blob."""
READ_BYTES = 5 * 1024 * 1024
"""What a tool said is read together with its entry when it is no longer."""
UNREADABLE = (ValueError, RecursionError)
"""Raised by what is not JSON, not UTF-8, of another shape, or nested too deep."""

_BLOB_REF = re.compile(
    rb'\{"\$blob":"([0-9a-f]{64})","bytes":([0-9]{1,18}),"head":("(?:[^"\\]++|\\.)*+")\}', re.DOTALL
)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_MEDIA = frozenset({"image", "document", "audio"})
_HOLD_BLOBS = frozenset({"mode", "checkpoint"})  # their payloads name blobs in fields of their own
_BLOCK: msgspec.json.Decoder[Block] = msgspec.json.Decoder(Block)


class Unread(Payload, frozen=True, gc=False):
    """Data kept as raw JSON: of an unknown type, of an unexpected shape, or redacted."""

    entry_type: ClassVar[str] = "?"
    type: str
    raw: Raw
    why: str


def encode_payload(payload: Payload) -> bytes:
    """Return a payload as the compact JSON that stands in a line; lone surrogates become U+FFFD.

    Raises InvalidEntry when a raw field is not JSON, or names a blob the way only the store may.
    """
    return as_written(payload)[0]


def as_written(payload: Payload) -> tuple[bytes, Payload]:
    """Return a payload as compact JSON, and as that says it: see `encode_payload`."""
    try:
        data = msgspec.json.encode(payload)
    except UnicodeEncodeError:
        payload = _well_formed(payload)
        data = msgspec.json.encode(payload)
    raws = _raws(payload)
    if all(map(_is_compact, raws)):  # what stands outside raw fields always is
        return data, payload
    data = _compact(payload, data)
    if any(BLOB in raw for raw in map(bytes, raws)):
        _refuse_blobs(msgspec.json.decode(data))
    return data, msgspec.json.decode(data, type=type(payload))


def _raws(payload: Payload) -> list[Raw]:
    """Return what raw fields hold, those of the content's blocks and of an anchor's state too."""
    found = _raws_of(payload)
    for block in getattr(payload, "content", ()):
        if type(block) is not Text:
            found += _raws_of(block)
        elif block.wire is not NO_JSON:  # nearly all blocks are plain words
            found.append(block.wire)
    state = getattr(payload, "state", None)
    return found + _raws_of(state) if state is not None else found


def _raws_of(part: Struct) -> list[Raw]:
    return [
        raw for name, absent in raw_fields(type(part)) if (raw := getattr(part, name)) is not absent
    ]


@cache
def raw_fields(kind: type[Struct]) -> tuple[tuple[str, object], ...]:
    """Return the name and the default of each field that holds raw JSON."""
    return tuple((field.name, field.default) for field in fields(kind) if field.type is Raw)


def _is_compact(raw: Raw) -> bool:
    """Tell whether raw JSON stands in a line as it is: no blanks, nothing to refuse or replace."""
    data = bytes(raw)
    if b"\\u" in data or BLOB in data:
        return False
    try:
        return msgspec.json.format(data, indent=-1) == data and bool(data.decode())
    except UNREADABLE:
        return False


def _compact(payload: Payload, data: bytes) -> bytes:
    """Return JSON whose raw fields are anything without blanks and lone surrogates."""
    if b"\\ud" in data or b"\\uD" in data:
        data = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
    try:
        data = msgspec.json.format(data, indent=-1)
        data.decode()
    except UNREADABLE as error:
        raise InvalidEntry(f"a raw field of {payload.entry_type} is not JSON: {error}") from error
    return data


def _refuse_blobs(data: dict[str, Any]) -> None:
    """Raise InvalidEntry for a `$blob` key that is not a picture's or a file's."""
    for block in data.get("content", ()):
        if block["type"] in _MEDIA:
            del block["blob"]
    if isinstance(data.get("full"), dict):  # typed: only a reference is written so
        del data["full"]
    if _names_blob(data):
        raise InvalidEntry("the key $blob is the store's own and may not be written")


def _names_blob(value: Any) -> bool:
    if isinstance(value, dict):
        return "$blob" in value or any(map(_names_blob, value.values()))
    return isinstance(value, list) and any(map(_names_blob, value))


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return well_formed(value)
        case Struct():
            parts = {name: _well_formed(getattr(value, name)) for name in value.__struct_fields__}
            return type(value)(**parts)
        case tuple():
            return tuple(map(_well_formed, value))
        case _:
            return value


def missing_blob(ref: BlobRef) -> str:
    """Return what stands for a payload whose blob is not there."""
    return f"{ref.head}\n[{ref.bytes} bytes in all; blob {ref.hash[:16]} is missing]"


def read_data(kind: str, raw: Raw, expand: Callable[[BlobRef], str]) -> Payload:
    """Read data as far as it can be understood; what cannot is kept raw, with the reason."""
    payload = PAYLOADS.get(kind)
    if payload is None:
        return Unread(kind, raw, "unknown type")
    try:
        members = msgspec.json.decode(raw, type=dict[str, Raw] | None)
        if members is None:
            return Unread(kind, raw, "redacted")
        return msgspec.json.decode(_whole(kind, members, expand), type=payload)
    except msgspec.ValidationError as error:
        return Unread(kind, raw, f"unexpected shape: {error}")


def _whole(kind: str, members: dict[str, Raw], expand: Callable[[BlobRef], str]) -> bytes:
    """Return data with texts in the place of their blobs; all else stays as it was written."""
    content = members.pop("content", None)
    if kind not in _HOLD_BLOBS:
        members = {
            key: value if key == "full" and _is_huge(value) else _expanded(value, expand)
            for key, value in members.items()
        }
    if content is not None:
        members["content"] = Raw(msgspec.json.encode(_blocks(content, expand)))
    return msgspec.json.encode(members)


def _is_huge(raw: Raw) -> bool:
    """Tell whether this names a blob that is too long to be read with its entry."""
    found = _BLOB_REF.fullmatch(raw)
    return found is not None and int(found[2]) > READ_BYTES


def _expanded(raw: Raw, expand: Callable[[BlobRef], str]) -> Raw:
    data = bytes(raw)
    if BLOB not in data:
        return raw

    def text(found: re.Match[bytes]) -> bytes:
        ref = BlobRef(found[1].decode(), int(found[2]), msgspec.json.decode(found[3]))
        return msgspec.json.encode(expand(ref))

    return Raw(_BLOB_REF.sub(text, data))


def _blocks(content: Raw, expand: Callable[[BlobRef], str]) -> list[Raw]:
    """Return content as a list of known blocks: a bare string is text, null is nothing."""
    if bytes(content).startswith(b"{"):
        content = _expanded(content, expand)
    found = msgspec.json.decode(content, type=list[Raw] | str | None)
    if isinstance(found, str):
        return [Raw(msgspec.json.encode(Text(text=found)))]
    return [_block(raw, expand) for raw in found or ()]


def _block(raw: Raw, expand: Callable[[BlobRef], str]) -> Raw:
    if isinstance(_known(raw), Image | Document | Audio):
        return raw
    whole = _expanded(raw, expand)
    if _known(whole) is None:
        return Raw(msgspec.json.encode(Unknown(raw=raw)))
    return whole


def _known(raw: Raw) -> Block | None:
    try:
        return _BLOCK.decode(raw)
    except msgspec.ValidationError:
        return None
