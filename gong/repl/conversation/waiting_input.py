"""Input that waits: queued in the session for the current run, or held for the next prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agent.events import MessageQueued
from ..draw.panels import QueuedLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...agent.events import Event
    from ...agent.session import Session


class WaitingInput:
    """The input that waits, in the order in which it was entered."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: list[str] = []
        """Entered while the run took no input."""
        self._queued: list[str] = []
        """Ids of queued messages, oldest first, delivered ones too."""

    def hold(self, text: str) -> None:
        """Hold words for the next prompt."""
        self._held.append(text)

    def take_event(self, event: Event) -> None:
        """Note which messages the session queues."""
        if isinstance(event, MessageQueued):
            self._queued.append(event.queued)

    def list_texts(self) -> tuple[str, ...]:
        """Return what waits: steering, follow-ups, and what is held."""
        return (*self._session.list_queued(), *self._held)

    def list_lines(self) -> tuple[QueuedLine, ...]:
        """Return the same, each with what becomes of it."""
        queued = (QueuedLine(one.origin, one.text) for one in self._session.list_waiting())
        return (*queued, *(QueuedLine("prompt", text) for text in self._held))

    def take_held(self) -> str:
        """Return what is held as one prompt, and hold it no longer; empty if nothing is."""
        held, self._held = self._held, []
        return "\n".join(held)

    def take_newest(self) -> str | None:
        """Return the words that were entered last, which wait no longer; None if none wait."""
        if self._held:
            return self._held.pop()
        return next(self._take_queued(reversed(self._order_queued())), None)

    def take_all(self) -> list[str]:
        """Return all that waits in the order in which it was entered; none waits any longer."""
        texts = [*self._take_queued(self._order_queued()), *self._held]
        self._held.clear()
        return texts

    def _order_queued(self) -> list[str]:
        """Return the ids of the messages that wait in the session, oldest first."""
        places = {id_: place for place, id_ in enumerate(self._queued)}
        waiting = [message.id for message in self._session.list_waiting()]
        return sorted(waiting, key=lambda id_: places.get(id_, -1))  # earlier programs queued some

    def _take_queued(self, ids: Iterable[str]) -> Iterator[str]:
        texts = map(self._session.withdraw, ids)
        return (text for text in texts if text is not None)
