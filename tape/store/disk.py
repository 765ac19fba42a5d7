"""The system calls that durability is built on: open folders, whole writes, syncs.

A `Folder` is a directory descriptor, so work continues in the same folder when people rename or
move it. Symbolic links inside a tape are refused: no function here follows one.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager, nullcontext, suppress
from stat import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFSOCK, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Self

from ..errors import InvalidName, Overtaken, SyncFailed, WriteFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULLSYNC: int | None = getattr(
    fcntl, "F_FULLFSYNC", None
)  # macOS: fsync alone does not flush the disk's cache
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


def sync_file(fd: int) -> None:
    """Sync a file to the medium; raise SyncFailed if that fails."""
    try:
        if _FULLSYNC is not None:
            fcntl.fcntl(fd, _FULLSYNC)
        else:
            os.fdatasync(fd)
    except OSError as error:
        raise SyncFailed(f"the disk did not keep what was written: {error.strerror}") from error


def append_bytes(fd: int, data: bytes, size: int) -> None:
    """Write `data` at the end of a file of `size` bytes in one write, whole or not at all.

    Raises Overtaken, and writes nothing, if the file has another size.
    """
    require_size(fd, size)
    try:
        done = os.write(fd, data)
    except OSError as error:
        _cut_back_file(fd, size)
        raise WriteFailed(f"nothing was written: {error.strerror}") from error
    if done != len(data):
        _cut_back_file(fd, size)
        raise WriteFailed("nothing was written: the disk is full")


def require_size(fd: int, size: int) -> None:
    """Raise Overtaken if a file does not have this size."""
    now = os.lseek(fd, 0, os.SEEK_END)
    if now != size:
        raise Overtaken(
            f"the file has {now} bytes, not {size}: another process wrote to it, "
            "so this writer stops"
        )


def _cut_back_file(fd: int, size: int) -> None:
    """Truncate after a failed append; if that fails too, the next append refuses."""
    with suppress(OSError):
        os.ftruncate(fd, size)


@contextmanager
def _raise_write_failed(folder: str, name: str) -> Iterator[None]:
    """Raise WriteFailed for errors by which a disk refuses to write."""
    try:
        yield
    except OSError as error:
        if error.errno in _REFUSALS:
            raise WriteFailed(f"{folder}/{name} cannot be written: {error.strerror}") from error
        raise


class Descriptor:
    """An open file or folder, closed by `close` or at the end of a `with` block."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        """Close it; closing twice is allowed."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Folder(Descriptor):
    """An open directory; `durable` False skips every sync below it."""

    __slots__ = ("durable", "name")

    def __init__(self, fd: int, name: str, *, durable: bool = True) -> None:
        super().__init__(fd)
        self.name, self.durable = name, durable

    @classmethod
    def open(cls, path: str | Path, *, durable: bool = True) -> Self:
        """Open the directory at `path`; raise FileNotFoundError if there is none."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return cls(fd, os.fspath(path), durable=durable)

    def sub(self, name: str) -> Folder:
        """Open the directory `name` in this one; links and paths are refused."""
        fd = open_folder(check_plain_name(name), dir_fd=self.fd)
        return Folder(fd, name, durable=self.durable)

    def make(self, name: str) -> Folder:
        """Create the directory `name` (0700) if it does not exist, and open it."""
        with suppress(FileExistsError), _raise_write_failed(self.name, name):
            os.mkdir(check_plain_name(name), 0o700, dir_fd=self.fd)
        return self.sub(name)

    def file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open the file `name` (0600 if created) and return its descriptor.

        Links are refused, and so is anything but a regular file: see `open_file`.
        """
        with _raise_write_failed(self.name, name) if flags else nullcontext():
            return open_file(check_plain_name(name), flags | _FLAGS, dir_fd=self.fd)

    def read(self, name: str) -> bytes:
        """Return the bytes of the file `name`."""
        return _read_descriptor(self.file(name))

    def create(self, name: str, data: bytes) -> None:
        """Create the file `name` with `data`, synced; raise FileExistsError if it exists."""
        fd = self.file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_bytes(fd, data)
            if self.durable:
                sync_file(fd)
        finally:
            os.close(fd)

    def write_whole(self, name: str, data: bytes, temporary: str) -> None:
        """Write the file `name` whole or not at all: as `temporary`, synced, then renamed.

        Does not sync this folder.
        """
        try:
            self.create(temporary, data)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self.fd)
            raise
        os.rename(temporary, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content; does not sync this folder."""
        import shutil

        try:
            shutil.rmtree(name, dir_fd=self.fd)
        except NotADirectoryError:
            os.unlink(name, dir_fd=self.fd)

    def choose_free_name(self, name: str) -> str:
        """Return `name`, or the first of `name.2`, `name.3`, … that is not in this folder."""
        free, k = name, 2
        while self.has(free):
            free, k = f"{name}.{k}", k + 1
        return free

    def names(self) -> list[str]:
        """Return the names in this directory, sorted."""
        return sorted(os.listdir(self.fd))  # noqa: PTH208 (a descriptor has no Path)

    def has(self, name: str) -> bool:
        """Return whether this directory has an entry `name`."""
        try:
            os.stat(check_plain_name(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def follow(self) -> int:
        """Return how often what is in this folder moved to another one: never, but for a tape."""
        return 0

    def stat(self, name: str) -> os.stat_result:
        """Return the stat result of an entry of this directory; links are not followed."""
        return os.stat(check_plain_name(name), dir_fd=self.fd, follow_symlinks=False)

    def walk_stats(self, name: str) -> Iterator[os.stat_result]:
        """Yield the stat results of a file, or of a folder and its content; follow no links."""
        top = os.stat(check_plain_name(name), dir_fd=self.fd, follow_symlinks=False)
        yield top
        for _, folders, files, fd in os.fwalk(name, dir_fd=self.fd) if S_ISDIR(top.st_mode) else ():
            for inner in (*folders, *files):
                with suppress(FileNotFoundError):  # deleted meanwhile
                    yield os.stat(inner, dir_fd=fd, follow_symlinks=False)

    def measure_bytes(self, name: str) -> int:
        """Return the size in bytes of a file, or of all files in a folder and below."""
        return sum(
            file_stat.st_size for file_stat in self.walk_stats(name) if S_ISREG(file_stat.st_mode)
        )

    def move(self, name: str, to: Folder, new: str) -> None:
        """Rename `name` into another folder, and sync both."""
        with _raise_write_failed(to.name, new):
            os.rename(
                check_plain_name(name), check_plain_name(new), src_dir_fd=self.fd, dst_dir_fd=to.fd
            )
        to.sync()
        self.sync()

    def move_beside(self, name: str, to: Folder) -> str:
        """Move `name` into another folder, and return its name there, with `.2` if it is taken."""
        free = to.choose_free_name(name)
        self.move(name, to, free)
        return free

    def sync_tree(self) -> None:
        """Sync every file and every name below this directory to the medium, each once."""
        if not self.durable:
            return
        for _, _, files, fd in os.fwalk(".", topdown=False, dir_fd=self.fd):
            below = Folder(os.dup(fd), self.name)
            with below:
                for name in files:
                    with Descriptor(below.file(name)) as file:
                        sync_file(file.fd)
                below.sync()

    def sync(self) -> None:
        """Sync the names in this directory to the medium."""
        if not self.durable:
            return
        try:
            os.fsync(self.fd)
        except OSError as error:
            # Some file systems sync names by themselves and refuse this.
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise SyncFailed(f"{self.name}: {error.strerror}") from error


def open_folder(path: str, *, dir_fd: int | None = None) -> int:
    """Open a directory, which is no link, and return its descriptor."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=dir_fd)


def open_file(path: str | Path, flags: int = os.O_RDONLY, *, dir_fd: int | None = None) -> int:
    """Open a regular file (0600 if created) and return its descriptor, without ever blocking.

    Raises OSError for a folder, a FIFO, a socket or a device, and names it: reading those may block
    for ever, or never end.
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
    """Return the bytes of a regular file; links are followed; see `open_file`."""
    return _read_descriptor(open_file(path))


def _read_descriptor(fd: int) -> bytes:
    parts = []
    try:
        while part := os.read(fd, _READ):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts)


def write_bytes(fd: int, data: bytes) -> None:
    """Write all of `data`, in as many writes as needed; raise WriteFailed if that fails."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError as error:
        raise WriteFailed(f"could not write: {error.strerror}") from error


def overwrite_bytes(fd: int, data: bytes, offset: int) -> None:
    """Overwrite the bytes at `offset` with `data`; raise WriteFailed."""
    rest = memoryview(data)
    try:
        while rest:
            done = os.pwrite(fd, rest, offset)
            rest, offset = rest[done:], offset + done
    except OSError as error:
        raise WriteFailed(f"could not write: {error.strerror}") from error


def check_plain_name(name: str) -> str:
    """Return `name` if it is one plain file name; raise InvalidName otherwise."""
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise InvalidName("name", name, "it must be one plain name")
    return name
