"""Locks: one flock target for each branch and one for the journal, never deleted (tape.md §5).

A lock lives as long as its descriptor, so a killed process leaves none behind, and a forked child
lets go of what it inherited. The file's text is for people only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple, Self
from weakref import WeakSet

from .clock import now, stamp
from .errors import Busy, InvalidName, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .disk import Folder


PATIENT = 30.0
"""Seconds to wait for the lock of the journal where nobody says how long: it is held for the time
of one line, so whoever holds it that long was stopped."""
_LONG = 1.0
"""Seconds after which it is told for whom."""
_POLL = 0.02
"""Seconds between two looks at a lock."""
_SAID = re.compile(r"process ([0-9]+) ")
_WHAT = {"refs": "the journal"}
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
    def take(cls, locks: Folder, name: str, *, wait: float = 0) -> Self:
        """Take the lock `name`, waiting for it up to so many seconds; raise Busy behind them."""
        fd = locks.file(name, os.O_RDWR | os.O_CREAT)
        try:
            _wait(fd, name, wait)
        except BaseException:
            os.close(fd)
            raise
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


def _wait(fd: int, name: str, seconds: float) -> None:
    """Return when the lock is ours; say who has it when that takes long."""
    begin, pause, is_told = monotonic(), 0.001, False
    while not _is_taken(fd):
        passed = monotonic() - begin
        if passed >= seconds:
            holder = _holder(fd)
            waited = f", {seconds:g} s were not enough" if seconds else ""
            raise Busy(
                f"{_WHAT.get(name, name)} is being written by {holder}{waited}: wait until it ends"
            )
        if passed >= _LONG and not is_told:
            _PATIENCE.get().told(f"waiting for {holder_of(name, fd)}")
            is_told = True
        sleep(min(pause, seconds - passed))
        pause = min(2 * pause, _POLL)


def holder_of(name: str, fd: int) -> str:
    """Return what to say of a lock that somebody holds."""
    return f"{_WHAT.get(name, f'branch {name}')}, held by {_holder(fd)}"


def _is_taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise WriteFailed(
            f"this file system does not honour locks ({error.strerror}): read-only"
        ) from error
    return True


def _holder(fd: int) -> str:
    """Return who holds a lock, as well as the system or the file's text tells."""
    said = os.pread(fd, 200, 0).decode(errors="replace").strip()
    pid = _pid_of(fd) or (found[1] if (found := _SAID.match(said)) else None)
    if pid is None:
        return said or "another process"
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        stopped = (
            f", stopped: `kill -CONT {pid}` lets it go on"
            if fields.get("State", "").startswith(("T", "t"))
            else ""
        )
        since = said.partition(" since ")[2]
        told = f" since {since}" if since and said.startswith(f"process {pid} ") else ""
        return f"process {pid}{told} ({fields.get('Name', '?')}{stopped})"
    return said or f"process {pid}"


def _pid_of(fd: int) -> str | None:
    """Return the process that holds a lock by what the kernel says; None where it says nothing."""
    inode = str(os.fstat(fd).st_ino)
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == inode:
                return words[4]
    return None


_HELD: WeakSet[Lock] = WeakSet()


def _let_go() -> None:
    for lock in list(_HELD):
        lock.close()


os.register_at_fork(after_in_child=_let_go)  # flock belongs to the descriptor, a copy keeps it


def is_held(tape: Folder, name: str) -> bool:
    """Tell whether somebody holds a lock of a tape, without a trace: no lock file is made."""
    try:
        with tape.sub("locks") as locks:
            fd = locks.file(name)
    except (OSError, InvalidName):  # no such lock, or a name that no lock has
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


class Patience(NamedTuple):
    """How long commands wait for locks that are held for a moment only, and who is told."""

    seconds: float = PATIENT
    told: Callable[[str], None] = lambda _: None
    """Is given a sentence once a second went by."""


_USUAL = Patience()
_PATIENCE: ContextVar[Patience] = ContextVar("patience", default=_USUAL)


@contextmanager
def patience(seconds: float, told: Callable[[str], None]) -> Iterator[None]:
    """Wait up to so many seconds for such locks while the block runs, and tell for whom."""
    before = _PATIENCE.set(Patience(seconds, told))
    try:
        yield
    finally:
        _PATIENCE.reset(before)


@contextmanager
def hold(locks: Folder, name: str, *, wait: float | None = None) -> Iterator[None]:
    """Hold the lock `name` while the block runs; see `patience` where no `wait` is given.

    Raises Busy where somebody else holds it for longer.
    """
    wait = _PATIENCE.get().seconds if wait is None else wait
    lock = Lock.take(locks, name, wait=wait)
    try:
        yield
    finally:
        lock.close()
