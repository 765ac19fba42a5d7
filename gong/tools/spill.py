"""The full output of a command: in memory while it is short, in a file if it is long.

A command that never stops writing fills no disk: what comes after `KEPT_BYTES` is only counted.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .settings import MAX_BYTES

if TYPE_CHECKING:
    from typing import BinaryIO

_PREFIX, _SUFFIX = "gong-bash-", ".log"
_OWN_HANDLES = "/proc/self/fd"
KEPT_BYTES = 1 << 30
"""Maximum bytes of a command's output in its file."""


class SpillFile:
    """Takes output as it comes, counts its lines, and can name a file that holds all of it.

    If the disk fails, the file is lost but the command continues: `failure` has the reason.
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
            self._flush_memory()

    def keep(self) -> str | None:
        """Return the path of a file that holds what is kept; None when there could be none."""
        if self.failure is None and not self._is_done:
            self._flush_memory()
            self._give_name()
        self._is_done = True
        self._close_file()
        return self._path

    def drop(self) -> None:
        """Remove the file."""
        self._close_file()
        if self._path is not None:
            Path(self._path).unlink(missing_ok=True)
            self._path = None

    def _flush_memory(self) -> None:
        try:
            file = self._file or self._open_file()
            file.write(self._memory)
            file.flush()
        except OSError as error:
            self.failure = error
            self.drop()
        self._memory.clear()

    def _open_file(self) -> BinaryIO:
        """Open the file: one without a name where the system can, so that a kill leaves nothing."""
        handle = self._open_nameless_file()
        if handle is None:
            handle, self._path = tempfile.mkstemp(_SUFFIX, _PREFIX, self._folder)
        self._file = os.fdopen(handle, "wb")
        return self._file

    def _open_nameless_file(self) -> int | None:
        if not hasattr(os, "O_TMPFILE") or not Path(_OWN_HANDLES).is_dir():
            return None
        try:
            return os.open(self._folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except OSError:  # not every file system can; a folder that is missing is told of later
            return None

    def _give_name(self) -> None:
        if self._file is None or self._path is not None:
            return
        path = f"{self._folder}/{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        try:
            handles = os.open(_OWN_HANDLES, os.O_RDONLY | os.O_DIRECTORY)
            try:
                # Python follows the link there, which stands for the file, only from a folder.
                os.link(str(self._file.fileno()), path, src_dir_fd=handles)
            finally:
                os.close(handles)
        except OSError as error:
            self.failure = error
        else:
            self._path = path

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                # Only a disk that already refused the last bytes can refuse them again.
                self._file.close()
            self._file = None
