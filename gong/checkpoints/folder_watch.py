"""What changed below some folders since it was asked last, as Linux tells it (inotify).

The kernel queues an event before the system call that caused it returns: when a command has ended,
all that it did is in the queue. A name in the queue has only perhaps changed; whoever asks looks.

    what happened                                    the report
    -----------------------------------------------  -------------------------------------
    a file was written, made, moved, deleted         its path
    its mode or times changed                        its path
    a folder was made, moved, deleted or changed     its path, as that of a folder
    more than fits into the queue, or it was closed  None: everything may have changed

Not told: writes through another name of the same file outside of the folders (a hard link), and
what another machine does to a shared folder. Elsewhere than on Linux there is no watch.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import NamedTuple, Self

_CLOSE_WRITE, _MODIFY, _ATTRIB = 0x8, 0x2, 0x4
_MOVES, _CREATE, _DELETE, _SELF = 0xC0, 0x100, 0x200, 0xC00
_ONLY_FOLDERS, _NO_LINKS = 0x0100_0000, 0x0200_0000
_WANTED = _CLOSE_WRITE | _MODIFY | _ATTRIB | _MOVES | _CREATE | _DELETE | _SELF
_UNMOUNTED, _OVERFLOW, _REMOVED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x4000_0000
_HEADER = struct.Struct("iIII")
_BUFFER = 1 << 18
MAX_FOLDERS = 8192
"""Folders that are watched at most: the system has a limit for all programs of a user."""


class WatchEvent(NamedTuple):
    """A name that may have changed."""

    path: str
    """Relative to the top folder; "" is that itself."""
    is_folder: bool


class FolderWatch:
    """Watches folders below one; close it."""

    def __init__(self, fd: int, top: str) -> None:
        self.folders: dict[str, int] = {}
        """Watched folders, relative to the top one, which is ""."""
        self._fd, self._top = fd, top
        self._names: dict[int, str] = {}

    @classmethod
    def open(cls, top: str) -> Self | None:
        """Return a watch without folders; None where the system has none to give."""
        if sys.platform != "linux":
            return None
        try:
            fd = _load_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            return None
        return cls(fd, top) if fd >= 0 else None

    def add_folder(self, path: str) -> bool:
        """Watch a folder, without those in it; return False if the system refuses."""
        name = os.fsencode(f"{self._top}/{path}")
        flags = _WANTED | _ONLY_FOLDERS | _NO_LINKS
        number = _load_libc().inotify_add_watch(self._fd, name, flags)
        if number < 0 or len(self.folders) >= MAX_FOLDERS:
            return False
        self.folders[path], self._names[number] = number, path
        return True

    def read_events(self) -> set[WatchEvent] | None:
        """Return what may have changed since the last use; None where that is not known."""
        events: set[WatchEvent] = set()
        while True:
            try:
                data = os.read(self._fd, _BUFFER)
            except BlockingIOError:
                return events
            except OSError:
                return None
            at = 0
            while at < len(data):
                number, mask, _, length = _HEADER.unpack_from(data, at)
                name = data[at + _HEADER.size : at + _HEADER.size + length].rstrip(b"\0")
                at += _HEADER.size + length
                folder = self._names.get(number)
                if mask & (_OVERFLOW | _UNMOUNTED | _REMOVED | _SELF) or folder is None:
                    return None
                path = f"{folder}/{os.fsdecode(name)}" if folder else os.fsdecode(name)
                events.add(WatchEvent(path, bool(mask & _IS_FOLDER)))

    def close(self) -> None:
        """Watch nothing any more; closing twice is allowed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


_libc: list[ctypes.CDLL] = []


def _load_libc() -> ctypes.CDLL:
    if not _libc:
        _libc.append(ctypes.CDLL(None, use_errno=True))
    return _libc[0]
