"""Tool calls of a Chat Completions answer, put together from their pieces: pure.

Which call a piece belongs to is told by its index, else by its id; hosts leave out either, resend
both, or give every call the same index.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tape.blocks import NO_JSON
from tape.formats.wire import encoded, packed

from ..partial_json import parse
from .openai_details import id_of
from .values import words

if TYPE_CHECKING:
    from msgspec import Raw

    from .values import WireObject

_FIELDS = frozenset({"index", "id", "type", "function", "custom"})


@dataclass(slots=True)
class Call:
    """A tool call on its way; `index` is None until its name is known."""

    id: str
    kind: str = "function"
    index: int | None = None
    extra: WireObject = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Arguments that nobody was told of: they came before the name."""
    told: list[str] = field(default_factory=list)
    """Arguments before those."""

    def add(self, piece: WireObject, text: str) -> None:
        """Take what a piece holds beside the name."""
        if "custom" in piece:
            self.kind = "custom"
        beside = piece.keys() - _FIELDS
        self.extra |= {name: piece[name] for name in beside if piece[name] is not None}
        self.waiting.append(text)

    def untold(self) -> list[str]:
        """Return the arguments nobody was told of, which are told now."""
        new, self.waiting = [*filter(None, self.waiting)], []
        self.told += new
        return new

    def wire(self, details: list[Any]) -> Raw:
        """Return what goes back with it: its id, its host's fields, and thinking of its own."""
        kept: WireObject = {"id": self.id} if self.id else {}
        if self.kind == "custom":
            kept["type"] = "custom"
        kept |= self.extra
        if own := [one for one in details if id_of(one) == self.id]:
            kept["details"] = own
        return packed(kept) if kept else NO_JSON


class Calls:
    """The calls of one answer, in the order they began."""

    def __init__(self) -> None:
        self.all: list[Call] = []
        self._by_index: dict[int, Call] = {}

    def find(self, piece: WireObject, name: str, text: str) -> Call:
        """Return the call that a piece with this name and these arguments belongs to."""
        place, call_id = piece.get("index"), words(piece.get("id"))
        found = self._by_index.get(place) if isinstance(place, int) else None
        if place is None:
            same = (call for call in self.all if call.id == call_id)
            newest = self.all[-1] if self.all and not name else None
            found = next(same, None) if call_id else newest
        if found is None or (name and _is_another(found, call_id, text)):
            found = Call(call_id)
            self.all.append(found)
        found.id = found.id or call_id
        if isinstance(place, int):
            self._by_index[place] = found
        return found


def arguments_in(piece: WireObject) -> tuple[str, str]:
    """Return the name and the piece of arguments that are in a piece of a call."""
    given = piece.get("function") or piece.get("custom") or {}
    text = given.get("arguments", given.get("input"))
    return words(given.get("name")), (
        encoded(text).decode() if isinstance(text, dict) else words(text)
    )


def _is_another(found: Call, call_id: str, text: str) -> bool:
    """Return whether a piece with a name begins a call beside the one that has its index."""
    if call_id:
        return bool(found.id) and found.id != call_id
    return bool(text) and _is_object("".join(found.told))


def _is_object(text: str) -> bool:
    state, value = parse(text)
    return state == "ok" and isinstance(value, dict)
