"""What a provider's sessions sent last, kept so that each message is encoded once.

Pictures and files, which messages only refer to, are fetched with the request's `load`; without it
they are told of in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tape.view import Message

    from ..types import Request

_KEPT = 8
"""How many histories are remembered at once."""


class HistoryEncoder(Protocol):
    """Encodes one history again and again as it grows."""

    def elements(self, messages: Sequence[Message]) -> list[bytes]:
        """Return each element of the array as JSON."""
        ...


class EncoderCache:
    """Remembers the newest ones; `encoder` makes what encodes one, from options and `load`."""

    def __init__(self, encoder: Callable[[Any, Any], HistoryEncoder]) -> None:
        self._encoder = encoder
        self._kept: dict[Hashable, HistoryEncoder] = {}

    def encode_messages(self, request: Request, options: Hashable) -> list[bytes]:
        """Return each element of the array for the request's messages as JSON."""
        key = (request.session, options, request.load)
        found = self._kept.pop(key, None) or self._encoder(options, request.load)
        self._kept[key] = found  # the newest stands last
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return found.elements(request.messages)
