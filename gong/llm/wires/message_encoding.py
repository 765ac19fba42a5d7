"""What a provider's sessions sent last, kept so that each message is encoded once.

The encoders of `tape.formats` know pictures by their bytes. Here a block that says more, an address
or how closely to look, becomes the API's own part before they see it. Pictures and files, which
messages only refer to, are fetched with the request's `load`; without it they are described in
words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from tape.context.view import MessageSnapshot
from tape.formats.encoder import ArrayEncoder
from tape.formats.wire import drop_fields, pack_raw, unpack_raw
from tape.model.entries import NO_JSON, Image, Opaque

from ..picture_sources import DETAIL_KEY, URL_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from tape.context.view import Message
    from tape.formats.encoder import ArrayPart, ArrayStyle, CallIds
    from tape.model.entries import Block

    from ..types import Request
    from .json_values import WireObject

    ByAddress = Callable[[str, str], WireObject]
    """From an address and a media type to the part of a message."""


class _PictureForm:
    """A form of messages above another one."""

    def __init__(self, form: ArrayStyle, by_address: ByAddress, *, detail: bool) -> None:
        self.ids = form.ids
        self.place_part, self.finish_element = form.place_part, form.finish_element
        self._form, self._by_address, self._detail = form, by_address, detail

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        if any(map(_has_notes, message.content)):
            content = tuple(self._encode_block(block) for block in message.content)
            message = replace(message, content=content)
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


class HistorySelection:
    """Messages of the history that was asked for last; each is looked at once while it grows."""

    def __init__(self, keep: Callable[[Message], bool] | None = None) -> None:
        self._keep = keep
        self._first: Sequence[Message] = ()
        self._read = MessageSnapshot([])
        self._found: list[Message] = []

    def follow(self, messages: Sequence[Message], first: Sequence[Message] = ()) -> MessageSnapshot:
        """Return `first` and the messages that are kept; without `keep` those are all."""
        if (
            not isinstance(messages, MessageSnapshot)
            or not messages.continues(self._read)
            or first != self._first
        ):
            self._first, self._read, self._found = first, MessageSnapshot([]), [*first]
        new = messages[len(self._read) :]
        self._found += new if self._keep is None else filter(self._keep, new)
        if isinstance(messages, MessageSnapshot):
            self._read = messages
        return MessageSnapshot(self._found)


def is_system_message(message: Message) -> bool:
    """Return whether a message has the role "system"."""
    return message.role == "system"


_KEPT = 8
"""How many histories are remembered at once."""


class HistoryEncoder(Protocol):
    """Encodes one history again and again as it grows."""

    def elements(self, messages: Sequence[Message]) -> list[bytes]:
        """Return each element of the array as JSON."""
        ...


class EncoderCache:
    """Remembers the newest ones; `build` makes what encodes one, from options and `load`.

    Pictures by address become what `by_address` returns, with `detail` where it may be sent.
    """

    def __init__(
        self,
        build: Callable[[Any, Any], ArrayEncoder],
        by_address: ByAddress,
        *,
        detail: bool = False,
        wrap: Callable[[ArrayEncoder], HistoryEncoder] = lambda encoder: encoder,
    ) -> None:
        def create(options: Any, load: Any) -> HistoryEncoder:
            form = _PictureForm(build(options, load).form, by_address, detail=detail)
            return wrap(ArrayEncoder(form))

        self._create = create
        self._kept: dict[Hashable, HistoryEncoder] = {}

    def encode_messages(self, request: Request, options: Hashable) -> list[bytes]:
        """Return each element of the array for the request's messages as JSON."""
        key = (request.session, options, request.load)
        encoder = self._kept.pop(key, None) or self._create(options, request.load)
        self._kept[key] = encoder  # the newest stands last
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return encoder.elements(request.messages)
