"""How far a remote is behind: tapes that were written here and wait for a push in the background.

A tape waits from the end of its writer, or from when a push of what is being written begins, until
a push brought it. That is noted in the file of the cursor, which a process of its own may have
open: noting it never waits for more than a moment, and is left out where that is not enough.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Damaged
from ..text import format_count
from .cursor import locate_cursor
from .registry import read_registry

if TYPE_CHECKING:
    from pathlib import Path

_LATE_SECONDS = 15.0
"""A push that has not ended by then is late."""
_WAIT_SECONDS = 0.2


class BehindState(NamedTuple):
    """What a remote does not have yet."""

    remote: str
    tapes: int
    since: float
    """When the oldest of them was written, in seconds since 1970."""
    complaint: str
    """Why the last push failed; "" if none did."""

    def is_late(self, now: float) -> bool:
        """Return whether people have to know: a push failed, or takes long."""
        return self.tapes > 0 and (bool(self.complaint) or now - self.since >= _LATE_SECONDS)

    def describe(self) -> str:
        """Return it in a few words."""
        return f"{self.remote} behind by {format_count(self.tapes, 'tape')}"


def note_waiting(store: Path, remote: str, tape: str, now: float | None = None) -> None:
    """Record that a tape was written, and has to be pushed."""
    now = time.time() if now is None else now
    with suppress(sqlite3.Error), closing(_open_cursor_file(store, remote, "rw")) as database:
        database.execute("PRAGMA synchronous = OFF")
        with database:
            database.execute(
                "INSERT INTO waiting (tape, since, last) VALUES (?, ?, ?) "
                "ON CONFLICT (tape) DO UPDATE SET last = excluded.last",
                (tape, now, now),
            )


def note_failure(store: Path, remote: str, complaint: str) -> None:
    """Record why a push brought nothing of what waits."""
    with (
        suppress(sqlite3.Error),
        closing(_open_cursor_file(store, remote, "rw")) as database,
        database,
    ):
        database.execute("UPDATE waiting SET complaint = ?", (complaint,))


def read_behind(store: Path) -> BehindState | None:
    """Return how far the default remote is behind; None without one that is pushed to by itself."""
    try:
        registry = read_registry(store)
    except Damaged:
        return None
    name = registry.find_default()
    if name is None or registry.remotes[name].mode != "async":
        return None
    return read_remote_behind(store, name)


def read_remote_behind(store: Path, name: str) -> BehindState:
    """Return how far a remote is behind, as the file of its cursor says."""
    with suppress(sqlite3.Error), closing(_open_cursor_file(store, name, "ro")) as database:
        row = database.execute(
            "SELECT count(*), min(since), max(complaint) FROM waiting"
        ).fetchone()
        return BehindState(name, row[0], row[1] or 0.0, row[2] or "")
    return BehindState(name, 0, 0.0, "")


def _open_cursor_file(store: Path, remote: str, mode: str) -> sqlite3.Connection:
    address = f"{locate_cursor(store, remote).absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS)
