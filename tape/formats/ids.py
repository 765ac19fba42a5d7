"""Ids and names of tool calls as each API takes them: ours are mapped one to one; pure.

Invariant: in one array no two calls have the same id, and each result has the id of its call. The
ids of a history never depend on what comes after it.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

_ID_DIGEST_DIGITS = 12
_SAFE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class IdRule(Struct, frozen=True):
    """Which ids an API takes: characters (a regular expression's class), and how many."""

    characters: str
    longest: int
    exact: bool = False
    """Always `longest` characters, never fewer."""

    def can_send(self, call_id: str) -> bool:
        """Tell whether an id can be sent as it is."""
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
    """A call's id on the wire, and what its result must know of it."""

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
        """Forget the calls of the answer before: what follows answers the new one's."""
        self._open.clear()

    def call(self, call_id: str, wanted: object = None, kind: str = "") -> str:
        """Return the id a call is sent with: `wanted`, or else its own, where that can be had."""
        wanted = wanted if isinstance(wanted, str) else None
        given = next(
            name for name in self._generate_ids(wanted or call_id) if name not in self._taken
        )
        self._taken.add(given)
        self._open[call_id].append(BoundCall(given, kind, wanted is not None))
        return given

    def result(self, call_id: str) -> BoundCall:
        """Return what was given to the call that a result answers; calls go in order."""
        waiting = self._open.get(call_id)
        return waiting.popleft() if waiting else BoundCall(next(self._generate_ids(call_id)))

    def is_first(self, item_id: str) -> bool:
        """Tell whether an item's id is asked about for the first time: providers take it once."""
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
                yield f"{plain[: self.rule.longest - _ID_DIGEST_DIGITS - 1]}_{digest[:_ID_DIGEST_DIGITS]}"


def to_tool_name(name: str) -> str:
    """Return a name every API accepts: a model may have called a tool that cannot exist."""
    if _SAFE_NAME.fullmatch(name):
        return name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "_"
