"""Limits of an answer on its way: its time as a whole, each step's, and the caller's own stop.

They hold while something of the answer is waited for, never while its reader works.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from ..errors import Aborted, ModelError, RequestTimeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_T = TypeVar("_T")


class AnswerDeadline:
    """For one answer and its steps; times are in seconds, None for as long as it takes."""

    def __init__(
        self,
        model: str,
        whole: float | None = None,
        step: float | None = None,
        abort: asyncio.Event | None = None,
    ) -> None:
        self.abort = abort
        self._model, self._whole, self._step = model, whole, step
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._watch: asyncio.Task[bool] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._over: ModelError | None = None

    def begin_answer(self) -> None:
        """Begin to count, and to listen."""
        self._set_timer("whole", self._whole, "was not done")
        if self.abort is not None:
            self._watch = asyncio.ensure_future(self.abort.wait())
            self._watch.add_done_callback(self._on_abort)

    def begin_step(self) -> None:
        """Count the time of the next step from now on."""
        self._set_timer("step", self._step, "was not done with a step")

    async def wait(self, what: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `what()` gives; when it is cancelled for its time, raises RequestTimeout.

        Raises Aborted when the caller stopped.
        """
        if self.abort is not None and self.abort.is_set():
            self._over = self._over or self._build_abort_error()
        if self._over is not None:
            raise self._over
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        asked_before = task.cancelling()
        self._waiting = task
        try:
            return await what()
        except asyncio.CancelledError:
            if self._over is not None and task.uncancel() <= asked_before:
                raise self._over from None
            raise
        finally:
            self._waiting = None

    def close(self) -> None:
        """Count and listen no longer."""
        for timer in self._timers.values():
            timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _set_timer(self, name: str, seconds: float | None, what: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()
        if seconds is not None:
            error = RequestTimeout(f"{self._model} {what} within {seconds:g} s")
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(seconds, self._stop_waiting, error)

    def _on_abort(self, watch: asyncio.Task[bool]) -> None:
        if not watch.cancelled():
            self._stop_waiting(self._build_abort_error())

    def _build_abort_error(self) -> Aborted:
        return Aborted(f"the answer of {self._model} was stopped")

    def _stop_waiting(self, error: ModelError) -> None:
        if self._over is None:
            self._over = error
            if self._waiting is not None:
                self._waiting.cancel()
