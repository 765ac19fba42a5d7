"""What a session says of the remote of its store: that it is behind, and by how much.

A store without a remote costs one look for a file; nothing of remotes is loaded then.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tape.remote import REGISTRY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from tape.remote.behind import BehindState
    from tape.store.store import Store

FLUSH_SECONDS = 5.0
"""How long the end of a program waits for what it wrote to be at the remote."""
_INTERVAL = 5.0
"""Seconds between two looks."""


class RemoteWatch:
    """How far the remote of a store is behind, looked at from time to time."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store, self._monotonic = store, monotonic
        self._looked_at: float | None = None
        self._text = ""

    def describe(self) -> str:
        """Return that it is behind, in a few words; "" if it is not, or only for a moment."""
        now = self._monotonic()
        if self._looked_at is None or now - self._looked_at >= _INTERVAL:
            self._looked_at = now
            state = _read_state(self._store)
            self._text = state.describe() if state and state.is_late(time.time()) else ""
        return self._text


def finish_pushes(store: Store, warn: Callable[[str], None], *, waits: bool) -> None:
    """Say that the remote of a store is behind, if it is when a session ended.

    With `waits`, what it wrote gets a moment to arrive, but where the last push failed.
    """
    state = _read_state(store)
    if state is None or not state.tapes:
        return
    is_late = state.is_late(time.time())
    finish = getattr(store.projection, "finish", None)
    if waits and finish is not None and not state.complaint:
        is_late = not finish(FLUSH_SECONDS) or is_late
        state = _read_state(store)
    if state is not None and state.tapes and (is_late or state.complaint):
        why = f" ({state.complaint})" if state.complaint else ""
        warn(f"{state.describe()}{why}; what was written is here, `tape push` brings it there")


def _read_state(store: Store) -> BehindState | None:
    if not (store.path / REGISTRY_NAME).exists():
        return None
    from tape.remote.behind import read_behind

    return read_behind(store.path)
