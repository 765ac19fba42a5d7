"""Locks: one flock target for each branch and one for the journal, never deleted (tape.md §5).

A lock lives as long as its descriptor, so a killed process leaves none behind, and a forked child
lets go of what it inherited. The file's text is for people only.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from .clock import now, stamp
from .errors import Busy, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .disk import Folder


_TEXT = 63  # always as long: cutting a file back makes the next sync wait for its blocks


class Lock:
    """An exclusive lock, held from construction to `close`."""

    __slots__ = ("__weakref__", "_fd", "name")

    def __init__(self, fd: int, name: str) -> None:
        self._fd, self.name = fd, name
        _HELD.add(self)

    @property
    def held(self) -> bool:
        """Tell whether it is held still, and by this process."""
        return self._fd >= 0

    @classmethod
    def take(cls, locks: Folder, name: str, *, wait: bool = False) -> Self:
        """Take the lock `name`; raise Busy when somebody holds it and `wait` is False."""
        fd = locks.file(name, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            holder = os.pread(fd, 200, 0).decode(errors="replace").strip()
            os.close(fd)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise Busy(
                    f"{name} is being written by {holder or 'another process'}: wait until it ends"
                ) from error
            raise WriteFailed(
                f"this file system does not honour locks ({error.strerror}): read-only"
            ) from error
        with suppress(OSError):  # a full disk keeps nobody out
            text = f"process {os.getpid()} since {stamp(now())}"
            os.pwrite(fd, text.ljust(_TEXT).encode() + b"\n", 0)
        return cls(fd, name)

    def close(self) -> None:
        """Let go; doing so twice is fine."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
            _HELD.discard(self)


_HELD: WeakSet[Lock] = WeakSet()


def _let_go() -> None:
    for lock in list(_HELD):
        lock.close()


os.register_at_fork(after_in_child=_let_go)  # flock belongs to the descriptor, a copy keeps it


@contextmanager
def hold(locks: Folder, name: str, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock `name` while the block runs."""
    lock = Lock.take(locks, name, wait=wait)
    try:
        yield
    finally:
        lock.close()
