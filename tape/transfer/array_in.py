"""A provider's message array → a tape: orphans, duplicates and all, as it stands.

What is no message stays on the tape as an entry of type custom. The tape's id derives from what
the array says, so the same array is the same tape.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from ..blocks import BlobRef, text_of
from ..entries import Assistant, Custom, User
from ..errors import UsageError
from ..formats.arrays import FORMATS
from ..formats.wire import WireObject, decoded, packed
from ..payload import UNREADABLE, encode_payload
from .recording import Imported, recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..entries import Payload
    from ..formats.arrays import Format
    from ..store import Beginning, Store
    from ..tape import Tape
    from ..writer import Writer

_NOTHING = "nothing was imported"
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")


class ImportedArray(Imported, frozen=True):
    """What the import of an array did."""

    unsent: int
    """Elements, or parts of them, that are no message of this API: kept, and never sent."""


class _Request(NamedTuple):
    """What a file holds: the array alone, or the body of a request around it."""

    array: list[Any]
    model: str
    rest: WireObject
    """Fields that are no part of the conversation."""


def import_array(store: Store, data: bytes, name: str, beginning: Beginning) -> ImportedArray:
    """Make a tape of the array of API `name` (see FORMATS) that `data` is, alone or in its request.

    Doing so again adds nothing. Raises UsageError for what is no such array; nothing is made then.
    """
    form = FORMATS[name]
    request = _request(data, name, form)
    files: dict[str, bytes] = {}

    def put(file: bytes) -> BlobRef:
        digest = sha256(file).hexdigest()
        files[digest] = file
        return BlobRef(digest, len(file))

    try:
        read = form.parse(request.array, put)
        payloads = [*_beside(request, form), *(_by(payload, request.model) for payload in read)]
        identity = _identity(name, payloads)
    except UNREADABLE as error:
        raise UsageError(f"this cannot be read: {_why(error)}; {_NOTHING}") from error

    def fill(tape: Tape, writer: Writer) -> None:
        for file in files.values():
            tape.blobs.put(file)
        for payload in payloads:
            writer.append(payload)

    beginning = beginning._replace(
        slug=_prompt(read), program=f"{beginning.program} (import from {name})"
    )
    made = recorded(store, identity, beginning, fill)
    count = len(payloads) + 1
    unsent = sum(isinstance(payload, Custom) for payload in read)
    return ImportedArray(identity, made.path, count * made.is_new, count, 0, unsent)


def _request(data: bytes, name: str, form: Format) -> _Request:
    """Return what a file holds; raise UsageError."""
    wanted = f"a JSON array of {form.field}, or a request with that field"
    try:
        value = decoded(data)
    except UNREADABLE as error:
        raise UsageError(f"this is no JSON: {_why(error)}; give {wanted}; {_NOTHING}") from error
    is_request = isinstance(value, dict) and form.field in value
    request = _unwrapped(value, form) if is_request else _Request(value, "", {})
    if not isinstance(request.array, list):
        raise UsageError(f"this is no conversation of {name}: give {wanted}; {_NOTHING}")
    if request.array and not any(_is_of(element, form) for element in request.array):
        fields = " or ".join(form.signs)
        raise UsageError(
            f"this is no conversation of {name}: none of its elements has {fields}; {_NOTHING}"
        )
    return request


def _why(error: Exception) -> str:
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def _is_of(element: Any, form: Format) -> bool:
    return isinstance(element, dict) and not element.keys().isdisjoint(form.signs)


def _unwrapped(body: WireObject, form: Format) -> _Request:
    """Take a request apart; what the system is told becomes the first message."""
    said = {name: body[name] for name in _SYSTEM if body.get(name)}
    array, model = body[form.field], body.get("model")
    if isinstance(array, str):
        array = [form.message("user", array)]
    if isinstance(array, list):
        array = [*(form.message("system", _content(value)) for value in said.values()), *array]
    known = {form.field: None, **said}
    rest = {field: value for field, value in body.items() if field not in known}
    return _Request(array, model if isinstance(model, str) else "", rest)


def _content(system: Any) -> Any:
    """Return the content of a system prompt: Gemini's is a turn of its own."""
    return system.get("parts", system) if isinstance(system, dict) else system


def _beside(request: _Request, form: Format) -> Sequence[Payload]:
    return [Custom(f"{form.api}.request", packed(request.rest))] if request.rest else []


def _by(payload: Payload, model: str) -> Payload:
    return replace(payload, model=model) if model and isinstance(payload, Assistant) else payload


def _identity(name: str, payloads: Sequence[Payload]) -> str:
    hashed = sha256(f"array of {name}\n".encode())
    for payload in payloads:
        hashed.update(b"%b %b\n" % (payload.entry_type.encode(), encode_payload(payload)))
    return hashed.hexdigest()[:32]


def _prompt(payloads: Sequence[Payload]) -> str:
    prompts = (text_of(payload.content) for payload in payloads if isinstance(payload, User))
    return next((text for text in prompts if text.strip()), "")
