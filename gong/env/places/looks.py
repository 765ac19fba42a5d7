"""What was seen at paths of a place a moment ago: where each leads, its state, a small file.

A call is judged, recorded and carried out, and each step asks the same of the same files: so one
request answers all. An answer counts for a second, and until something is changed or run through
the link. Writing trusts none: it says what it replaces, and no link below its root is followed.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .messages import RemoteState

LOOK_SECONDS = 1.0
"""How long an answer counts."""
MAX_LOOK_BYTES = 256 << 10
"""Larger files are fetched when they are read."""


class Look(NamedTuple):
    """What is at a path."""

    real: str
    """Where it leads through all links."""
    state: RemoteState | OSError
    """That of what it leads to, or why there is none."""
    data: bytes | None
    """The bytes of a small file that can be read."""

    @property
    def is_there(self) -> bool:
        """Whether it leads to something."""
        return not isinstance(self.state, OSError)

    @property
    def expectation(self) -> str:
        """What a write says that it replaces: a SHA-256, "-" for nothing, "none" for anything."""
        if self.data is not None:
            return hashlib.sha256(self.data).hexdigest()
        return "-" if isinstance(self.state, FileNotFoundError) else "none"


class Looks:
    """The answers of one place, by absolute path."""

    def __init__(self, seconds: float = LOOK_SECONDS) -> None:
        self._seconds = seconds
        self._seen: dict[str, tuple[float, Look]] = {}
        self._running = 0
        self.changes = 0
        """How often something may have changed; what was asked before the last time is old."""

    def find(self, path: str) -> Look | None:
        """Return what was seen at a path a moment ago."""
        at, look = self._seen.get(path, (0.0, None))
        return look if look is not None and time.monotonic() - at <= self._seconds else None

    def find_real(self, path: str) -> Look | None:
        """Return what was seen at a path that is no link and has none on its way."""
        look = self.find(path)
        return look if look is not None and look.real == path else None

    def note(self, path: str, look: Look, changes: int) -> None:
        """Keep an answer; `changes` is the number of them when it was asked for."""
        if changes == self.changes and not self._running:
            self._seen[path] = self._seen[look.real] = time.monotonic(), look

    def clear(self) -> None:
        """Forget all: something changes."""
        self.changes += 1
        self._seen.clear()

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Keep nothing while something runs that may change files at any time."""
        self._running += 1
        self.clear()
        try:
            yield
        finally:
            self._running -= 1
            self.clear()
