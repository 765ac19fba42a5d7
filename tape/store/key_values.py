"""Small values by key, for settings and state of programs that use the store: one file a key.

    values = KeyValues(folder)
    values.set("editor/theme", b"dark")
    values.list("editor/")          # ["editor/theme"]

A key is any text whose file name has at most 240 characters. That name is the key with every byte
outside `a-z0-9_.-` as %XX (capitals too: some disks do not tell them apart) and a dot at the start
as %2E, so `ls` and `cat` show what is there:

    editor/theme   →   editor%2Ftheme

A value is whole or not there: it is written under a temporary name, synced and renamed. Files are
0600 and folders 0700. Writers take an exclusive lock one after the other, in this process and in
others; readers share it.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from ..errors import InvalidName, NotFound
from .disk import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MAX_NAME = 240  # with the ending of its temporary name within the usual 255
_LOCK = ".lock"
_PLAIN = re.compile(r"[^a-z0-9_.-]|\A\.")


class KeyValues:
    """Values in one folder, which is made at the first `set`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> bytes:
        """Return the value of a key; raise NotFound where it has none."""
        name = _build_file_name(key)
        with self._lock(fcntl.LOCK_SH) as folder:
            if folder is not None:
                with suppress(FileNotFoundError):
                    return folder.read(name)
        raise NotFound(f"no value has the key {key!r}")

    def exists(self, key: str) -> bool:
        """Return whether a key has a value."""
        name = _build_file_name(key)
        with self._lock(fcntl.LOCK_SH) as folder:
            return folder is not None and folder.has(name)

    def list(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with `prefix`, sorted."""
        with self._lock(fcntl.LOCK_SH) as folder:
            names = [] if folder is None else folder.names()
        keys = (_parse_file_name(name) for name in names if not name.startswith("."))
        return sorted(key for key in keys if key.startswith(prefix))

    def set(self, key: str, value: bytes) -> None:
        """Give a key a value, durably; raise WriteFailed where the disk refuses."""
        self.update(key, lambda _: value)

    def update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replace a value by what `change` makes of it, and return that; nobody writes between.

        None is no value, on both sides.
        """
        name = _build_file_name(key)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock(fcntl.LOCK_EX) as folder:
            assert folder is not None  # it was just made
            old = None
            with suppress(FileNotFoundError):
                old = folder.read(name)
            new = change(old)
            if new is not None:
                with suppress(FileNotFoundError):  # of a writer that was killed
                    folder.remove(_build_temporary_name(name))
                folder.write_whole(name, new, _build_temporary_name(name))
            elif old is not None:
                folder.remove(name)
            folder.sync()
        return new

    def delete(self, key: str) -> None:
        """Delete a key and its value; raise NotFound where there is none."""

        def require_value(old: bytes | None) -> None:
            if old is None:
                raise NotFound(f"no value has the key {key!r}")

        self.update(key, require_value)

    @contextmanager
    def _lock(self, kind: int) -> Iterator[Folder | None]:
        """Open the folder under a lock, None where it is missing and only read."""
        try:
            folder = Folder.open(self.folder)
        except FileNotFoundError:
            yield None
            return
        with folder:
            try:
                fd = folder.file(_LOCK, os.O_RDWR | os.O_CREAT if kind == fcntl.LOCK_EX else 0)
            except FileNotFoundError:  # nobody wrote yet, and a reader writes nothing
                yield folder
                return
            try:
                fcntl.flock(fd, kind)
                yield folder
            finally:
                os.close(fd)


def _build_file_name(key: str) -> str:
    """Return the file name of a key; raise InvalidName where it cannot have one."""
    data = key.encode("utf-8", "surrogatepass")
    name = _PLAIN.sub(lambda char: f"%{ord(char[0]):02X}", data.decode("latin-1"))
    if not key or len(name) > _MAX_NAME:
        raise InvalidName("key", key, f"its file name must have 1 to {_MAX_NAME} characters")
    return name


def _parse_file_name(name: str) -> str:
    return unquote_to_bytes(name).decode("utf-8", "surrogatepass")


def _build_temporary_name(name: str) -> str:
    return f".{name}.new"
