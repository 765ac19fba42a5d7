"""Which call a result answers, and what we call it: providers repeat, omit and misplace ids; pure.

Invariant: the same array always gives the same ids, and no two calls of it share one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = 8


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    provider_id: str | None
    answered: bool = False


class Answered(NamedTuple):
    """The call a result answers: our id, the tool's name, and whether there is such a call."""

    id: str
    name: str
    is_known: bool


class Calls:
    """The calls of one array so far. Ids are `c_<8 hex>_<i>`, made from what came before them."""

    def __init__(self) -> None:
        self._seen = sha256()
        self._prefixes: set[str] = set()
        self._prefix, self._index = "", 0
        self._answer_ids: set[str] = set()
        self._newest: dict[str, list[_Call]] = {}
        """Calls of the newest answer that used a provider's id."""
        self._open: deque[list[_Call]] = deque()
        """Unanswered calls, one list for each answer, newest first."""

    def begin_answer(self, raw: bytes) -> None:
        """Tell that an answer begins; `raw` are the bytes it was read from."""
        self._prefix, self._index = self._new_prefix(raw), 0
        self._answer_ids = set()
        self._open.appendleft([])

    def call(self, provider_id: str | None, name: str) -> str:
        """Return our id for a call of the answer that began last."""
        call = _Call(f"c_{self._prefix}_{self._index}", name, provider_id)
        self._index += 1
        self._open[0].append(call)
        if provider_id is not None:
            if provider_id not in self._answer_ids:
                self._answer_ids.add(provider_id)
                self._newest[provider_id] = []
            self._newest[provider_id].append(call)
        return call.id

    def result(self, provider_id: str | None, name: str | None = None) -> Answered:
        """Return the call a result answers; an id of no call when there is none."""
        call = self._found(provider_id, name)
        if call is None:
            prefix = self._new_prefix((provider_id or name or "").encode())
            return Answered(f"c_{prefix}_0", name or "", is_known=False)
        self._answer(call)
        return Answered(call.id, call.name, is_known=True)

    def _found(self, provider_id: str | None, name: str | None) -> _Call | None:
        if provider_id is not None and provider_id in self._newest:
            calls = self._newest[provider_id]
            return next((call for call in calls if not call.answered), calls[-1])
        return next(self._nameless(provider_id, name), None)

    def _nameless(self, provider_id: str | None, name: str | None) -> Iterator[_Call]:
        """Yield open calls a result may mean when their ids do not tell, newest answer first."""
        for calls in self._open:
            for call in calls:
                if provider_id is not None and call.provider_id is not None:
                    continue
                if name is None or call.name == name:
                    yield call

    def _answer(self, call: _Call) -> None:
        if call.answered:
            return
        call.answered = True
        for calls in self._open:
            if call in calls:
                calls.remove(call)
                break
        self._open = deque(calls for calls in self._open if calls)

    def _new_prefix(self, raw: bytes) -> str:
        """Return 8 hex digits that stand for everything up to here, and for nothing else yet."""
        self._seen.update(raw)
        while (prefix := self._seen.hexdigest()[:_PREFIX]) in self._prefixes:
            self._seen.update(b"\n")
        self._prefixes.add(prefix)
        return prefix
