"""Which call a result answers, and what we call it: providers repeat, omit and misplace ids; pure.

Invariant: the same array always gives the same ids, and no two calls of it share one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PREFIX_DIGITS = 8


@dataclass(slots=True)
class _BoundToolCall:
    id: str
    name: str
    answered: bool = False


class _OpenCalls:
    """Calls in the order results are bound to them: newest answer first, its calls in order.

    Answered ones go when they come to the front, so that all calls together cost what they are.
    """

    def __init__(self) -> None:
        self._answers: list[tuple[int, deque[_BoundToolCall]]] = []

    def add(self, answer: int, call: _BoundToolCall) -> None:
        """Take a call of the answer with this number; numbers only grow."""
        if not self._answers or self._answers[-1][0] != answer:
            self._answers.append((answer, deque()))
        self._answers[-1][1].append(call)

    def first(self) -> _BoundToolCall | None:
        """Return the call whose turn it is, None when all are answered."""
        while self._answers:
            calls = self._answers[-1][1]
            while calls and calls[0].answered:
                calls.popleft()
            if calls:
                return calls[0]
            self._answers.pop()
        return None


class AnsweredCall(NamedTuple):
    """The call a result answers: our id, the tool's name, and whether there is such a call."""

    id: str
    name: str
    is_known: bool


def collect_answered_ids(array: Iterable[Any]) -> frozenset[str]:
    """Return the ids of calls that results of an array name, in the way of any API."""
    ids = (
        one
        for element in array
        for piece in _iter_pieces(element)
        for one in _iter_named_ids(piece)
    )
    return frozenset(one for one in ids if isinstance(one, str))


def _iter_pieces(element: Any) -> Iterator[dict[str, Any]]:
    if isinstance(element, dict):
        yield element
        for inside in (element.get("content"), element.get("parts")):
            pieces = inside if isinstance(inside, list) else [inside]
            yield from (piece for piece in pieces if isinstance(piece, dict))


def _iter_named_ids(piece: dict[str, Any]) -> Iterator[Any]:
    yield from (piece.get("tool_use_id"), piece.get("tool_call_id"))
    if "output" in piece:
        yield piece.get("call_id")
    for response in (piece.get("functionResponse"), piece.get("function_response")):
        if isinstance(response, dict):
            yield response.get("id")


class CallBinder:
    """The calls of one array so far. Ids are `c_<8 hex>_<i>`, made from what came before them.

    What results name by `answered` ids waits for those, and no result without an id takes it.
    """

    def __init__(self, answered: frozenset[str] = frozenset()) -> None:
        self._answered = answered
        self._seen = sha256()
        self._prefixes: set[str] = set()
        self._prefix, self._index, self._answer = "", 0, 0
        self._newest: dict[str, tuple[int, _OpenCalls, _BoundToolCall]] = {}
        """Of a provider's id: the newest answer that used it, its calls, and the last of them."""
        self._open: defaultdict[tuple[bool, str | None], _OpenCalls] = defaultdict(_OpenCalls)
        """All calls, or those without a provider's id; of all names (None), or of one."""

    def begin_answer(self, raw: bytes) -> None:
        """Tell that an answer begins; `raw` are the bytes it was read from."""
        self._prefix, self._index = self._build_prefix(raw), 0
        self._answer += 1

    def call(self, provider_id: str | None, name: str) -> str:
        """Return our id for a call of the answer that began last."""
        call = _BoundToolCall(f"c_{self._prefix}_{self._index}", name)
        self._index += 1
        ways = () if provider_id in self._answered else (True,)
        for any_id in ways if provider_id is not None else (True, False):
            for named in (None, name):
                self._open[any_id, named].add(self._answer, call)
        if provider_id is not None:
            answer, calls, _ = self._newest.get(provider_id, (0, _OpenCalls(), call))
            if answer != self._answer:
                calls = _OpenCalls()
            calls.add(self._answer, call)
            self._newest[provider_id] = self._answer, calls, call
        return call.id

    def result(self, provider_id: str | None, name: str | None = None) -> AnsweredCall:
        """Return the call a result answers; an id of no call when there is none."""
        call = self._find_call(provider_id, name)
        if call is None:
            prefix = self._build_prefix((provider_id or name or "").encode())
            return AnsweredCall(f"c_{prefix}_0", name or "", is_known=False)
        call.answered = True
        return AnsweredCall(call.id, call.name, is_known=True)

    def _find_call(self, provider_id: str | None, name: str | None) -> _BoundToolCall | None:
        if provider_id is not None and provider_id in self._newest:
            _, calls, last = self._newest[provider_id]
            return calls.first() or last
        return self._open[provider_id is None, name].first()

    def _build_prefix(self, raw: bytes) -> str:
        """Return 8 hex digits that stand for everything up to here, and for nothing else yet."""
        self._seen.update(raw)
        while (prefix := self._seen.hexdigest()[:_PREFIX_DIGITS]) in self._prefixes:
            self._seen.update(b"\n")
        self._prefixes.add(prefix)
        return prefix
