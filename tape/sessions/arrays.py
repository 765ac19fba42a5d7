"""A provider's message array → a tape, and the path to a head → a provider's message array.

An import changes nothing, with orphans and duplicates. An element that is not a message is recorded
as an entry of type custom. The tape's id is derived from the array, so the same array gives the
same tape. An export is repaired so that the provider takes it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ..context.repair import build_messages, repair
from ..context.view import Target
from ..errors import UsageError
from ..formats.registry import FORMATS
from ..formats.wire import WireObject, decode_json, pack_raw
from ..masking.secrets import is_sealed_member, mask_json
from ..model.entries import Assistant, BlobRef, Custom, User, join_texts
from ..model.line import JSON_ERRORS, encode_payload
from ..store.recorded_tape import ImportReport, record_tape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..formats.registry import ArrayFormat
    from ..model.entries import Payload, Repair
    from ..store.refs import Head
    from ..store.store import Beginning, Store
    from ..store.tape import Tape
    from ..store.writer import Writer


_NOTHING_DONE = "nothing was imported"
_SYSTEM_FIELDS = ("system", "instructions", "systemInstruction", "system_instruction")


class ArrayImportReport(ImportReport, frozen=True):
    """The result of importing an array."""

    unsent: int
    """Number of elements, or parts of them, that are not messages of this API: kept, never sent."""


class _ArrayRequest(NamedTuple):
    """The content of a file: the array alone, or the body of a request around it."""

    array: list[Any]
    model: str
    rest: WireObject
    """Fields that are not part of the conversation."""


def import_array(store: Store, data: bytes, name: str, beginning: Beginning) -> ArrayImportReport:
    """Create a tape from `data`, an array of API `name` (see FORMATS), alone or in its request.

    Importing it again adds nothing. Raises UsageError for other data, and then creates nothing.
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
        payloads: list[Payload] = [
            replace(payload, model=request.model)
            if request.model and isinstance(payload, Assistant)
            else payload
            for payload in read
        ]
        if request.rest:
            payloads.insert(0, Custom(f"{form.api}.request", pack_raw(request.rest)))
        hashed = sha256(f"array of {name}\n".encode())
        for payload in payloads:
            hashed.update(b"%b %b\n" % (payload.entry_type.encode(), encode_payload(payload)))
    except JSON_ERRORS as error:
        raise UsageError(
            f"this cannot be read: {_describe_error(error)}; {_NOTHING_DONE}"
        ) from error

    def fill(tape: Tape, writer: Writer) -> None:
        for file in files.values():
            tape.blobs.put(file)
        for payload in payloads:
            writer.append(payload)

    identity = hashed.hexdigest()[:32]
    prompts = (join_texts(payload.content) for payload in read if isinstance(payload, User))
    beginning = beginning._replace(
        slug=next((text for text in prompts if text.strip()), ""),
        program=f"{beginning.program} (import from {name})",
    )
    recorded = record_tape(store, identity, beginning, fill)
    count = len(payloads) + 1
    unsent = sum(isinstance(payload, Custom) for payload in read)
    return ArrayImportReport(identity, recorded.path, count * recorded.is_new, count, 0, unsent)


def _parse_request(data: bytes, name: str, form: ArrayFormat) -> _ArrayRequest:
    """Return the content of a file; raise UsageError if it is not a conversation of this API."""
    expected = f"a JSON array of {form.field}, or a request with that field"
    try:
        value = decode_json(data)
    except JSON_ERRORS as error:
        raise UsageError(
            f"this is not JSON: {_describe_error(error)}; give {expected}; {_NOTHING_DONE}"
        ) from error
    is_request = isinstance(value, dict) and form.field in value
    request = _unwrap_request(value, form) if is_request else _ArrayRequest(value, "", {})
    if not isinstance(request.array, list):
        raise UsageError(f"this is not a conversation of {name}: give {expected}; {_NOTHING_DONE}")
    if request.array and not any(
        isinstance(element, dict) and not element.keys().isdisjoint(form.signs)
        for element in request.array
    ):
        fields = " or ".join(form.signs)
        raise UsageError(
            f"this is not a conversation of {name}: none of its elements has {fields};"
            f" {_NOTHING_DONE}"
        )
    return request


def _describe_error(error: Exception) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def _unwrap_request(body: WireObject, form: ArrayFormat) -> _ArrayRequest:
    """Split a request; its system prompt becomes the first message."""
    system_fields = {name: body[name] for name in _SYSTEM_FIELDS if body.get(name)}
    array, model = body[form.field], body.get("model")
    if isinstance(array, str):
        array = [form.message("user", array)]
    if isinstance(array, list):
        contents = [  # Gemini's is a turn of its own
            value.get("parts", value) if isinstance(value, dict) else value
            for value in system_fields.values()
        ]
        array = [*(form.message("system", content) for content in contents), *array]
    known = {form.field: None, **system_fields}
    rest = {field: value for field, value in body.items() if field not in known}
    return _ArrayRequest(array, model if isinstance(model, str) else "", rest)


class MessageArray(NamedTuple):
    """A conversation in the form of one API."""

    field: str
    """Name of the array in the API's request."""
    elements: tuple[bytes, ...]
    """Each as JSON."""
    beside: dict[str, bytes]
    """Other fields of the request, as JSON: the model, the system prompt."""
    repair: Repair | None
    """The repair; None if nothing was repaired."""
    secrets: int
    """Number of masked secrets."""

    @property
    def array(self) -> bytes:
        """The array as JSON, one element per line."""
        return b"[\n%b\n]" % b",\n".join(self.elements) if self.elements else b"[]"

    @property
    def request(self) -> bytes:
        """The request as JSON: the array and the other fields."""
        fields = [b'"%b":%b,\n' % (name.encode(), value) for name, value in self.beside.items()]
        return b'{%b"%b":%b}' % (b"".join(fields), self.field.encode(), self.array)


def export_array(
    tape: Tape, head: Head, name: str, *, redact: bool = True, skipped: Callable[[str], None]
) -> MessageArray:
    """Return the view of a head as the array of API `name` (see FORMATS); `redact` masks secrets.

    The target is the model that answered last over this API, so its own provider data is included.
    Unreadable entries are reported to `skipped` and left out. Raises as `sendable` does.
    """
    form = FORMATS[name]
    seen, repaired = build_messages(tape, head, Target("", form.api, ""), skipped)
    answers = (entry.data for entry in reversed((*seen.kept, *seen.entries)))
    last = next((a for a in answers if isinstance(a, Assistant) and a.api == form.api), None)
    target = Target(last.endpoint, form.api, last.model) if last else Target("", form.api, "")
    if target.model or target.endpoint:
        repaired = repair(seen, target)
    elements = form.encoder(tape.load).elements(repaired.messages)
    model = {"model": target.model} if target.model and form.names_model else {}
    beside = {**model, **form.system(repaired.messages)}
    values = [*map(msgspec.json.encode, beside.values()), *elements]
    secrets = 0
    if redact:
        masks = [mask_json(value, is_sealed_member) for value in values]
        values, secrets = [mask.data for mask in masks], sum(mask.secrets for mask in masks)
    fields = dict(zip(beside, values, strict=False))
    return MessageArray(form.field, tuple(values[len(fields) :]), fields, repaired.repair, secrets)
