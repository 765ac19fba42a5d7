"""The whole output of a command: in memory while it is short, in a file once it is long.

A command that never stops writing fills no disk: what comes after `KEPT_BYTES` is only counted.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .settings import MAX_BYTES

if TYPE_CHECKING:
    from typing import BinaryIO

KEPT_BYTES = 1 << 30
"""Most bytes of one command's output that are kept in its file."""


class Spill:
    """Takes output as it comes, counts its lines, and can name a file that holds all of it.

    A disk that does not take it loses the file, never the command: `failure` says why then.
    """

    def __init__(self, folder: str) -> None:
        self.failure: OSError | None = None
        self.total_bytes = 0
        self._folder = folder
        self._memory = bytearray()
        self._file: BinaryIO | None = None
        self._path: str | None = None
        self._is_done = False
        self._line_feeds = 0
        self._last = b"\n"

    @property
    def total_lines(self) -> int:
        """Lines so far; one without its end counts."""
        return self._line_feeds + (self._last != b"\n")

    @property
    def is_whole(self) -> bool:
        """Whether all of it is kept."""
        return self.failure is None and self.total_bytes <= KEPT_BYTES

    def take(self, chunk: bytes) -> None:
        """Add what came."""
        room = max(KEPT_BYTES - self.total_bytes, 0)
        self.total_bytes += len(chunk)
        self._line_feeds += chunk.count(b"\n")
        self._last = chunk[-1:] or self._last
        if self.failure is not None:
            return
        self._memory += chunk[:room]
        if self._file is not None or len(self._memory) > MAX_BYTES:
            self._flush()

    def keep(self) -> str | None:
        """Return the path of a file that holds what is kept; None when there could be none."""
        if self.failure is None and not self._is_done:
            self._flush()
        self._is_done = True
        self._close()
        return self._path

    def drop(self) -> None:
        """Leave no file behind."""
        self._close()
        if self._path is not None:
            Path(self._path).unlink(missing_ok=True)
            self._path = None

    def _flush(self) -> None:
        try:
            file = self._file or self._opened()
            file.write(self._memory)
            file.flush()
        except OSError as error:
            self.failure = error
            self.drop()
        self._memory.clear()

    def _opened(self) -> BinaryIO:
        handle, self._path = tempfile.mkstemp(".log", "gong-bash-", self._folder)
        self._file = os.fdopen(handle, "wb")
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                # Only a disk that already refused the last bytes can refuse them again.
                self._file.close()
            self._file = None
