"""The cost of a whole session, for the status line: the sum that /cost and `gong cost` show.

That is of all branches: what a person has spent does not become less where a branch is left. What
was spent before is read from the tape once, in a thread, and again after the path has become
another one, as by a rewind; what is spent from then on is added to it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...context.agent_calls import list_tape_calls
from ...context.costs import Spend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.model.line import Entry
    from tape.store.tape import Tape

    from ...agent.session import Session

_CENTS_FROM = 1.0
"""From so many USD on, the cost is shown in cents."""
_MIN_SHOWN = 0.0005


class SessionCost:
    """What a session has cost, with its sub-agents."""

    def __init__(self, session: Session, open_tape: Callable[[str], Tape]) -> None:
        self._session, self._open_tape = session, open_tape
        self._earlier = Spend()
        """The calls on the tape when it was read."""
        self._counted = Spend()
        """What the session itself had spent then."""
        self._path: Sequence[Entry] | None = None

    def is_outdated(self) -> bool:
        """Whether the session has another path than the one that was read."""
        recorder = self._session.recorder
        return recorder is not None and recorder.path is not self._path

    async def measure(self) -> None:
        """Read the tape. What is spent meanwhile is added to it."""
        recorder, counted = self._session.recorder, self._session.run_state.spend
        if recorder is None:
            return
        self._path = recorder.path
        calls = await asyncio.to_thread(list_tape_calls, recorder.tape, self._open_tape)
        self._earlier = sum((call.spend for call in calls), Spend())
        self._counted = counted

    def format(self) -> str:
        """Return the cost as text; empty while it is zero or unknown, with `+` if partly so."""
        earlier, spend = self._earlier, self._session.run_state.spend
        amount = (earlier.cost or 0.0) + (spend.cost or 0.0) - (self._counted.cost or 0.0)
        if amount <= 0:
            return ""
        if amount < _MIN_SHOWN:
            return "<$0.001"
        text = f"${amount:,.2f}" if amount >= _CENTS_FROM else f"${amount:.3f}"
        return text + "+" * bool(earlier.unknown_calls or spend.unknown_calls)
