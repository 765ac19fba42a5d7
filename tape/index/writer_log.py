"""index.writers: which process changes which tape, noted in one short append, so no move waits.

Writing to SQLite costs pages and a lock; a line here costs a hundred bytes. Readers of the index
fold new lines into the table `writers`, and read those tapes on. What a line says, and what its
reader makes of it:

    7c3d5a0be1f24968                 first line: sixteen random digits, new after each truncation
    + TAPE PID SERIAL                from here on this process may change the tape: a row for it
    - TAPE PID SERIAL                it does so no longer: a row of no process, so that the tape is
                                     read once more, unless that was done in the same transaction
    * BEFORE AFTER                   `tapes/` changed, and no tape came or went; its times before
                                     and after that, in ns
    * BEFORE AFTER + TAPE FOLDER     the same, and a tape came there: it is read; FOLDER in hex
    * BEFORE AFTER - TAPE FOLDER     the same, and the tape is gone from there
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

A change of `tapes/` happens under that flock, between the two times of its line. So where each line
begins at the time at which the one before it ended, nothing else came or went, and nobody has to
compare all folders: what the lines name is all there is. Where a time is missing in between,
somebody else changed the folder, or was killed before the line, and all are compared. The time
after a change is set by us, to the nanosecond: that of a change by others in the same moment is one
of the kernel's ticks, so it differs.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import ExitStack, contextmanager, suppress
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

from ..errors import WriteFailed
from ..store.disk import Descriptor, open_file, write_bytes
from .reader import LOG_NAME, read_log_head

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = rb"([+-]) ([0-9a-f]{32}) ([0-9]{1,10}) ([0-9]{1,18})\Z"
_CHANGE = rb"\* ([0-9]{1,19}) ([0-9]{1,19})(?: ([+-]) ([0-9a-f]{32}) ((?:[0-9a-f]{2})+))?\Z"
_HEAD = rb"[0-9a-f]{16}\Z"


class ActiveWriter(NamedTuple):
    """A possible writer: the tape, the process, and the number of the index in that process.

    Process 0 is none: the tape has changed and has to be read once more.
    """

    tape: str
    pid: int
    serial: int


class FolderChange(NamedTuple):
    """A change of `tapes/`: its times before and after, and the tape that came or went."""

    before: int
    after: int
    tape: str = ""
    """"" where none did."""
    folder: str = ""
    comes: bool = False


class LogLine(NamedTuple):
    """One line of the log; without `writer` and `change` a damaged one."""

    offset: int
    begins: bool = False
    writer: ActiveWriter | None = None
    change: FolderChange | None = None


class WriterLog:
    """The log of one store; it is created by its first line."""

    def __init__(self, home: str) -> None:
        self._path = f"{home}/{LOG_NAME}"
        self._file: tuple[int, int] | None = None

    def append(self, writer: ActiveWriter, *, begins: bool) -> int:
        """Append one line and return its offset; raise OSError or WriteFailed."""
        line = f"{'+' if begins else '-'} {writer.tape} {writer.pid} {writer.serial}\n".encode()
        with self._lock(_APPENDING) as fd:
            status = os.fstat(fd)
            self._file = status.st_dev, status.st_ino
            return _append_line(fd, line)

    @contextmanager
    def hold_for_change(
        self, tapes: int, tape: str = "", folder: str = "", *, comes: bool = False
    ) -> Iterator[None]:
        """Append what the block changes in the open folder `tapes`, if it succeeds.

        Without the log, on a full disk, nothing is appended: then readers compare all folders.
        """
        with ExitStack() as held:
            fd = None
            with suppress(OSError):
                fd = held.enter_context(self._lock(_APPENDING))
            before = os.fstat(tapes).st_mtime_ns
            yield
            with suppress(OSError):  # the folder is another user's
                os.utime(tapes, ns=(os.fstat(tapes).st_atime_ns, time_ns()))
            line = f"* {before} {os.fstat(tapes).st_mtime_ns}"
            if tape:
                line += f" {'+' if comes else '-'} {tape} {os.fsencode(folder).hex()}"
            if fd is not None:
                with suppress(OSError, WriteFailed):
                    _append_line(fd, line.encode() + b"\n")

    def is_replaced(self) -> bool:
        """Return whether the file with our last line is gone."""
        with suppress(FileNotFoundError):
            status = os.stat(self._path)
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
            if line and (start > 0 or not re.match(_HEAD, line)):
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


_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT


def _append_line(fd: int, line: bytes) -> int:
    """Append a line to the locked log, behind its first one, and return its offset."""
    size = os.fstat(fd).st_size
    head = b"" if size else os.urandom(8).hex().encode() + b"\n"
    write_bytes(fd, head + line)
    return size + len(head)


def _parse_log_line(line: bytes, offset: int) -> LogLine:
    if (match := re.match(_LINE, line)) is not None:
        writer = ActiveWriter(match[2].decode(), int(match[3]), int(match[4]))
        return LogLine(offset, match[1] == b"+", writer)
    if (match := re.match(_CHANGE, line)) is not None:
        change = FolderChange(int(match[1]), int(match[2]))
        if match[3] is not None:
            folder = os.fsdecode(bytes.fromhex(match[5].decode()))
            change = change._replace(tape=match[4].decode(), folder=folder, comes=match[3] == b"+")
        return LogLine(offset, change=change)
    return LogLine(offset)
