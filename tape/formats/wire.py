"""JSON as providers write it, in and out of raw fields: what all foreign shapes share; pure.

Keys of ours inside `wire` begin with `$`, and never go to a provider: `$api` names the API that
data comes from in what no model wrote, `$outer` holds fields of the message or result around the
block, `$form` a word for how that was written where there are several ways, `$text` arguments of a
call as their model wrote them, `$strange` fields of other programs that look like ours, and `$json`
holds as text what a tape could not hold as it is. `$message` in an opaque block is a whole message
that says nothing.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..errors import NotFound
from ..model.entries import NO_JSON, Audio, BlobRef, Document, Image, Opaque, ToolCall
from ..model.line import BLOB_KEY, JSON_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..model.entries import Block

    Load = Callable[[BlobRef], bytes]
    """Returns the bytes of a blob; raises NotFound when it is missing."""
    Put = Callable[[bytes], BlobRef]
    """Stores bytes and returns their reference."""

WireObject = dict[str, Any]
"""A JSON object in an API's own form."""

KEY_API = "$api"
KEY_OUTER = "$outer"
KEY_FORM = "$form"
KEY_TEXT = "$text"
KEY_STRANGE = "$strange"
KEY_MESSAGE = "$message"
_KEY_JSON = "$json"
AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""Audio types that the OpenAI APIs accept, and their names for them."""
_LONE_SURROGATE = "[\ud800-\udfff]"


def encode_json(value: Any) -> bytes:
    """Return a value as compact JSON; a lone surrogate becomes U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(clean_value(value))


def decode_json(data: bytes | str) -> Any:
    """Return the value of JSON, also with half a surrogate pair in it; raise ValueError."""
    try:
        return msgspec.json.decode(data)
    except JSON_ERRORS:
        return clean_value(json.loads(data))


def clean_value(value: Any) -> Any:
    """Return a value as it can be written as JSON: U+FFFD in place of each lone surrogate."""
    match value:
        case str():
            return re.sub(_LONE_SURROGATE, "\ufffd", value)
        case dict():
            return {clean_value(key): clean_value(part) for key, part in value.items()}
        case list() | tuple():
            return [clean_value(part) for part in value]
        case Struct():
            fields = {name: clean_value(getattr(value, name)) for name in value.__struct_fields__}
            return replace(value, **fields)
        case _:
            return value


def pack_raw(value: Any) -> Raw:
    """Return a value as raw JSON that an entry can store, whatever its keys are."""
    data = encode_json(value)
    is_ours = isinstance(value, dict) and value.keys() == {_KEY_JSON}
    return Raw(encode_json({_KEY_JSON: data.decode()}) if BLOB_KEY in data or is_ours else data)


def unpack_raw(raw: Raw) -> WireObject:
    """Return the object in a raw field; an empty one if there is none."""
    if raw == NO_JSON:
        return {}
    value = decode_json(bytes(raw))
    if isinstance(value, dict) and value.keys() == {_KEY_JSON}:
        value = decode_json(value[_KEY_JSON])
    return value if isinstance(value, dict) else {}


def drop_fields(value: WireObject, *names: str) -> WireObject:
    """Return the fields not named."""
    return {name: part for name, part in value.items() if name not in names}


def get_provider_fields(block: Block, api: str) -> WireObject:
    """Return the provider's fields of a block; empty if they are of another API."""
    if block.wire is NO_JSON:
        return {}
    wire = unpack_raw(block.wire)
    if wire.get(KEY_API, api) != api:
        return {}
    return {name: value for name, value in wire.items() if not name.startswith("$")}


def get_outer_fields(content: Iterable[Block], api: str) -> WireObject:
    """Return the fields beside the content of a message or result."""
    fields: WireObject = {}
    for block in content:
        if block.wire is not NO_JSON:
            wire = unpack_raw(block.wire)
            if wire.get(KEY_API, api) == api:
                fields |= wire.get(KEY_OUTER, {})
    return fields


def get_written_form(content: Iterable[Block], api: str) -> str:
    """Return the word for the form of a message or result; "" for the usual one."""
    for block in content:
        if block.wire is not NO_JSON:
            wire = unpack_raw(block.wire)
            if KEY_FORM in wire and wire.get(KEY_API, api) == api:
                return str(wire[KEY_FORM])
    return ""


def find_whole_message(content: Iterable[Block], api: str) -> WireObject | None:
    """Return the unchanged array element that content holds; None if it holds none.

    So an empty message is kept: it can only be sent to the API it came from.
    """
    match tuple(content):
        case (Opaque(raw=raw) as block,) if is_for_api(block, api):
            message = unpack_raw(raw).get(KEY_MESSAGE)
            return message if isinstance(message, dict) else None
    return None


def is_for_api(block: Block, api: str) -> bool:
    """Return whether a provider's own block may be sent to `api`."""
    return block.wire is NO_JSON or unpack_raw(block.wire).get(KEY_API, api) == api


def load_bytes(blob: BlobRef, load: Load | None) -> bytes | None:
    """Return the bytes of a blob; None if they are missing."""
    if load is None:
        return None
    try:
        return load(blob)
    except NotFound:
        return None


def load_base64(blob: BlobRef, load: Load | None) -> str | None:
    """Return the bytes of a blob as base64; None if they are missing."""
    data = load_bytes(blob, load)
    return None if data is None else b64encode(data).decode()


def describe_unsent(block: Image | Document | Audio) -> str:
    """Return the placeholder for a picture or a file that cannot be sent."""
    return f"({block.mime} of {block.blob.bytes} bytes: not sent)"


def build_argument_object(call: ToolCall) -> Raw | WireObject:
    """Return the arguments as the object that APIs require, whatever the model wrote.

    Text that is not an object becomes its `input`, as for a freeform tool.
    """
    if call.args_text is None:
        return call.args if call.args != NO_JSON else {}
    if not call.args_text.strip():
        return {}
    try:
        written = decode_json(call.args_text)
    except JSON_ERRORS:
        written = None
    return written if isinstance(written, dict) else {"input": call.args_text}


def build_decoded_arguments(call: ToolCall) -> WireObject:
    """Return the arguments as `build_argument_object` does, decoded."""
    arguments = build_argument_object(call)
    return arguments if isinstance(arguments, dict) else unpack_raw(arguments)


def build_argument_text(call: ToolCall, *, verbatim: bool = False) -> str:
    """Return the arguments as text: a JSON object, or with `verbatim` what the model wrote."""
    if verbatim and call.args_text and call.args_text.strip():
        return call.args_text
    if verbatim and isinstance(text := unpack_raw(call.wire).get(KEY_TEXT), str):
        return text
    arguments = build_argument_object(call)
    return (
        bytes(arguments).decode() if isinstance(arguments, Raw) else encode_json(arguments).decode()
    )


def get_freeform_input(call: ToolCall, *, is_own: bool) -> str:
    """Return the input of a call to a freeform tool.

    Unless it was a freeform call itself (`is_own`), this is the only string in its JSON object.
    """
    if call.args_text is not None:
        return call.args_text
    arguments = build_argument_object(call)
    fields = decode_json(bytes(arguments)) if isinstance(arguments, Raw) else arguments
    values = [*fields.values()] if isinstance(fields, dict) and not is_own else []
    only = values[0] if len(values) == 1 else None
    return only if isinstance(only, str) else build_argument_text(call)
