"""The system calls durability is made of: folders held open, whole writes, syncs.

A `Folder` is a directory descriptor, so work goes on in the same place when people rename or move
it. Symbolic links inside a tape are refused: nothing here follows one.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager, nullcontext, suppress
from stat import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFSOCK, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Self

from .errors import InvalidName, Overtaken, SyncFailed, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULLSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone may lie
_READ = 1 << 16
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_KINDS = {
    S_IFDIR: "a folder",
    S_IFIFO: "a FIFO",
    S_IFSOCK: "a socket",
    S_IFCHR: "a device",
    S_IFBLK: "a device",
}
_REFUSALS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT})


def sync(fd: int) -> None:
    """Return when the file's bytes are on the medium; raise SyncFailed when they are not."""
    try:
        if _FULLSYNC is not None:
            fcntl.fcntl(fd, _FULLSYNC)
        else:
            os.fdatasync(fd)
    except OSError as error:
        raise SyncFailed(f"the disk did not keep what was written: {error.strerror}") from error


def append(fd: int, data: bytes, size: int) -> None:
    """Write `data` at the end of a file of `size` bytes in one write, whole or not at all.

    Raises Overtaken, and writes nothing, when the file is not as long as that.
    """
    expect(fd, size)
    try:
        done = os.write(fd, data)
    except OSError as error:
        _cut(fd, size)
        raise WriteFailed(f"nothing was written: {error.strerror}") from error
    if done != len(data):
        _cut(fd, size)
        raise WriteFailed("nothing was written: the disk is full")


def expect(fd: int, size: int) -> None:
    """Raise Overtaken when a file is not as long as it was left."""
    now = os.lseek(fd, 0, os.SEEK_END)
    if now != size:
        raise Overtaken(
            f"the file has {now} bytes, not {size}: somebody else wrote, so this writer stops"
        )


def _cut(fd: int, size: int) -> None:
    """Undo a failed append; if even that fails, the next append refuses and a reopening cuts it."""
    with suppress(OSError):
        os.ftruncate(fd, size)


@contextmanager
def _refusals(folder: str, name: str) -> Iterator[None]:
    """Raise WriteFailed in the place of the errors by which a disk says no."""
    try:
        yield
    except OSError as error:
        if error.errno in _REFUSALS:
            raise WriteFailed(f"{folder}/{name} cannot be written: {error.strerror}") from error
        raise


class Folder:
    """A directory held open; `durable` False skips every sync below it."""

    __slots__ = ("durable", "fd", "name")

    def __init__(self, fd: int, name: str, *, durable: bool = True) -> None:
        self.fd, self.name, self.durable = fd, name, durable

    @classmethod
    def open(cls, path: str | Path, *, durable: bool = True) -> Self:
        """Hold the directory at `path`; raise FileNotFoundError where there is none."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return cls(fd, os.fspath(path), durable=durable)

    def sub(self, name: str) -> Folder:
        """Hold the directory `name` in this one; links and paths are refused."""
        fd = os.open(checked(name), os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=self.fd)
        return Folder(fd, name, durable=self.durable)

    def make(self, name: str) -> Folder:
        """Make the directory `name` (0700) unless it is there, and hold it."""
        with suppress(FileExistsError), _refusals(self.name, name):
            os.mkdir(checked(name), 0o700, dir_fd=self.fd)
        return self.sub(name)

    def file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open the file `name` (0600 when made) and return its descriptor.

        Links are refused, and what is no regular file: see `open_file`.
        """
        with _refusals(self.name, name) if flags else nullcontext():
            return open_file(checked(name), flags | _FLAGS, dir_fd=self.fd)

    def read(self, name: str) -> bytes:
        """Return the bytes of the file `name`."""
        return _read_all(self.file(name))

    def create(self, name: str, data: bytes) -> None:
        """Make the file `name` with `data`, synced; raise FileExistsError where it stands."""
        fd = self.file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(fd, data)
            if self.durable:
                sync(fd)
        finally:
            os.close(fd)

    def names(self) -> list[str]:
        """Return the names in this directory, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 (a descriptor has no Path)

    def has(self, name: str) -> bool:
        """Tell whether something is called `name` here."""
        try:
            os.stat(checked(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def tree(self, name: str) -> Iterator[os.stat_result]:
        """Yield what stat says of a file, or of a folder and all in it; links are not followed."""
        top = os.stat(checked(name), dir_fd=self.fd, follow_symlinks=False)
        yield top
        for _, folders, files, fd in os.fwalk(name, dir_fd=self.fd) if S_ISDIR(top.st_mode) else ():
            for inner in (*folders, *files):
                with suppress(FileNotFoundError):  # gone meanwhile
                    yield os.stat(inner, dir_fd=fd, follow_symlinks=False)

    def weight(self, name: str) -> int:
        """Return the bytes of a file, or of all files in a folder and below."""
        return sum(about.st_size for about in self.tree(name) if S_ISREG(about.st_mode))

    def move(self, name: str, to: Folder, new: str) -> None:
        """Rename `name` into another folder, and sync both."""
        with _refusals(to.name, new):
            os.rename(checked(name), checked(new), src_dir_fd=self.fd, dst_dir_fd=to.fd)
        to.sync()
        self.sync()

    def sync(self) -> None:
        """Return when the names in this directory are on the medium."""
        if not self.durable:
            return
        try:
            os.fsync(self.fd)
        except OSError as error:
            # Some file systems sync names by themselves and say so.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise SyncFailed(f"{self.name}: {error.strerror}") from error

    def close(self) -> None:
        """Let go of the directory; doing so twice is fine."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_file(path: str | Path, flags: int = os.O_RDONLY, *, dir_fd: int | None = None) -> int:
    """Open a regular file (0600 when made) and return its descriptor, without ever waiting.

    Raises OSError, saying what is there instead, for a folder, a FIFO, a socket or a device: who
    reads those may wait for ever, or read for ever.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600, dir_fd=dir_fd)
    mode = os.fstat(fd).st_mode
    if S_ISREG(mode):
        return fd
    os.close(fd)
    kind = _KINDS.get(S_IFMT(mode), "something else")
    why = errno.EISDIR if S_ISDIR(mode) else errno.EINVAL
    raise OSError(why, f"it is {kind}, not a file", os.fspath(path))


def read_file(path: str | Path) -> bytes:
    """Return the bytes of a regular file, also of one that a link leads to; see `open_file`."""
    return _read_all(open_file(path))


def _read_all(fd: int) -> bytes:
    parts = []
    try:
        while part := os.read(fd, _READ):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, in as many writes as it takes; raise WriteFailed when it cannot."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError as error:
        raise WriteFailed(f"could not write: {error.strerror}") from error


def overwrite(fd: int, data: bytes, offset: int) -> None:
    """Put all of `data` in the place of what stands at `offset`; raise WriteFailed."""
    rest = memoryview(data)
    try:
        while rest:
            done = os.pwrite(fd, rest, offset)
            rest, offset = rest[done:], offset + done
    except OSError as error:
        raise WriteFailed(f"could not write: {error.strerror}") from error


def checked(name: str) -> str:
    """Return `name` if it is one plain name, fit to be part of a path."""
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise InvalidName("name", name, "it must be one plain name")
    return name
