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
from ...payload import BLOB, UNREADABLE
from ..wire import (
    API,
    FORM,
    MESSAGE,
    OUTER,
    STRANGE,
    TEXT,
    WireObject,
    decoded,
    encoded,
    packed,
    unpacked,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...blocks import Block, Content
    from ..wire import Put

_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),(.*)", re.DOTALL)


def elements(array: bytes | str | Sequence[Any]) -> list[Any]:
    """Return an array's elements as well-formed JSON values; raise ValueError when it is none."""
    value = decoded(array if isinstance(array, bytes | str) else encoded(list(array)))
    if not isinstance(value, list):
        raise ValueError("not an array: a JSON array of messages is expected")  # noqa: TRY004
    return value


def listed(content: Any) -> list[Any] | None:
    """Return content as a list: null is nothing, a string is one piece; None for anything else."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content] if content else []
    if isinstance(content, dict) and "type" in content:  # one piece without its list
        return [content]
    return content if isinstance(content, list) else None


def answered(content: Any) -> list[Any]:
    """Return what a tool answered as a list; what is no content at all is said as JSON."""
    pieces = listed(content)
    return [words(content)] if pieces is None else pieces


def taken(fields: WireObject, name: str) -> str | None:
    """Take a string out of the fields; what is none stays there."""
    value = fields.get(name)
    if not isinstance(value, str):
        return None
    del fields[name]
    return value


def wire(fields: WireObject) -> Raw:
    """Return fields as a block's `wire`; nothing when there are none."""
    strange = {name: part for name, part in fields.items() if name.startswith("$")}
    kept = {**without(fields, *strange), STRANGE: strange} if strange else fields
    return packed(kept) if kept else NO_JSON


def opaque(value: Any) -> Opaque:
    """Return a provider's own piece as it came."""
    return Opaque(raw=packed(value))


def piece_of(value: Any, known: frozenset[str]) -> Opaque | Unknown:
    """Return a piece no other block can hold: opaque, so that its provider gets it back.

    What is malformed, no object or of a `known` type after all, is kept but never sent.
    """
    if isinstance(value, dict) and str(value.get("type")) not in known:
        return opaque(value)
    return Unknown(raw=packed(value))


def kept_whole(content: Iterable[Block], element: WireObject, api: str) -> Content:
    """Return content, or the whole element where content says nothing, so that it is kept."""
    blocks = tuple(content)
    if all(isinstance(block, Text) and not block.text.strip() for block in blocks):
        return marked((opaque({MESSAGE: element}),), api)
    return blocks


def custom(api: str, element: Any) -> Custom:
    """Return the entry for an element that is no message."""
    return Custom(api, packed(element))


def instruction(content: Content) -> Context:
    """Return the entry for a system message."""
    return Context("system", "system", content)


def words(value: Any) -> str:
    """Return a string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else encoded(value).decode()


def tool_call(call_id: str, name: Any, given: Any, fields: WireObject) -> ToolCall:
    """Return a call; `given` are its arguments as an object, or as the text a model wrote."""
    text = words({} if given is None else given)
    if not text.strip():
        text = "{}"
    kept = wire(fields)
    if not _is_plain_object(text):
        return ToolCall(id=call_id, name=words(name), args_text=text, wire=kept)
    args = Raw(text.encode())
    if given == text and msgspec.json.format(args, indent=-1) != bytes(args):
        kept = packed({**unpacked(kept), TEXT: text})  # a tape keeps the object without its blanks
    return ToolCall(id=call_id, name=words(name), args=args, wire=kept)


def _is_plain_object(text: str) -> bool:
    try:
        value = decoded(text)
    except UNREADABLE:
        return False
    return isinstance(value, dict) and BLOB not in encoded(value)


def file(
    data: Any, mime: Any, put: Put, fields: WireObject, name: str | None = None
) -> Image | Audio | Document | None:
    """Return a file that stands in an array as base64; None when it does not."""
    if not isinstance(data, str) or not isinstance(mime, str):
        return None
    try:
        blob = put(b64decode(data, validate=True))
    except (NotBase64, ValueError):
        return None
    kept = wire(fields)
    match mime.partition("/")[0]:
        case "image":
            return Image(blob=blob, mime=mime, wire=kept)
        case "audio":
            return Audio(blob=blob, mime=mime, wire=kept)
        case _:
            return Document(blob=blob, mime=mime, name=name, wire=kept)


def file_of_url(
    url: Any, put: Put, fields: WireObject, name: str | None = None
) -> Image | Audio | Document | None:
    """Return a file that stands in an array as a data URL; None when it does not."""
    found = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if found is None or found[2] != ";base64":
        return None
    return file(found[3], found[1], put, fields, name)


def with_outer(content: Iterable[Block], fields: WireObject, form: str = "") -> Content:
    """Return content that carries the fields that stood beside it, on an empty text if need be.

    `form` is the word for the way it was written, empty for the usual one.
    """
    blocks = tuple(content)
    beside: WireObject = {OUTER: fields} if fields else {}
    if form:
        beside[FORM] = form
    if not beside:
        return blocks
    first, *rest = blocks or (Text(""),)
    return (replace(first, wire=packed({**unpacked(first.wire), **beside})), *rest)


def form_of(holder: WireObject, key: str = "content") -> str:
    """Return the word for the way content is written: list, string, null or absent."""
    match holder.get(key, holder):
        case str():
            return "string"
        case list():
            return "list"
        case None:
            return "null"
    return "absent"


def marked(content: Content, api: str) -> Content:
    """Return content no model wrote, with the API's name on what only that API can read."""
    return tuple(
        replace(block, wire=packed({**unpacked(block.wire), API: api}))
        if block.wire != NO_JSON or isinstance(block, Opaque)
        else block
        for block in content
    )
