"""Changes of files below one folder, applied all or none; blocking functions.

First, every new content is written and synced as a temporary file; then the files are swapped, and
old files are kept until the last swap. If a step fails, all are undone. Folders are opened one by
one below the root and no link is followed, so that none can lead out of it, not even one that is
created meanwhile.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .protocol import Refused
from .scanner import opened_below

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .protocol import FileChange

NEW_FILE_MODE, NEW_FOLDER_MODE = 0o666, 0o777
"""Before the umask takes its share, as with any program."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _FOLDER | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class _Staged:
    """A change that only needs to be swapped in."""

    change: FileChange
    folder: int
    """Descriptor of the file's folder."""
    name: str
    new: str
    """Name of the file with the new content."""
    kept: str
    """Temporary name of the old file."""


class _Undo:
    """Functions that undo the steps, the last one first."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Callable[[], object]]] = []

    def add(self, path: str, step: Callable[[], object]) -> None:
        """Add the undo function of a step for `path`."""
        self._steps.append((path, step))

    def run(self) -> tuple[str, ...]:
        """Undo all steps and return the files whose steps could not be undone."""
        left = []
        for path, step in reversed(self._steps):
            try:
                step()
            except OSError:
                # The other files can still be restored; this one is reported.
                left.append(path)
        return tuple(dict.fromkeys(left))


class _Folders:
    """Descriptors of the folders below one, each opened once."""

    def __init__(self, root: str, closing: ExitStack, undo: _Undo) -> None:
        self._closing = closing
        self._undo = undo
        self._root = root
        self._opened: dict[tuple[str, ...], int] = {(): _opened(root, _FOLDER, None, closing)}

    def at(self, names: tuple[str, ...]) -> int:
        """Return the descriptor of a folder, which is created if it is missing."""
        if names not in self._opened:
            above, name = self.at(names[:-1]), names[-1]
            try:
                self._opened[names] = _opened(name, _BELOW, above, self._closing)
            except FileNotFoundError:
                os.mkdir(name, NEW_FOLDER_MODE, dir_fd=above)
                self._undo.add(
                    "/".join((self._root, *names)), partial(os.rmdir, name, dir_fd=above)
                )
                self._opened[names] = _opened(name, _BELOW, above, self._closing)
        return self._opened[names]


def commit(root: str, changes: Sequence[FileChange]) -> Refused | None:
    """Make every change, or none of them and return why.

    `root` is a real path, as are those of the changes, all below it. A file that is no longer as
    the change has it before refuses the change (ESTALE).
    """
    undo = _Undo()
    at = root
    with ExitStack() as closing:
        try:
            folders = _Folders(root, closing, undo)
            staged = []
            for change in changes:
                at = change.path
                parts = Path(at).relative_to(root).parts
                staged.append(_stage(change, folders.at(parts[:-1]), parts[-1], undo))
            for one in staged:
                at = one.change.path
                _swap(one, undo)
        except BaseException as error:
            left = undo.run()
            if not isinstance(error, OSError):
                raise
            return Refused(error, at, left)
        for one in staged:
            _forget(one)
    return None


def write_below(root: str, path: str, data: bytes) -> None:
    """Write `data` to `path` atomically; both are real paths, `path` below `root`.

    A link on the way raises OSError, so that none put there meanwhile can lead out of `root`.
    """
    undo = _Undo()
    *folders, name = _parts(root, path)
    with ExitStack() as closing:
        try:
            folder = _Folders(root, closing, undo).at(tuple(folders))
            like = _status(name, folder)
            temporary = _written(name, folder, data, like, undo)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            undo.run()
            raise


def read_below(root: str, path: str) -> bytes:
    """Return the bytes of a regular file; both are real paths, `path` below `root`.

    A link on the way raises OSError.
    """
    _parts(root, path)
    with open(path, "rb", opener=partial(opened_below, root)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", path)
        return file.read()


def _parts(root: str, path: str) -> tuple[str, ...]:
    """Return the names from `root` to `path`; `root` itself is a folder, and no file."""
    parts = Path(path).relative_to(root).parts
    if not parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return parts


def _opened(path: str, flags: int, above: int | None, closing: ExitStack) -> int:
    handle = os.open(path, flags, dir_fd=above)
    closing.callback(os.close, handle)
    return handle


def _status(name: str, folder: int) -> os.stat_result | None:
    """Return the status of a file that may be written, None where there is none."""
    try:
        handle = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
    finally:
        os.close(handle)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", name)
    return status


def _written(name: str, folder: int, data: bytes, like: os.stat_result | None, undo: _Undo) -> str:
    """Return the name of a new file in the folder that holds `data`, synced."""
    new = f".gong-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(new, flags, NEW_FILE_MODE, dir_fd=folder)
    undo.add(name, partial(_unlink, new, folder))
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        if like is not None:
            _take_after(handle, like)
        file.flush()
        os.fsync(handle)
    return new


def _stage(change: FileChange, folder: int, name: str, undo: _Undo) -> _Staged:
    staged = _Staged(change, folder, name, "", f".gong-{secrets.token_hex(8)}.old")
    status = _unchanged(staged)
    if change.after is None:
        return staged
    like = status if change.like is None else Path(change.like).lstat()
    return replace(staged, new=_written(change.path, folder, change.after, like, undo))


def _unchanged(staged: _Staged) -> os.stat_result | None:
    """Return the status of the file, None when there is none; ESTALE when it is another one.

    A rename asks only the folder for leave; a file that stays is asked for its own.
    """
    stays = staged.change.after is not None
    flags = (os.O_RDWR if stays else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(staged.name, flags, dir_fd=staged.folder)
    except FileNotFoundError:
        if staged.change.before is None:
            return None
        raise
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or file.read() != staged.change.before:
            raise OSError(errno.ESTALE, "the file has changed since it was read")
    return status


def _take_after(handle: int, like: os.stat_result) -> None:
    with suppress(PermissionError):
        # Only root may give a file away; anyone else's is his own already.
        os.fchown(handle, like.st_uid, like.st_gid)
    os.fchmod(handle, stat.S_IMODE(like.st_mode))


def _swap(one: _Staged, undo: _Undo) -> None:
    change, folder = one.change, one.folder
    if change.before is not None:
        _keep(one)
        undo.add(change.path, partial(_put_back, one))
    if change.after is not None:
        os.rename(one.new, one.name, src_dir_fd=folder, dst_dir_fd=folder)
        if change.before is None:
            undo.add(change.path, partial(_unlink, one.name, folder))


def _keep(one: _Staged) -> None:
    """Keep the old file under a temporary name; with hard links its path is never empty."""
    if one.change.after is not None:
        with suppress(OSError):
            os.link(one.name, one.kept, src_dir_fd=one.folder, dst_dir_fd=one.folder)
            return
    os.rename(one.name, one.kept, src_dir_fd=one.folder, dst_dir_fd=one.folder)


def _put_back(one: _Staged) -> None:
    os.rename(one.kept, one.name, src_dir_fd=one.folder, dst_dir_fd=one.folder)
    # Both names of one file: such a rename does nothing.
    _unlink(one.kept, one.folder)


def _forget(one: _Staged) -> None:
    if one.change.before is not None:
        with suppress(OSError):
            # All changes are done; a leftover file is not an error.
            _unlink(one.kept, one.folder)


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
