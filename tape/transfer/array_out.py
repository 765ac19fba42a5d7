"""The path to a head as a provider's message array, repaired so that the provider takes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..entries import Assistant
from ..formats.arrays import FORMATS
from ..repair import Target, repair
from ..sendable import build_messages
from .masking import mask_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..branches import Head
    from ..entries import Repair
    from ..line import Entry
    from ..tape import Tape

_SEALED_MEMBERS = frozenset(
    b'"%b":' % name
    for name in (
        *(b"id", b"call_id", b"tool_call_id", b"tool_use_id"),
        *(b"signature", b"thoughtSignature", b"encrypted_content"),
    )
)
"""Members that a provider compares with what it wrote."""
_FILE_BYTES = re.compile(rb'"(?:data:[^,"]*;base64,)?[A-Za-z0-9+/]{200,}={0,2}"')
"""The bytes of a picture or a file."""


def _is_sealed_member(name: bytes, value: bytes) -> bool:
    """Tell whether a mask would break a member's value."""
    return name in _SEALED_MEMBERS or (bool(name) and _FILE_BYTES.fullmatch(value) is not None)


class MessageArray(NamedTuple):
    """A conversation as one API takes it."""

    field: str
    """Name of the array in the API's request."""
    elements: tuple[bytes, ...]
    """Each as JSON."""
    beside: dict[str, bytes]
    """Other fields of the request that say something, as JSON: the model, the system prompt."""
    repair: Repair | None
    """What was mended; None when nothing was."""
    secrets: int
    """How many were masked."""

    @property
    def array(self) -> bytes:
        """The array as JSON, an element a line."""
        return b"[\n%b\n]" % b",\n".join(self.elements) if self.elements else b"[]"

    @property
    def request(self) -> bytes:
        """The request as JSON: the array and what stands beside it."""
        fields = [b'"%b":%b,\n' % (name.encode(), value) for name, value in self.beside.items()]
        return b'{%b"%b":%b}' % (b"".join(fields), self.field.encode(), self.array)


def export_array(
    tape: Tape, head: Head, name: str, *, redact: bool = True, skipped: Callable[[str], None]
) -> MessageArray:
    """Return the view of a head as the array of API `name` (see FORMATS); `redact` masks secrets.

    It is written for whoever answered last over this API, so what only he understands is in it.
    What cannot be read is told to `skipped` and left out. Raises as `sendable` does.
    """
    form = FORMATS[name]
    seen, made = build_messages(tape, head, Target("", form.api, ""), skipped)
    target = _find_last_target((*seen.kept, *seen.entries), form.api)
    if target.model or target.endpoint:
        made = repair(seen, target)
    elements = form.encoder(tape.load).elements(made.messages)
    model = {"model": target.model} if target.model and form.names_model else {}
    beside = {**model, **form.system(made.messages)}
    values = [*map(msgspec.json.encode, beside.values()), *elements]
    secrets = 0
    if redact:
        masks = [mask_json(value, _is_sealed_member) for value in values]
        values, secrets = [mask.data for mask in masks], sum(mask.secrets for mask in masks)
    fields = dict(zip(beside, values, strict=False))
    return MessageArray(form.field, tuple(values[len(fields) :]), fields, made.repair, secrets)


def _find_last_target(entries: Sequence[Entry], api: str) -> Target:
    """Return who answered last over an API; nobody when nobody did."""
    for entry in reversed(entries):
        if isinstance(answer := entry.data, Assistant) and answer.api == api:
            return Target(answer.endpoint, api, answer.model)
    return Target("", api, "")
