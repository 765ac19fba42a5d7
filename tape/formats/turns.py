"""From messages to one API's array as bytes, each message encoded once: pure but for its memory.

Invariant: the array of a longer history begins with the bytes of the shorter one's, up to what
its last turn still gathers. What an array costs is the messages that are new in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .ids import CallIds, IdRule
from .wire import WireObject, encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..view import Message


class ArrayTurn(NamedTuple):
    """An element that gathers its neighbours' parts as a list under `key`."""

    role: str
    key: str
    kind: str = ""
    """Keeps turns of the same role apart that must not be one."""


class ArrayPart(NamedTuple):
    """What one message gives to the array."""

    value: WireObject
    turn: ArrayTurn | None = None
    """None for an element of its own."""
    late: bool = False
    """Waits until all results of its batch stand."""
    short: str | None = None
    """What stands under the turn's key when this part is the only one."""

    @property
    def role(self) -> str:
        """Who speaks; empty for an element without a role."""
        return self.turn.role if self.turn else str(self.value.get("role", ""))


class ArrayStyle(Protocol):
    """How an API's array is written."""

    ids: IdRule

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        """Return what a message gives, in order."""
        ...

    def place_part(self, before: str, part: ArrayPart) -> Iterable[ArrayPart]:
        """Return what stands for a part after the role `before`, which is empty at the beginning.

        Mostly the part alone; something first where it cannot follow; nothing where it cannot go.
        """
        ...

    def finish_element(self, element: bytes) -> bytes:
        """Return the last element as it may end an array."""
        ...


@dataclass(slots=True)
class _ArrayBuilder:
    """An array on its way."""

    form: ArrayStyle
    elements: list[bytes] = field(default_factory=list)
    role: str = ""
    turn: ArrayTurn | None = None
    gathered: list[bytes] = field(default_factory=list)
    short: str | None = None
    late: list[ArrayPart] = field(default_factory=list)

    def take(self, parts: Iterable[ArrayPart], *, is_result: bool) -> None:
        """Append what a message gives."""
        if not is_result:
            self.flush()
        for part in parts:
            if part.late:
                self.late.append(part)
            else:
                self._put_part(part)

    def flush(self) -> None:
        """Append what waited for the end of a batch of results."""
        late, self.late = self.late, []
        for part in late:
            self._put_part(part)

    def _put_part(self, part: ArrayPart) -> None:
        for one in self.form.place_part(self.role, part):
            self._append_part(one)

    def _append_part(self, part: ArrayPart) -> None:
        if part.turn is None or part.turn != self.turn:
            self.close()
        if part.turn is None:
            self.elements.append(encode_json(part.value))
        else:
            self.turn, self.short = part.turn, None if self.gathered else part.short
            self.gathered.append(encode_json(part.value))
        self.role = part.role

    def close(self) -> None:
        """End the turn that gathers."""
        if self.turn is not None:
            content = b"[%b]" % b",".join(self.gathered)
            if self.short is not None:
                content = encode_json(self.short)
            role, key = self.turn.role.encode(), self.turn.key.encode()
            self.elements.append(b'{"role":"%b","%b":%b}' % (role, key, content))
        self.turn, self.gathered, self.short = None, [], None

    def finish_elements(self) -> list[bytes]:
        """Return the elements as they stand if nothing follows; this one can still go on."""
        end = _ArrayBuilder(
            self.form,
            [*self.elements],
            self.role,
            self.turn,
            [*self.gathered],
            self.short,
            [*self.late],
        )
        end.flush()
        end.close()
        if end.elements:
            end.elements[-1] = self.form.finish_element(end.elements[-1])
        return end.elements


class ArrayEncoder:
    """Encodes one history again and again as it grows, each of its messages once.

    A history that does not begin with the one before is encoded anew.
    """

    def __init__(self, form: ArrayStyle) -> None:
        self.form = form
        self._reset_state()

    def _reset_state(self) -> None:
        self._done: list[Message] = []
        self._rows, self._ids = _ArrayBuilder(self.form), CallIds(self.form.ids)

    def elements(self, messages: Sequence[Message]) -> list[bytes]:
        """Return each element of the array for repaired `messages` as JSON."""
        done = len(self._done)
        if self._done != list(messages[:done]):
            self._reset_state()
            done = 0
        for message in messages[done:]:
            if message.role == "assistant":
                self._ids.begin_answer()
            parts = self.form.parts(message, self._ids)
            self._rows.take(parts, is_result=message.role == "tool")
            self._done.append(message)
        return self._rows.finish_elements()

    def array(self, messages: Sequence[Message]) -> bytes:
        """Return the array for repaired `messages` as JSON."""
        return b"[%b]" % b",".join(self.elements(messages))
