"""Ids and names of tool calls for each API: ours are mapped one to one; pure.

Invariant: in one array no two calls have the same id, and each result has the id of its call. The
ids of a history never depend on what comes after it.

From messages to one API's array as bytes, each message encoded once: pure but for its memory.

Invariant: the array of a longer history begins with the bytes of the shorter one's, up to what
its last turn still gathers. What an array costs is the messages that are new in it.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from ..context.view import MessageSnapshot
from .wire import WireObject, encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..context.view import Message


_ID_DIGEST_DIGITS = 12
_SAFE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class IdRule(Struct, frozen=True):
    """The ids an API accepts: characters (a regular expression's class), and length."""

    characters: str
    longest: int
    exact: bool = False
    """Always `longest` characters, never fewer."""

    def can_send(self, call_id: str) -> bool:
        """Return whether an id can be sent unchanged."""
        least = self.longest if self.exact else 1
        return re.fullmatch(f"{self.characters}{{{least},{self.longest}}}", call_id) is not None


PLAIN_CHARACTERS = r"[a-zA-Z0-9_-]"
ANTHROPIC_IDS = IdRule(PLAIN_CHARACTERS, 64)
VISIBLE_CHARACTERS = r"[!-~]"
OPENAI_CHAT_IDS = IdRule(VISIBLE_CHARACTERS, 40)
OPENAI_RESPONSES_IDS = IdRule(VISIBLE_CHARACTERS, 64)
MISTRAL_IDS = IdRule(r"[a-zA-Z0-9]", 9, exact=True)
GEMINI_IDS = IdRule(VISIBLE_CHARACTERS, 64)


class BoundCall(NamedTuple):
    """A call's id on the wire, and what its result needs of it."""

    id: str
    kind: str = ""
    """A word of the format's own."""
    is_wanted: bool = False
    """The provider's own id was asked for."""


class CallIds:
    """Gives each call an id of its own and its result the same one.

    A call that is repeated within an array, as providers do, gets another id the second time.
    """

    def __init__(self, rule: IdRule) -> None:
        self.rule = rule
        self._taken: set[str] = set()
        self._items: set[str] = set()
        self._open: defaultdict[str, deque[BoundCall]] = defaultdict(deque)

    def begin_answer(self) -> None:
        """Start an answer: following results belong to its calls."""
        self._open.clear()

    def call(self, call_id: str, preferred: object = None, kind: str = "") -> str:
        """Return the id a call is sent with: `preferred`, else its own, else a new one."""
        preferred = preferred if isinstance(preferred, str) else None
        sent_id = next(
            name for name in self._generate_ids(preferred or call_id) if name not in self._taken
        )
        self._taken.add(sent_id)
        self._open[call_id].append(BoundCall(sent_id, kind, preferred is not None))
        return sent_id

    def result(self, call_id: str) -> BoundCall:
        """Return the id of the call that a result answers; calls are answered in order."""
        waiting = self._open.get(call_id)
        return waiting.popleft() if waiting else BoundCall(next(self._generate_ids(call_id)))

    def is_first(self, item_id: str) -> bool:
        """Return whether an item's id is new: providers accept it only once."""
        if item_id in self._items:
            return False
        self._items.add(item_id)
        return True

    def _generate_ids(self, call_id: str) -> Iterator[str]:
        plain = re.sub(f"[^{self.rule.characters[1:]}", "_", call_id)
        if self.rule.can_send(plain):
            yield plain
        seed = call_id.encode("utf-8", "surrogatepass")
        for attempt in count():
            digest = sha256(seed + b"\n%d" % attempt if attempt else seed).hexdigest()
            if self.rule.exact:
                yield digest[: self.rule.longest]
            else:
                start = plain[: self.rule.longest - _ID_DIGEST_DIGITS - 1]
                yield f"{start}_{digest[:_ID_DIGEST_DIGITS]}"


def to_tool_name(name: str) -> str:
    """Return a name every API accepts: a model may have called a tool that cannot exist."""
    if _SAFE_NAME.fullmatch(name):
        return name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "_"


class ArrayTurn(NamedTuple):
    """An element that collects the parts of its neighbours in a list under `key`."""

    role: str
    key: str
    kind: str = ""
    """Separates turns of the same role that must not be merged."""


class ArrayPart(NamedTuple):
    """The part of one message in the array."""

    value: WireObject
    turn: ArrayTurn | None = None
    """None for an element of its own."""
    late: bool = False
    """Waits until all results of its batch are added."""
    short: str | None = None
    """The value under the turn's key if this part is the only one."""

    @property
    def role(self) -> str:
        """Who speaks; empty for an element without a role."""
        return self.turn.role if self.turn else str(self.value.get("role", ""))


class ArrayStyle(Protocol):
    """How an API's array is written."""

    ids: IdRule

    def parts(self, message: Message, ids: CallIds) -> Iterable[ArrayPart]:
        """Return the parts of a message, in order."""
        ...

    def place_part(self, before: str, part: ArrayPart) -> Iterable[ArrayPart]:
        """Return the parts to write for one after the role `before`, empty at the beginning.

        Usually the part alone; with another before it if it cannot follow; empty if it cannot be
        sent.
        """
        del before
        return (part,)

    def finish_element(self, element: bytes) -> bytes:
        """Return the last element as it may end an array."""
        return element


@dataclass(slots=True)
class _ArrayBuilder:
    """An unfinished array."""

    form: ArrayStyle
    elements: list[bytes] = field(default_factory=list)
    role: str = ""
    turn: ArrayTurn | None = None
    gathered: list[bytes] = field(default_factory=list)
    short: str | None = None
    late: list[ArrayPart] = field(default_factory=list)

    def take(self, parts: Iterable[ArrayPart], *, is_result: bool) -> None:
        """Append the parts of a message."""
        if not is_result:
            self.flush()
        for part in parts:
            if part.late:
                self.late.append(part)
            else:
                self._put_part(part)

    def flush(self) -> None:
        """Append the parts that waited for the end of a batch of results."""
        late, self.late = self.late, []
        for part in late:
            self._put_part(part)

    def _put_part(self, next_part: ArrayPart) -> None:
        for part in self.form.place_part(self.role, next_part):
            if part.turn is None or part.turn != self.turn:
                self.close()
            if part.turn is None:
                self.elements.append(encode_json(part.value))
            else:
                self.turn, self.short = part.turn, None if self.gathered else part.short
                self.gathered.append(encode_json(part.value))
            self.role = part.role

    def close(self) -> None:
        """End the open turn."""
        if self.turn is not None:
            content = b"[%b]" % b",".join(self.gathered)
            if self.short is not None:
                content = encode_json(self.short)
            role, key = self.turn.role.encode(), self.turn.key.encode()
            self.elements.append(b'{"role":"%b","%b":%b}' % (role, key, content))
        self.turn, self.gathered, self.short = None, [], None

    def finish_elements(self) -> list[bytes]:
        """Return the elements as if nothing follows; the array can still be extended."""
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

    A history that does not begin with the previous one is encoded again.
    """

    def __init__(self, form: ArrayStyle) -> None:
        self.form = form
        self._reset_state()

    def _reset_state(self) -> None:
        self._done: Sequence[Message] = ()
        self._rows, self._ids = _ArrayBuilder(self.form), CallIds(self.form.ids)

    def elements(self, messages: Sequence[Message]) -> list[bytes]:
        """Return each element of the array for repaired `messages` as JSON."""
        messages = messages if isinstance(messages, MessageSnapshot) else tuple(messages)
        done, self._done = self._done, ()  # where a message cannot be encoded, all begins again
        is_longer = isinstance(messages, MessageSnapshot) and messages.continues(done)
        if not done or not (is_longer or messages[: len(done)] == tuple(done)):
            self._reset_state()
            done = ()
        for message in messages[len(done) :]:
            if message.role == "assistant":
                self._ids.begin_answer()
            parts = self.form.parts(message, self._ids)
            self._rows.take(parts, is_result=message.role == "tool")
        self._done = messages
        return self._rows.finish_elements()

    def array(self, messages: Sequence[Message]) -> bytes:
        """Return the array for repaired `messages` as JSON."""
        return b"[%b]" % b",".join(self.elements(messages))
