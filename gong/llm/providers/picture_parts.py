"""Pictures by address, and how closely to look, as an API wants to be told: pure.

The encoders of `tape.formats` know pictures by their bytes. Here a block that says more becomes the
part of the API's own before they see it, once for each message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tape.blocks import NO_JSON, Image, Opaque
from tape.formats.turns import Encoder
from tape.formats.wire import packed, unpacked, without

from ..pictures import DETAIL, URL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tape.blocks import Block
    from tape.formats.ids import Ids
    from tape.formats.turns import Form, Part
    from tape.view import Message

    from .json_values import WireObject

    ByAddress = Callable[[str, str], WireObject]
    """From an address and a media type to the part of a message."""


def wrap_encoder(encoder: Encoder, by_address: ByAddress, *, detail: bool = False) -> Encoder:
    """Return an encoder that also knows pictures by address; `detail` where it may be sent."""
    return Encoder(_PictureForm(encoder.form, by_address, detail=detail))


class _PictureForm:
    """A form of messages above another one."""

    def __init__(self, form: Form, by_address: ByAddress, *, detail: bool) -> None:
        self.ids = form.ids
        self.placed, self.ending = form.placed, form.ending
        self._form, self._by_address, self._detail = form, by_address, detail

    def parts(self, message: Message, ids: Ids) -> Iterable[Part]:
        if any(map(_has_notes, message.content)):
            shown = tuple(self._encode_block(block) for block in message.content)
            message = replace(message, content=shown)
        return self._form.parts(message, ids)

    def _encode_block(self, block: Block) -> Block:
        if not isinstance(block, Image) or not _has_notes(block):
            return block
        notes = unpacked(block.wire)
        detail = {"detail": notes[DETAIL]} if self._detail and DETAIL in notes else {}
        if URL not in notes:
            wire = {**without(notes, DETAIL), **detail}
            return replace(block, wire=packed(wire) if wire else NO_JSON)
        part = self._by_address(notes[URL], block.mime)
        inner = part.get("image_url")
        if isinstance(inner, dict):
            part = {**part, "image_url": {**inner, **detail}}
        else:
            part = {**part, **detail}
        return Opaque(raw=packed(part))


def _has_notes(block: Block) -> bool:
    if type(block) is not Image or block.wire is NO_JSON:
        return False
    return not unpacked(block.wire).keys().isdisjoint({URL, DETAIL})
