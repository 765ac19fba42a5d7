"""index.writers: which process changes which tape, noted in one short append, so no move waits.

Writing to SQLite costs pages and a lock; a line here costs a hundred bytes. Readers of the index
fold new lines into the table `writers`, and read those tapes on. What a line says, and what its
reader makes of it:

    7c3d5a0be1f24968                 first line: sixteen random digits, new after each truncation
    + TAPE PID SERIAL                from here on this process may change the tape: a row for it
    - TAPE PID SERIAL                it does so no longer: a row of no process, so that the tape is
                                     read once more, unless that was done in the same transaction
    anything else                    a power failure left it: a row of no process for every tape

The index remembers the first line and how far it has read, in the transaction that changes the
rows: an older copy of the index reads the same lines again. An example, with a tape `a`, and the
rows after each line:

    7c3d5a0be1f24968    –
    + a 4711 1          a is written by process 4711
    + a 4712 1          … and by 4712
    - a 4711 1          a by 4712; a by no process: read once more
    (4712 is killed)    the same: the next reader finds 4712 dead, reads a, deletes both rows

Lines are appended under a flock, each
before the first byte of the change is written. The file is truncated only when it is large, all of
it was read, nobody writes, and the index itself was synced.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from ..store.disk import Descriptor, open_file, write_bytes
from .reader import LOG_NAME, read_log_head

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGE_LOG = 1 << 16
"""Bytes from which on the log is truncated when it is no longer needed."""
_LINE = re.compile(rb"([+-]) ([0-9a-f]{32}) ([0-9]{1,10}) ([0-9]{1,18})\Z")
_HEAD = re.compile(rb"[0-9a-f]{16}\Z")


class ActiveWriter(NamedTuple):
    """A possible writer: the tape, the process, and the number of the index in that process.

    Process 0 is none: the tape has changed and has to be read once more.
    """

    tape: str
    pid: int
    serial: int


class LogLine(NamedTuple):
    """One line of the log; `writer` is None for a damaged one."""

    offset: int
    begins: bool
    writer: ActiveWriter | None


class WriterLog:
    """The log of one store; it is created by its first line."""

    def __init__(self, home: Path) -> None:
        self._path = os.fspath(home / LOG_NAME)
        self._file: tuple[int, int] | None = None

    def append(self, writer: ActiveWriter, *, begins: bool) -> int:
        """Append one line and return its offset; raise OSError or WriteFailed."""
        line = f"{'+' if begins else '-'} {writer.tape} {writer.pid} {writer.serial}\n".encode()
        with self._lock(os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
            status = os.fstat(fd)
            self._file, size = (status.st_dev, status.st_ino), status.st_size
            if size == 0:
                head = os.urandom(8).hex().encode() + b"\n"
                line, size = head + line, len(head)
                write_bytes(fd, line)
                return size
            write_bytes(fd, line)
            return size

    def is_replaced(self) -> bool:
        """Return whether the file with our last line is gone."""
        with suppress(FileNotFoundError):
            status = os.stat(self._path)  # noqa: PTH116 (at each barrier)
            return self._file != (status.st_dev, status.st_ino)
        return True

    def read_position(self) -> tuple[int, int]:
        """Return the number in the first line, and the size; 0, 0 without a log."""
        return read_log_head(self._path)

    def read_lines(self, number: int, offset: int) -> tuple[tuple[int, int], list[LogLine]]:
        """Return the position of the end, and the lines behind another position.

        All lines where that is not one of this file. Raises OSError.
        """
        try:
            with self._lock(os.O_RDONLY) as fd:
                now, size = read_log_head(self._path)
                # Another number: the log was truncated, and what is in it now is all new.
                start = offset if now == number and offset <= size else 0
                data = os.pread(fd, size - start, start)
        except FileNotFoundError:
            return (0, 0), []
        lines = []
        for line in data.split(b"\n"):
            if line and (start > 0 or not _HEAD.match(line)):
                lines.append(_parse_log_line(line, start))
            start += len(line) + 1
        return (now, size), lines

    def truncate(self, position: tuple[int, int]) -> None:
        """Empty the file if this is still the position of its end; raise OSError."""
        with self._lock(os.O_RDWR) as fd:
            # A writer may have appended since the caller looked; its line must not go.
            if read_log_head(self._path) == position:
                os.ftruncate(fd, 0)

    @contextmanager
    def _lock(self, flags: int) -> Iterator[int]:
        with Descriptor(open_file(self._path, flags | os.O_NOFOLLOW)) as file:
            fcntl.flock(file.fd, fcntl.LOCK_SH if flags == os.O_RDONLY else fcntl.LOCK_EX)
            yield file.fd


def _parse_log_line(line: bytes, offset: int) -> LogLine:
    match = _LINE.match(line)
    if match is None:
        return LogLine(offset, False, None)
    writer = ActiveWriter(match[2].decode(), int(match[3]), int(match[4]))
    return LogLine(offset, match[1] == b"+", writer)
