"""A served copy of a store that is elsewhere: pulled again and again while it is served.

A thread of its own asks the remote, by one request where nothing is new. What it brings is written
as by `tape pull`, so that pages and streams see it as what other programs write.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from ..clock import format_timestamp, read_clock
from ..errors import Busy, RemoteUnavailable, TapeError
from ..remote.local_copy import open_copied_remote, pull_copy
from ..text import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..remote.remote import Remote

_END_SECONDS = 2.0
"""To wait for a pull at the end; one that is cut off is continued by the next."""


class PullNote(NamedTuple):
    """What pages say of the last pull."""

    text: str
    """"" before the first one."""
    is_wrong: bool = False
    """Whether what is shown may be old, or lacks something."""


class Puller:
    """Pulls the copy in a folder every few seconds, from `start` to `close`."""

    def __init__(
        self,
        home: str,
        seconds: float,
        connect: Callable[[str], Remote] = open_copied_remote,
    ) -> None:
        self._home, self._seconds, self._connect = home, seconds, connect
        self._remote: Remote | None = None
        self._thread = Thread(target=self._run, name="pull", daemon=True)
        self._ending = Event()
        self._last = ""
        """When the remote answered last, as on a tape."""
        self.note = PullNote("")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, soon."""
        self._ending.set()
        self._thread.join(_END_SECONDS)

    def pull(self) -> None:
        """Pull once, and note how that went."""
        try:
            if self._remote is None:
                self._remote = self._connect(self._home)
            failed = pull_copy(self._home, self._remote)
        except Busy:  # another process does it
            return
        except RemoteUnavailable:
            self._disconnect()
            self.note = PullNote(f"The remote does not answer: {self._describe_age()}", True)
            return
        except (TapeError, OSError, sqlite3.Error):
            self._disconnect()
            self.note = PullNote(f"The last pull failed: {self._describe_age()}", True)
            return
        self._last = format_timestamp(read_clock())
        text = f"Pulled {_format_minute(self._last)}"
        if failed:
            text += f"; {format_count(failed, 'session')} could not be read there"
        self.note = PullNote(text, failed > 0)

    def _describe_age(self) -> str:
        if not self._last:
            return "this is what was here before"
        return f"this is as of {_format_minute(self._last)}"

    def _disconnect(self) -> None:
        if self._remote is not None:
            with suppress(TapeError, OSError):
                self._remote.close()
            self._remote = None

    def _run(self) -> None:
        while True:
            self.pull()
            if self._ending.wait(self._seconds):
                return self._disconnect()


def _format_minute(time: str) -> str:
    return f"{time[:10]} {time[11:16]} UTC"
