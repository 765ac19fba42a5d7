"""What a session has used and cost, for the status line and the side pane.

Usage is counted with each event, and read from the view where that was changed; the cost is read
from the tape in a task, and again once the path has become another one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tape.errors import TapeError

from ...errors import GongError
from ..draw.status_line import SessionUsage, measure_usage, update_usage
from .session_cost import SessionCost

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from tape.store.tape import Tape

    from ...agent.events import Event
    from ...agent.session import Session


class SessionMeter:
    """The usage and the cost of a session."""

    def __init__(
        self, session: Session, open_tape: Callable[[str], Tape], refresh: Callable[[], None]
    ) -> None:
        """`refresh` is called when the cost is known."""
        self._session, self._refresh = session, refresh
        self._cost = SessionCost(session, open_tape)
        self._reading: asyncio.Task[None] | None = None
        """Reads what the session has cost."""
        self.usage = SessionUsage()

    def take_event(self, event: Event) -> None:
        """Count what an event says was used."""
        self.usage = update_usage(self.usage, self._session, event)

    def measure_usage(self) -> None:
        """Count what the next call takes: the view was changed."""
        self.usage = measure_usage(self._session)

    def read_cost(self, tasks: asyncio.TaskGroup) -> None:
        """Read what the session has cost, in a task."""
        self._reading = tasks.create_task(self._read_cost())

    def read_cost_again(self, tasks: asyncio.TaskGroup) -> None:
        """Read it where the session has another path than the one that was read."""
        if self._cost.is_outdated():
            self.read_cost(tasks)

    def stop_reading(self) -> None:
        """Read no longer."""
        if self._reading is not None:
            self._reading.cancel()

    def format_cost(self) -> str:
        """Return the cost as text; empty while it is zero or unknown."""
        return self._cost.format()

    def list_texts(self) -> list[str]:
        """Return context usage and cost as texts, as far as they are known."""
        return [text for text in (self.usage.format_context(), self.format_cost()) if text]

    async def _read_cost(self) -> None:
        with suppress(GongError, TapeError, OSError):  # the next command that reads reports them
            await self._cost.measure()
        self._refresh()
