"""Locks: one flock target for each branch and one for the journal (tape.md §5).

A lock lives as long as its descriptor, so a killed process leaves none behind, and a forked child
closes inherited locks. The file's text is for people only. Whoever holds a lock of a tape removes
its file, and the folder when it is empty, before releasing it: a small tape has no files beside its
own. So who gets a flock looks whether the file is still there, and else begins again; what a killed
process leaves, the next holder removes. Two uses, with different patience:

| lock | held | when it is busy |
|---|---|---|
| `locks/<branch>` | for the life of a writer | Busy at once, unless the caller waits |
| `locks/refs` | while one journal line is written | waits, as `limit_lock_wait` says, then Busy |

Two processes, A and B, on one branch:

    A  Writer.open            takes locks/main
    B  Writer.open("main")    Busy, with the number of A
    B  Writer.open()          Busy inside: takes locks/main.2, a new branch at its first append
    A  is killed              the kernel releases locks/main
    B  Writer.open("main")    takes it; the text in the file still names A until it is overwritten
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple, Self
from weakref import WeakSet

from ..clock import format_timestamp, read_clock
from ..errors import Busy, InvalidName, WriteFailed
from .disk import Descriptor, read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .disk import Folder

LOCKS_NAME = "locks"
"""The folder of a tape's lock files, while any is held."""
DEFAULT_LOCK_WAIT = 30.0
"""Default seconds to wait for the lock of the journal: it is held only while one line is written,
so a process that holds it for longer was stopped."""
_LONG = 1.0
"""Seconds of waiting after which the holder is reported."""
_POLL = 0.02
"""Seconds between attempts to take a lock."""
_SAID = r"process ([0-9]+) "
_WHAT = {"refs": "the journal"}
_TEXT = 63  # constant size: truncating a file makes the next sync wait for its blocks


class Lock(Descriptor):
    """An exclusive lock, held from construction to `close`, which removes its file.

    `locks` is the folder of the file, or -1 where the file stays; closed with the lock.
    """

    __slots__ = ("__weakref__", "_locks", "changes", "name")

    def __init__(self, fd: int, name: str, locks: int = -1, changes: int = 0) -> None:
        super().__init__(fd)
        self.name = name
        self.changes = changes
        """What `Folder.follow` of the tape returned: with another number it is no lock of it."""
        self._locks = locks
        _HELD.add(self)

    @property
    def is_held(self) -> bool:
        """Return whether this process still holds it."""
        return self.fd >= 0

    def close(self) -> None:
        """Remove the file, then release the lock; closing twice is allowed."""
        if self._locks >= 0:
            with suppress(OSError):  # a folder that cannot be written any more
                os.unlink(self.name, dir_fd=self._locks)
                os.rmdir(f"../{LOCKS_NAME}", dir_fd=self._locks)  # fails while others are in it
        self.release()

    def release(self) -> None:
        """Release the lock and leave its file: also in a child, whose parent holds it still."""
        super().close()
        locks, self._locks = self._locks, -1
        if locks >= 0:
            os.close(locks)

    @classmethod
    def take(cls, folder: Folder, name: str, *, wait: float = 0) -> Self:
        """Take the lock `name` in a folder, waiting up to `wait` seconds; then raise Busy.

        The file stays.
        """
        return cls(_open_locked_file(folder, name, wait), name)

    @classmethod
    def take_in(cls, tape: Folder, name: str, *, wait: float = 0) -> Self:
        """Take the lock `name` of a tape, or of a store, as `take` does; the file goes with it."""
        until = monotonic() + wait
        while True:
            changes = tape.follow()
            # The last holder of another lock may have removed the folder in between.
            with suppress(FileNotFoundError), tape.make(LOCKS_NAME) as locks:
                left = max(until - monotonic(), 0)
                fd = _open_locked_file(locks, name, left)
                if tape.follow() == changes:
                    return cls(fd, name, os.dup(locks.fd), changes)
                os.close(fd)  # the tape was archived or unpacked just now
                continue
            if tape.follow() == changes and os.fstat(tape.fd).st_nlink == 0:
                raise FileNotFoundError(errno.ENOENT, "the folder was removed", tape.name)


def _open_locked_file(locks: Folder, name: str, wait: float) -> int:
    """Return the descriptor of a locked file that is in the folder; raise Busy."""
    until = monotonic() + wait
    while True:
        fd = locks.file(name, os.O_RDWR | os.O_CREAT)
        try:
            _wait_for_lock(fd, name, max(until - monotonic(), 0))
        except BaseException:
            os.close(fd)
            raise
        if os.fstat(fd).st_nlink:
            break
        os.close(fd)  # its holder removed it
    with suppress(OSError):  # a full disk does not prevent locking
        text = f"process {os.getpid()} since {format_timestamp(read_clock())}"
        os.pwrite(fd, text.ljust(_TEXT).encode() + b"\n", 0)
    return fd


def _wait_for_lock(fd: int, name: str, seconds: float) -> None:
    """Wait for the lock; report its holder if that takes long."""
    begin, pause, has_reported = monotonic(), 0.001, False
    while not try_flock(fd):
        passed = monotonic() - begin
        if passed >= seconds:
            holder = _describe_holder(fd)
            waited = f", {seconds:g} s of waiting were not enough" if seconds else ""
            raise Busy(
                f"{_WHAT.get(name, name)} is being written by {holder}{waited}: wait until it ends"
            )
        if passed >= _LONG and not has_reported:
            what = f"{_WHAT.get(name, f'branch {name}')}, held by {_describe_holder(fd)}"
            _PATIENCE.get().report(f"waiting for {what}")
            has_reported = True
        sleep(min(pause, seconds - passed))
        pause = min(2 * pause, _POLL)


def try_flock(fd: int) -> bool:
    """Take a flock if it is free; return whether it was. Raises WriteFailed without flocks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise WriteFailed(
            f"this file system does not honour locks ({error.strerror}): read-only"
        ) from error
    return True


def _describe_holder(fd: int) -> str:
    """Return the process that holds a lock, by the kernel or by the file's text."""
    holder = os.pread(fd, 200, 0).decode(errors="replace").strip()
    pid = match[1] if (match := re.match(_SAID, holder)) else None
    # The text is stale if its writer was killed, and missing on a full disk: ask the kernel first.
    with suppress(OSError):
        inode = str(os.fstat(fd).st_ino)
        for line in read_file("/proc/locks").decode().splitlines():
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == inode:
                pid = words[4]
                break
    if pid is None:
        return holder or "another process"
    with suppress(OSError):
        status = read_file(f"/proc/{pid}/status").decode(errors="replace")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        # Ctrl+Z keeps the lock for ever: waiting does not help, resuming the process does.
        stopped = (
            f", stopped: `kill -CONT {pid}` resumes it"
            if fields.get("State", "").startswith(("T", "t"))
            else ""
        )
        since = holder.partition(" since ")[2]
        since_text = f" since {since}" if since and holder.startswith(f"process {pid} ") else ""
        return f"process {pid}{since_text} ({fields.get('Name', '?')}{stopped})"
    return holder or f"process {pid}"


_HELD: WeakSet[Lock] = WeakSet()


def _release_inherited_locks() -> None:
    for lock in list(_HELD):
        lock.release()


# The lock belongs to the open file, so a copy of the descriptor keeps it.
os.register_at_fork(after_in_child=_release_inherited_locks)


def is_flock_held(folder: Folder, name: str) -> bool:
    """Return whether a process holds the flock of a file; raise OSError if it cannot be opened."""
    with Descriptor(folder.file(name)) as file:
        try:
            fcntl.flock(file.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def is_lock_held(tape: Folder, name: str) -> bool:
    """Return whether a process holds a lock of a tape, without creating a lock file."""
    try:
        with tape.sub(LOCKS_NAME) as locks:
            return is_flock_held(locks, name)
    except (OSError, InvalidName):  # no such lock file, or an invalid name
        return False


def list_lock_names(tape: Folder) -> list[str]:
    """Return the names of the locks of a tape that are held, or were left by a killed process."""
    with suppress(FileNotFoundError), tape.sub(LOCKS_NAME) as locks:
        return locks.names()
    return []


class LockWait(NamedTuple):
    """How long to wait for locks that are held only briefly, and where to report waiting."""

    seconds: float = DEFAULT_LOCK_WAIT
    report: Callable[[str], None] = lambda _: None
    """Called with a message after a second of waiting."""


_USUAL = LockWait()
_PATIENCE: ContextVar[LockWait] = ContextVar("patience", default=_USUAL)


@contextmanager
def limit_lock_wait(seconds: float, report: Callable[[str], None]) -> Iterator[None]:
    """Wait up to `seconds` for such locks while the block runs; `report` gets the holder."""
    before = _PATIENCE.set(LockWait(seconds, report))
    try:
        yield
    finally:
        _PATIENCE.reset(before)


@contextmanager
def hold_flock(fd: int, name: str, *, wait: float | None = None) -> Iterator[None]:
    """Hold the flock of an open file, as `hold_lock` does; `name` says which in the error."""
    _wait_for_lock(fd, name, _PATIENCE.get().seconds if wait is None else wait)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


@contextmanager
def hold_lock(locks: Folder, name: str, *, wait: float | None = None) -> Iterator[None]:
    """Hold the lock `name` while the block runs; without `wait` as `limit_lock_wait` says.

    Raises Busy if another process holds it for longer.
    """
    with Lock.take(locks, name, wait=_PATIENCE.get().seconds if wait is None else wait):
        yield


@contextmanager
def hold_lock_in(tape: Folder, name: str, *, wait: float | None = None) -> Iterator[None]:
    """Hold a lock of a tape, or of a store, as `hold_lock` does; its file goes with it."""
    with Lock.take_in(tape, name, wait=_PATIENCE.get().seconds if wait is None else wait):
        yield
