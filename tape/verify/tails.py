"""Torn tails: what stands behind the last whole line, and whether somebody is writing it now."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from ..errors import InvalidName
from .finding import Finding

if TYPE_CHECKING:
    from ..disk import Folder


def tail(
    tape: Folder, file: str, lock: str, start: int, end: int, line: int, on: tuple[str, ...]
) -> Finding:
    """Return what is to be said of the bytes `start` to `end`: torn, unless `lock` is held."""
    if is_held(tape, lock):
        message = f"{end - start} bytes of a line that is being written"
        return Finding("note", file, line, start, message, ())
    message = f"{end - start} bytes of an incomplete line; the next append puts them in quarantine"
    return Finding("torn", file, line, start, message, on)


def is_held(tape: Folder, lock: str) -> bool:
    """Tell whether somebody holds a lock, without a trace: no lock file is made."""
    try:
        with tape.sub("locks") as locks:
            fd = locks.file(lock)
    except (OSError, InvalidName):  # no such lock, or a name that no lock has
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
