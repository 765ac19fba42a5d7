"""Push in the background: what is written to a tape that is at the remote already goes there, too.

A process of its own pushes, so a writer never waits: when one continues after its first barrier,
then once a minute, and when it ends. That process also holds the lease of what is being written. A
tape that was never pushed stays here, so nothing leaves that nobody sent.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from ..errors import TapeError
from ..own_program import build_own_words
from .behind import note_waiting
from .cursor import Cursor, is_at_remote
from .leases import LeaseKeeper
from .observer import WriteObserver

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from ..store.store import Store
    from ..store.tape import Tape
    from ..store.writer import Projection, WritableTape
    from .remote import Remote

_INTERVAL = 60.0
"""Seconds between two pushes of what a writer writes."""
_MAX_WAIT = 3.0
"""Seconds that the beginning of a writer waits for who holds a lease."""


class BackgroundPusher(WriteObserver):
    """A projection that starts `tape push` for tapes that the remote `name` has."""

    def __init__(
        self,
        store: Store,
        name: str,
        connect: Callable[[], Remote],
        index: Projection | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(store, index)
        self._name, self._connect, self._monotonic = name, connect, monotonic
        self._began_at: dict[str, float] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def find_holder(self, tape: WritableTape, branch: str, /) -> str | None:
        """Return who holds the lease of a branch that others pushed, too.

        None also where the remote does not answer soon: a session begins without it.
        """
        if not is_at_remote(self._store.path, self._name, tape.id, is_shared=True):
            return None
        answers: SimpleQueue[str | None] = SimpleQueue()
        replica = tape.replica()

        def ask() -> None:
            holder = None
            with (
                suppress(TapeError),
                Cursor.open(self._store.path, self._name),  # whose holder uses what is kept of it
                self._connect() as remote,
            ):
                holder = LeaseKeeper(remote, replica, "").find_holders(tape.id).get(branch)
            answers.put(None if holder is None else holder.holder)

        Thread(target=ask, daemon=True).start()
        with suppress(Empty):
            return answers.get(timeout=_MAX_WAIT)
        return None

    def follow_barrier(self, tape: Tape, _branches: AbstractSet[str], *, is_last: bool) -> None:
        """Push what was written in the last minute."""
        began_at = self._began_at.get(tape.id)
        if not is_last and (began_at is None or self._monotonic() - began_at >= _INTERVAL):
            self._start_push(tape.id)

    def follow_end(self, tape: Tape, *, is_failed: bool = False) -> None:  # noqa: ARG002
        """Push what was written, and synced: a push syncs before it reads."""
        self._start_push(tape.id)
        self._began_at.pop(tape.id, None)

    def _start_push(self, tape: str) -> None:
        self._began_at[tape] = self._monotonic()
        if self._process is not None:
            self._process.poll()  # it is no zombie then
        if not is_at_remote(self._store.path, self._name, tape):
            return
        note_waiting(self._store.path, self._name, tape)
        words = ["push", tape, "--to", self._name, "--known"]
        self._process = subprocess.Popen(
            build_own_words("tape", "--store", str(self._store.path.absolute()), *words),
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
