"""What a provider's sessions sent last, kept so that each message is encoded once.

Pictures and files, which messages only refer to, are fetched with the request's `load`; without it
they are told of in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tape.formats.turns import Encoder

    from ..types import Request

_KEPT = 8
"""How many histories are remembered at once."""


class Histories:
    """Remembers the newest ones; `encoder` makes what encodes one, from options and `load`."""

    def __init__(self, encoder: Callable[[Any, Any], Encoder]) -> None:
        self._encoder = encoder
        self._kept: dict[Hashable, Encoder] = {}

    def elements(self, request: Request, options: Hashable) -> list[bytes]:
        """Return each element of the array for the request's messages as JSON."""
        load = getattr(request, "load", None)
        key = (request.session, options, load)
        found = self._kept.pop(key, None) or self._encoder(options, load)
        self._kept[key] = found  # the newest stands last
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return found.elements(request.messages)
