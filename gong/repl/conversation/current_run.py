"""The current run: whether one takes place, since when, and whether it takes input.

state      begins with                           words that are entered
---------  ------------------------------------  -------------------------------
none                                             begin a run
open       a prompt                              steer it, or are its follow-up
closing    its end, a stop; or a compaction,     wait for its end
           which takes no words at all
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.text import format_seconds

from ...agent.events import (
    CompactionEnd,
    CompactionStart,
    MessageStart,
    MessageUpdate,
    RetryPlan,
    RunEnd,
    RunFailure,
    RunStart,
    Warn,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...agent.events import Event


class CurrentRun:
    """What the conversation knows of the run that takes place, if one does."""

    def __init__(self, abort: Callable[[], None], clock: Callable[[], float]) -> None:
        """`abort` stops what the session runs; `clock` returns seconds."""
        self._abort, self._clock = abort, clock
        self._started_at: float | None = None
        self.is_closing = False
        """Whether the run takes no more input, because it ends, is stopped, or never took any."""
        self.is_stopping = False
        """Whether a stop was requested, even before the run started."""
        self.work_name = ""
        """What the run is called where it is a compaction, a handoff or a merge; else empty."""
        self._has_compacted = False
        self._retry: tuple[RetryPlan, float, str] | None = None
        """The retry that is waited for, when it is due, and why."""

    @property
    def is_active(self) -> bool:
        """Whether a run takes place."""
        return self._started_at is not None

    @property
    def seconds(self) -> float:
        """How long the run has taken; 0 without one."""
        return 0.0 if self._started_at is None else self._clock() - self._started_at

    @property
    def was_stopped_in_compaction(self) -> bool:
        """Whether the compaction was stopped before it set its anchor, so that nothing changed."""
        return bool(self.work_name) and self.is_stopping and not self._has_compacted

    def describe_retry(self) -> str:
        """Return when the model call that failed is made again; empty unless one has."""
        if self._retry is None:
            return ""
        plan, due_at, message = self._retry
        seconds = due_at - self._clock()
        when = f"in {format_seconds(seconds + 1)}" if seconds > 0 else "now"
        return f"retrying {when} · {plan.number} of {plan.limit} · Esc stops · {message}"

    def begin(self, work_name: str = "") -> None:
        """Note that a run begins; one with a name takes no input."""
        self._started_at, self.is_stopping = self._clock(), False
        self.work_name, self.is_closing = work_name, bool(work_name)
        self._has_compacted = False

    def stop(self) -> None:
        """Stop the run; one that has not started yet is stopped as it does."""
        self.is_closing = self.is_stopping = True
        self._abort()

    def end(self) -> None:
        """Note that the run is over."""
        self._started_at, self.work_name = None, ""

    def take_event(self, event: Event) -> None:
        """Follow the run as soon as its event is sent, before the event is shown."""
        match event:
            case Warn(retry=RetryPlan() as plan):
                message = event.message.rpartition(" · ")[0]
                self._retry = plan, self._clock() + plan.seconds, message
            case MessageStart() | MessageUpdate() | RunFailure() | RunEnd() | CompactionEnd():
                self._retry = None
            case _:
                pass
        match event:
            case RunStart() | CompactionStart() if self.is_stopping:
                self._abort()
            case RunEnd():
                self.is_closing = True
            case CompactionEnd():
                self._has_compacted = True
            case _:
                pass
