"""Pictures by address, and how closely to look, as an API wants to be told: pure.

The encoders of `tape.formats` know pictures by their bytes. Here a block that says more becomes the
part of the API's own before they see it, once for each message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tape.blocks import NO_JSON, Image, Opaque
from tape.formats.turns import ArrayEncoder
from tape.formats.wire import drop_fields, pack_raw, unpack_raw

from ..pictures import DETAIL_KEY, URL_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tape.blocks import Block
    from tape.formats.ids import CallIds
    from tape.formats.turns import ArrayPart, ArrayStyle
    from tape.view import Message

    from .json_values import WireObject

    ByAddress = Callable[[str, str], WireObject]
    """From an address and a media type to the part of a message."""


def wrap_encoder(
    encoder: ArrayEncoder, by_address: ByAddress, *, detail: bool = False
) -> ArrayEncoder:
    """Return an encoder that also knows pictures by address; `detail` where it may be sent."""
    return ArrayEncoder(_PictureForm(encoder.form, by_address, detail=detail))


class _PictureForm:
    """A form of messages above another one."""

    def __init__(self, form: ArrayStyle, by_address: ByAddress, *, detail: bool) -> None:
        self.ids = form.ids
        self.placed, self.ending = form.place_part, form.finish_element
        self._form, self._by_address, self._detail = form, by_address, detail

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        if any(map(_has_notes, message.content)):
            shown = tuple(self._encode_block(block) for block in message.content)
            message = replace(message, content=shown)
        return self._form.parts(message, ids)

    def _encode_block(self, block: Block) -> Block:
        if not isinstance(block, Image) or not _has_notes(block):
            return block
        notes = unpack_raw(block.wire)
        detail = {"detail": notes[DETAIL_KEY]} if self._detail and DETAIL_KEY in notes else {}
        if URL_KEY not in notes:
            wire = {**drop_fields(notes, DETAIL_KEY), **detail}
            return replace(block, wire=pack_raw(wire) if wire else NO_JSON)
        part = self._by_address(notes[URL_KEY], block.mime)
        inner = part.get("image_url")
        if isinstance(inner, dict):
            part = {**part, "image_url": {**inner, **detail}}
        else:
            part = {**part, **detail}
        return Opaque(raw=pack_raw(part))


def _has_notes(block: Block) -> bool:
    if type(block) is not Image or block.wire is NO_JSON:
        return False
    return not unpack_raw(block.wire).keys().isdisjoint({URL_KEY, DETAIL_KEY})
