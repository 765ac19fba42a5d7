"""Tool calls and `reasoning_details` of a Chat Completions answer, put together from pieces: pure.

Hosts leave out index or id, resend both, or give every call the same index. A piece belongs to

| index | id | name | call |
|---|---|---|---|
| known | | no | of that index |
| known | another | yes | a new one |
| known | none | yes | a new one, where the arguments so far are a whole object |
| none | known | | of that id |
| none, new | none | no | the newest |

Two calls from a host that gives every call the index 0 and sends no ids:

| piece (index 0) | call | arguments so far |
|---|---|---|
| name read, arguments {"path": | 1st | {"path": |
| arguments "a"} | 1st | {"path": "a"} |
| name read, arguments {"path": "b"} | 2nd: those of the first are a whole object | {"path": "b"} |

Pieces of words that follow each other with the same type and index are one detail; encrypted ones
always come whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tape.formats.wire import encode_json, pack_raw
from tape.model.entries import NO_JSON

from ...accumulate import TextBuffer
from ...partial_json import parse_partial_json
from ..json_values import read_text

if TYPE_CHECKING:
    from msgspec import Raw

    from ..json_values import WireObject


_GROWING = ("text", "summary")


def add_detail(details: list[Any], piece: Any) -> Any:
    """Append a piece, or let the detail before it grow; return what of the piece is new."""
    last = details[-1] if details and isinstance(details[-1], dict) else None
    grows = isinstance(piece, dict) and not piece.keys().isdisjoint(_GROWING)
    if last is None or not grows or any(last.get(x) != piece.get(x) for x in ("type", "index")):
        details.append(piece)
        return piece
    new = [value for name, value in piece.items() if name in _GROWING or value != last.get(name)]
    for name, value in piece.items():
        if name in _GROWING and isinstance(value, str):
            last[name] = (last.get(name) or "") + value
        elif value is not None:
            last[name] = value
    return new


def get_call_id(detail: Any) -> str | None:
    """Return the id of the call a detail belongs to, if it has one."""
    call_id = detail.get("id") if isinstance(detail, dict) else None
    return call_id if isinstance(call_id, str) else None


def join_text(details: list[Any]) -> str:
    """Return what can be read in details, for hosts that say it nowhere else."""
    fields = [detail for detail in details if isinstance(detail, dict)]
    texts = [piece.get(name) for piece in fields for name in _GROWING]
    return "".join(text for text in texts if isinstance(text, str))


_MAX_LOOKS = 100
"""Reading a call's arguments again with every piece would take the square of their length."""
_FIELDS = frozenset({"index", "id", "type", "function", "custom"})


@dataclass(slots=True)
class OpenAICall:
    """An incomplete tool call; `index` is None until its name is known."""

    id: str
    kind: str = "function"
    index: int | None = None
    extra: WireObject = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Arguments not yet sent as events, because they arrived before the name."""
    sent: TextBuffer = field(default_factory=TextBuffer)
    """Arguments before those."""
    looks: int = 0
    """How often the code checked whether they are complete."""

    def add_piece(self, piece: WireObject, text: str) -> WireObject:
        """Add the fields of a piece; return the arguments not yet sent as events."""
        if "custom" in piece:
            self.kind = "custom"
        beside = piece.keys() - _FIELDS
        extra = {name: piece[name] for name in beside if piece[name] is not None}
        new = {name: value for name, value in extra.items() if value != self.extra.get(name)}
        self.extra |= extra
        self.waiting.append(text)
        return new if self.index is not None else {**new, "arguments": text}

    def take_waiting(self) -> list[str]:
        """Return the arguments not yet sent, and mark them as sent."""
        new, self.waiting = [*filter(None, self.waiting)], []
        for text in new:
            self.sent.append(text)
        return new

    def pack_wire(self, details: list[Any]) -> Raw:
        """Return the `wire` data to send back: id, the host's fields, and its thinking."""
        wire: WireObject = {"id": self.id} if self.id else {}
        if self.kind == "custom":
            wire["type"] = "custom"
        wire |= self.extra
        if own := [detail for detail in details if get_call_id(detail) == self.id]:
            wire["details"] = own
        return pack_raw(wire) if wire else NO_JSON


class OpenAICalls:
    """The calls of one answer, in the order they began."""

    def __init__(self) -> None:
        self.all: list[OpenAICall] = []
        self._by_index: dict[int, OpenAICall] = {}

    def find_call(self, piece: WireObject, name: str, text: str) -> OpenAICall:
        """Return the call that a piece with this name and these arguments belongs to."""
        place, call_id = piece.get("index"), read_text(piece.get("id"))
        match = self._by_index.get(place) if isinstance(place, int) else None
        # without an index the id tells, or the piece continues the newest call; so does one whose
        # index is new and that has neither id nor name
        if place is None or (match is None and not call_id and not name):
            same = (call for call in self.all if call.id == call_id)
            newest = self.all[-1] if self.all and not name else None
            match = next(same, None) if call_id else newest
        # A name alone does not begin a call: some hosts send it again with every piece.
        if match is None or (name and _is_another(match, call_id, text)):
            match = OpenAICall(call_id)
            self.all.append(match)
        match.id = match.id or call_id
        if isinstance(place, int):
            self._by_index[place] = match
        return match


def read_call_piece(piece: WireObject) -> tuple[str, str]:
    """Return the name and the piece of arguments that are in a piece of a call."""
    function = piece.get("function") or piece.get("custom") or {}
    text = function.get("arguments", function.get("input"))
    return read_text(function.get("name")), (
        encode_json(text).decode() if isinstance(text, dict) else read_text(text)
    )


def _is_another(call: OpenAICall, call_id: str, text: str) -> bool:
    """Return whether a piece with a name begins a call beside the one that has its index."""
    if call_id:
        return bool(call.id) and call.id != call_id
    # no id to tell by: a name again begins another call once the arguments are whole
    if not text or not call.sent.length or call.looks > _MAX_LOOKS:
        return False
    call.looks += 1
    sent = call.sent.text()
    state, value = parse_partial_json(sent)
    return bool(sent.strip()) and state == "ok" and isinstance(value, dict)
