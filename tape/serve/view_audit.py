"""Who looked at which session when, or changed it, for the audit of its remotes or of the store.

Pages that follow a session ask for it often: what one person sees of a tape within a minute is one
look. What cannot be recorded is refused.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ..clock import read_clock
from ..remote.audit import note_served_act

if TYPE_CHECKING:
    from ..remote.objects import AuditedAct
    from ..store.tape import Tape
    from .viewers import Viewer

_MINUTE = 60_000_000
_MAX_KEPT = 10_000


class ViewAudit:
    """What people do in pages with the tapes of one store."""

    def __init__(self, home: str) -> None:
        self._home = Path(home)
        self._lock = Lock()
        self._last: dict[tuple[str, str], int] = {}
        """When somebody last looked at a tape, in µs since 1970, oldest first."""

    def record(self, viewer: Viewer, tape: Tape) -> None:
        """Record a look; raise WriteFailed."""
        key, now = (viewer.name, tape.id), read_clock()
        with self._lock:
            if now - self._last.get(key, -_MINUTE) < _MINUTE:
                return
            note_served_act(self._home, "view", tape.id, now, viewer.name)
            self._last.pop(key, None)
            self._last[key] = now
            if len(self._last) > _MAX_KEPT:
                del self._last[next(iter(self._last))]

    def record_change(self, viewer: Viewer, did: AuditedAct, tape: Tape, why: str = "") -> None:
        """Record a change, before it is made; raise WriteFailed."""
        note_served_act(self._home, did, tape.id, read_clock(), viewer.name, why)
