"""A remote in a folder: a disk that several machines mount, or a drive that is carried around.

An object is a file of its key's name. It is written beside the others and linked: a link fails
where the name exists, on every file system that has links.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import NotFound, RemoteUnavailable
from ..store.disk import Descriptor, sync_file, write_bytes
from .remote import Listed, Remote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NEW = ".new-"


def _say_missing(path: Path) -> RemoteUnavailable:
    return RemoteUnavailable(f"there is no folder {path}: is it mounted? A new one has to be made")


class FolderRemote(Remote):
    """Objects as files below `path`, which must exist."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise _say_missing(path)
        self.path, self.url = path, path.as_uri() if path.is_absolute() else str(path)

    def create(self, key: str, data: bytes) -> bool:
        """Create an object by a hard link."""
        return self._place(key, data, is_new=True)

    def replace(self, key: str, data: bytes) -> None:
        """Replace the bytes of an object by a rename."""
        self._place(key, data, is_new=False)

    def _place(self, key: str, data: bytes, *, is_new: bool) -> bool:
        target = self.path / key
        new = target.with_name(f"{_NEW}{os.urandom(8).hex()}")
        try:
            if is_new and target.exists():
                return False
            self._make_folders(target.parent)
            self._write(new, data)
            try:
                if is_new:
                    os.link(new, target)
                else:
                    new.replace(target)
            except FileExistsError:
                return False
            finally:
                new.unlink(missing_ok=True)
            _sync_folder(target.parent)
        except OSError as error:
            raise self._say_unavailable(key, error) from error
        return True

    def _write(self, path: Path, data: bytes) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with Descriptor(fd):
            write_bytes(fd, data)
            sync_file(fd)

    def _make_folders(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        if self.path not in (folder, *folder.parents):
            raise FileNotFoundError(f"{self.path} is gone")
        for new in reversed(missing):
            new.mkdir(exist_ok=True)
            _sync_folder(new.parent)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes of a file, or a part of them."""
        try:
            with (self.path / key).open("rb") as file:
                file.seek(start)
                return file.read(-1 if end is None else max(end - start, 0))
        except FileNotFoundError as error:
            if self.path.is_dir():
                raise NotFound(f"the remote has no {key}") from error
            raise self._say_unavailable(key, error) from error
        except OSError as error:
            raise self._say_unavailable(key, error) from error

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the files below a folder, or those whose names begin so, in order of their keys."""
        folder = prefix.rpartition("/")[0]
        if not self.path.is_dir():
            raise _say_missing(self.path)
        yield from self._walk(folder, prefix, after)

    def _walk(self, folder: str, prefix: str, after: str) -> Iterator[Listed]:
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self.path / folder) as entries,
        ):
            # A folder sorts as its keys do: with the slash behind its name.
            keys = sorted(
                (f"{folder}/{entry.name}".lstrip("/") + ("/" if entry.is_dir() else ""), entry)
                for entry in entries
                if not entry.name.startswith(".")
            )
            for key, entry in keys:
                if not (key.startswith(prefix) or prefix.startswith(key)):
                    continue
                if key.endswith("/"):
                    if key > after or after.startswith(key):
                        yield from self._walk(key[:-1], prefix, after)
                elif key > after:
                    yield Listed(key, entry.stat().st_size)

    def now(self) -> int:
        """Return the time of the file system's clock: that of a file that is written now."""
        path = self.path / f"{_NEW}{os.urandom(8).hex()}"
        try:
            self._write(path, b"")
            try:
                return path.stat().st_mtime_ns // 1000
            finally:
                path.unlink()
        except OSError as error:
            raise self._say_unavailable("its clock", error) from error

    def _say_unavailable(self, key: str, error: OSError) -> RemoteUnavailable:
        return RemoteUnavailable(f"{self.path}: {key}: {error.strerror or error}")


def _sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a network file system that syncs names by itself
            os.fsync(fd)
    finally:
        os.close(fd)
