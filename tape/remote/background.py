"""Push in the background: what is written to a tape that is at the remote already goes there, too.

A process of its own pushes, so a writer never waits: at the end of a writer, and while one writes
once a minute. A tape that was never pushed stays here, so nothing leaves that nobody sent.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from .behind import note_waiting
from .cursor import is_at_remote
from .observer import WriteObserver

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store.store import Store
    from ..store.tape import Tape
    from ..store.writer import Projection

_INTERVAL = 60.0
"""Seconds between two pushes of what a writer writes."""


class BackgroundPusher(WriteObserver):
    """A projection that starts `tape push` for tapes that the remote `name` has."""

    def __init__(
        self,
        store: Store,
        name: str,
        index: Projection | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(store, index)
        self._name, self._monotonic = name, monotonic
        self._began_at = monotonic()
        self._process: subprocess.Popen[bytes] | None = None

    def follow_barrier(self, tape: Tape) -> None:
        """Push what was written in the last minute."""
        if self._monotonic() - self._began_at >= _INTERVAL:
            self._start_push(tape.id)

    def follow_end(self, tape: Tape) -> None:
        """Push what was written."""
        self._start_push(tape.id)

    def _start_push(self, tape: str) -> None:
        self._began_at = self._monotonic()
        if self._process is not None:
            self._process.poll()  # it is no zombie then
        if not is_at_remote(self._store.path, self._name, tape):
            return
        note_waiting(self._store.path, self._name, tape)
        words = ["push", tape, "--to", self._name, "--known"]
        self._process = subprocess.Popen(  # noqa: S603 (this program)
            [sys.executable, "-m", "tape", "--store", str(self._store.path.absolute()), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def finish(self, seconds: float) -> bool:
        """Wait for the push that was started last, but no longer than this; say if it ended."""
        if self._process is not None:
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                return False
        return True
