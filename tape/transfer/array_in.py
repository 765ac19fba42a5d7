"""A provider's message array → a tape: orphans, duplicates and all, as it stands.

What is no message stays on the tape as an entry of type custom. The tape's id derives from what
the array says, so the same array is the same tape.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from ..blocks import BlobRef, join_texts
from ..entries import Assistant, Custom, User
from ..errors import UsageError
from ..formats.arrays import FORMATS
from ..formats.wire import WireObject, decode_json, pack_raw
from ..payload import JSON_ERRORS, encode_payload
from .recording import ImportReport, record_tape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..entries import Payload
    from ..formats.arrays import ArrayFormat
    from ..store import Beginning, Store
    from ..tape import Tape
    from ..writer import Writer

_NOTHING_DONE = "nothing was imported"
_SYSTEM_FIELDS = ("system", "instructions", "systemInstruction", "system_instruction")


class ArrayImportReport(ImportReport, frozen=True):
    """What the import of an array did."""

    unsent: int
    """Elements, or parts of them, that are no message of this API: kept, and never sent."""


class _ArrayRequest(NamedTuple):
    """What a file holds: the array alone, or the body of a request around it."""

    array: list[Any]
    model: str
    rest: WireObject
    """Fields that are no part of the conversation."""


def import_array(store: Store, data: bytes, name: str, beginning: Beginning) -> ArrayImportReport:
    """Make a tape of the array of API `name` (see FORMATS) that `data` is, alone or in its request.

    Doing so again adds nothing. Raises UsageError for what is no such array; nothing is made then.
    """
    form = FORMATS[name]
    request = _parse_request(data, name, form)
    files: dict[str, bytes] = {}

    def put(file: bytes) -> BlobRef:
        digest = sha256(file).hexdigest()
        files[digest] = file
        return BlobRef(digest, len(file))

    try:
        read = form.parse(request.array, put)
        payloads = [
            *_build_request_entry(request, form),
            *(_set_model(payload, request.model) for payload in read),
        ]
        identity = _compute_array_id(name, payloads)
    except JSON_ERRORS as error:
        raise UsageError(
            f"this cannot be read: {_describe_error(error)}; {_NOTHING_DONE}"
        ) from error

    def fill(tape: Tape, writer: Writer) -> None:
        for file in files.values():
            tape.blobs.put(file)
        for payload in payloads:
            writer.append(payload)

    beginning = beginning._replace(
        slug=_find_first_prompt(read), program=f"{beginning.program} (import from {name})"
    )
    made = record_tape(store, identity, beginning, fill)
    count = len(payloads) + 1
    unsent = sum(isinstance(payload, Custom) for payload in read)
    return ArrayImportReport(identity, made.path, count * made.is_new, count, 0, unsent)


def _parse_request(data: bytes, name: str, form: ArrayFormat) -> _ArrayRequest:
    """Return what a file holds; raise UsageError."""
    wanted = f"a JSON array of {form.field}, or a request with that field"
    try:
        value = decode_json(data)
    except JSON_ERRORS as error:
        raise UsageError(
            f"this is no JSON: {_describe_error(error)}; give {wanted}; {_NOTHING_DONE}"
        ) from error
    is_request = isinstance(value, dict) and form.field in value
    request = _unwrap_request(value, form) if is_request else _ArrayRequest(value, "", {})
    if not isinstance(request.array, list):
        raise UsageError(f"this is no conversation of {name}: give {wanted}; {_NOTHING_DONE}")
    if request.array and not any(_has_format_sign(element, form) for element in request.array):
        fields = " or ".join(form.signs)
        raise UsageError(
            f"this is no conversation of {name}: none of its elements has {fields}; {_NOTHING_DONE}"
        )
    return request


def _describe_error(error: Exception) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def _has_format_sign(element: Any, form: ArrayFormat) -> bool:
    return isinstance(element, dict) and not element.keys().isdisjoint(form.signs)


def _unwrap_request(body: WireObject, form: ArrayFormat) -> _ArrayRequest:
    """Take a request apart; what the system is told becomes the first message."""
    said = {name: body[name] for name in _SYSTEM_FIELDS if body.get(name)}
    array, model = body[form.field], body.get("model")
    if isinstance(array, str):
        array = [form.message("user", array)]
    if isinstance(array, list):
        array = [
            *(form.message("system", _get_system_content(value)) for value in said.values()),
            *array,
        ]
    known = {form.field: None, **said}
    rest = {field: value for field, value in body.items() if field not in known}
    return _ArrayRequest(array, model if isinstance(model, str) else "", rest)


def _get_system_content(system: Any) -> Any:
    """Return the content of a system prompt: Gemini's is a turn of its own."""
    return system.get("parts", system) if isinstance(system, dict) else system


def _build_request_entry(request: _ArrayRequest, form: ArrayFormat) -> Sequence[Payload]:
    return [Custom(f"{form.api}.request", pack_raw(request.rest))] if request.rest else []


def _set_model(payload: Payload, model: str) -> Payload:
    return replace(payload, model=model) if model and isinstance(payload, Assistant) else payload


def _compute_array_id(name: str, payloads: Sequence[Payload]) -> str:
    hashed = sha256(f"array of {name}\n".encode())
    for payload in payloads:
        hashed.update(b"%b %b\n" % (payload.entry_type.encode(), encode_payload(payload)))
    return hashed.hexdigest()[:32]


def _find_first_prompt(payloads: Sequence[Payload]) -> str:
    prompts = (join_texts(payload.content) for payload in payloads if isinstance(payload, User))
    return next((text for text in prompts if text.strip()), "")
