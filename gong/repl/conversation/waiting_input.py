"""Input that waits: queued in the session for the current run, or held for the next prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agent.events import MessageQueued

if TYPE_CHECKING:
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

    def take_held(self) -> str:
        """Return what is held as one prompt, and hold it no longer; empty if nothing is."""
        held, self._held = self._held, []
        return "\n".join(held)

    def take_newest(self) -> str | None:
        """Return the words that were entered last, which wait no longer; None if none wait."""
        if self._held:
            return self._held.pop()
        waiting = {message.id for message in self._session.list_waiting()}
        while waiting:
            newest = next((id_ for id_ in reversed(self._queued) if id_ in waiting), max(waiting))
            waiting.discard(newest)
            if (text := self._session.withdraw(newest)) is not None:
                return text
        return None
