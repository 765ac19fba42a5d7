"""Waits that end when they take too long, with one timer for many of them.

`asyncio.timeout` sets and clears a timer for each wait, which costs as much as a streamed piece of
an answer does. Here a timer that has come too early is set again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

_T = TypeVar("_T")


class IdleTimeout:
    """For one wait at a time; to be closed when no more come."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._until = 0.0
        self._is_over = False

    async def wait(self, awaitable: Awaitable[_T], seconds: float) -> _T:
        """Return what `awaitable` gives; raises TimeoutError when it takes longer."""
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        asked_before = task.cancelling()
        self._task, self._until = task, self._loop.time() + seconds
        self._is_over = False
        if self._timer is None or self._timer.when() > self._until:
            self._set_timer()
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self._is_over and task.uncancel() <= asked_before:
                raise TimeoutError from None
            raise
        finally:
            self._task = None

    def close(self) -> None:
        """Clear the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self.close()
        self._timer = self._loop.call_at(self._until, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._task is None:
            return
        if self._loop.time() < self._until:
            self._set_timer()
            return
        self._is_over = True
        self._task.cancel()
