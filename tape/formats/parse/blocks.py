"""Pieces that all message arrays share, read into blocks: texts, arguments, base64 files; pure."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ...blocks import NO_JSON, Audio, Document, Image, Opaque, Text, ToolCall, Unknown
from ...entries import Context, Custom
from ...payload import BLOB_KEY, JSON_ERRORS
from ..wire import (
    KEY_API,
    KEY_FORM,
    KEY_MESSAGE,
    KEY_OUTER,
    KEY_STRANGE,
    KEY_TEXT,
    WireObject,
    decode_json,
    drop_fields,
    encode_json,
    pack_raw,
    unpack_raw,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...blocks import Block, Content
    from ..wire import Put

_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),(.*)", re.DOTALL)


def decode_elements(array: bytes | str | Sequence[Any]) -> list[Any]:
    """Return an array's elements as well-formed JSON values; raise ValueError when it is none."""
    value = decode_json(array if isinstance(array, bytes | str) else encode_json(list(array)))
    if not isinstance(value, list):
        raise ValueError("not an array: a JSON array of messages is expected")  # noqa: TRY004
    return value


def list_content(content: Any) -> list[Any] | None:
    """Return content as a list: null is nothing, a string is one piece; None for anything else."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content] if content else []
    if isinstance(content, dict) and "type" in content:  # one piece without its list
        return [content]
    return content if isinstance(content, list) else None


def list_result_content(content: Any) -> list[Any]:
    """Return what a tool answered as a list; what is no content at all is said as JSON."""
    pieces = list_content(content)
    return [to_plain_text(content)] if pieces is None else pieces


def take_string(fields: WireObject, name: str) -> str | None:
    """Take a string out of the fields; what is none stays there."""
    value = fields.get(name)
    if not isinstance(value, str):
        return None
    del fields[name]
    return value


def build_wire(fields: WireObject) -> Raw:
    """Return fields as a block's `wire`; nothing when there are none."""
    strange = {name: part for name, part in fields.items() if name.startswith("$")}
    kept = {**drop_fields(fields, *strange), KEY_STRANGE: strange} if strange else fields
    return pack_raw(kept) if kept else NO_JSON


def to_opaque(value: Any) -> Opaque:
    """Return a provider's own piece as it came."""
    return Opaque(raw=pack_raw(value))


def to_opaque_or_unknown(value: Any, known: frozenset[str]) -> Opaque | Unknown:
    """Return a piece no other block can hold: opaque, so that its provider gets it back.

    What is malformed, no object or of a `known` type after all, is kept but never sent.
    """
    if isinstance(value, dict) and str(value.get("type")) not in known:
        return to_opaque(value)
    return Unknown(raw=pack_raw(value))


def keep_whole_message(content: Iterable[Block], element: WireObject, api: str) -> Content:
    """Return content, or the whole element where content says nothing, so that it is kept."""
    blocks = tuple(content)
    if all(isinstance(block, Text) and not block.text.strip() for block in blocks):
        return mark_api((to_opaque({KEY_MESSAGE: element}),), api)
    return blocks


def to_custom_entry(api: str, element: Any) -> Custom:
    """Return the entry for an element that is no message."""
    return Custom(api, pack_raw(element))


def to_system_entry(content: Content) -> Context:
    """Return the entry for a system message."""
    return Context("system", "system", content)


def to_plain_text(value: Any) -> str:
    """Return a string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else encode_json(value).decode()


def build_tool_call(call_id: str, name: Any, given: Any, fields: WireObject) -> ToolCall:
    """Return a call; `given` are its arguments as an object, or as the text a model wrote."""
    text = to_plain_text({} if given is None else given)
    if not text.strip():
        text = "{}"
    kept = build_wire(fields)
    if not _is_plain_object(text):
        return ToolCall(id=call_id, name=to_plain_text(name), args_text=text, wire=kept)
    args = Raw(text.encode())
    if given == text and msgspec.json.format(args, indent=-1) != bytes(args):
        kept = pack_raw(
            {**unpack_raw(kept), KEY_TEXT: text}
        )  # a tape keeps the object without its blanks
    return ToolCall(id=call_id, name=to_plain_text(name), args=args, wire=kept)


def _is_plain_object(text: str) -> bool:
    try:
        value = decode_json(text)
    except JSON_ERRORS:
        return False
    return isinstance(value, dict) and BLOB_KEY not in encode_json(value)


def to_file_block(
    data: Any, mime: Any, put: Put, fields: WireObject, name: str | None = None
) -> Image | Audio | Document | None:
    """Return a file that stands in an array as base64; None when it does not."""
    if not isinstance(data, str) or not isinstance(mime, str):
        return None
    try:
        blob = put(b64decode(data, validate=True))
    except (NotBase64, ValueError):
        return None
    kept = build_wire(fields)
    match mime.partition("/")[0]:
        case "image":
            return Image(blob=blob, mime=mime, wire=kept)
        case "audio":
            return Audio(blob=blob, mime=mime, wire=kept)
        case _:
            return Document(blob=blob, mime=mime, name=name, wire=kept)


def to_file_block_from_url(
    url: Any, put: Put, fields: WireObject, name: str | None = None
) -> Image | Audio | Document | None:
    """Return a file that stands in an array as a data URL; None when it does not."""
    found = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if found is None or found[2] != ";base64":
        return None
    return to_file_block(found[3], found[1], put, fields, name)


def add_outer_fields(content: Iterable[Block], fields: WireObject, form: str = "") -> Content:
    """Return content that carries the fields that stood beside it, on an empty text if need be.

    `form` is the word for the way it was written, empty for the usual one.
    """
    blocks = tuple(content)
    beside: WireObject = {KEY_OUTER: fields} if fields else {}
    if form:
        beside[KEY_FORM] = form
    if not beside:
        return blocks
    first, *rest = blocks or (Text(""),)
    return (replace(first, wire=pack_raw({**unpack_raw(first.wire), **beside})), *rest)


def get_content_form(holder: WireObject, key: str = "content") -> str:
    """Return the word for the way content is written: list, string, null or absent."""
    match holder.get(key, holder):
        case str():
            return "string"
        case list():
            return "list"
        case None:
            return "null"
    return "absent"


def mark_api(content: Content, api: str) -> Content:
    """Return content no model wrote, with the API's name on what only that API can read."""
    return tuple(
        replace(block, wire=pack_raw({**unpack_raw(block.wire), KEY_API: api}))
        if block.wire != NO_JSON or isinstance(block, Opaque)
        else block
        for block in content
    )
