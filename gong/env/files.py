"""Files of this machine: read, write whole or not at all, list; plain blocking functions.

Only regular files are read or replaced: a pipe would wait for ever, a device has no end, and a
rename would put a file where a device was.

Changes of files below one folder, applied all or none; blocking functions.

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
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .protocol import ChangeRefusal, DirEntry
from .scanner import open_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from .protocol import FileChange


_CREATED_FILE_MODE = 0o666
"""Before the umask takes its share, as with any program that creates a file."""


def read_regular_file(path: str) -> bytes:
    """Return the bytes of a regular file; EINVAL for anything else."""
    with open(path, "rb", opener=_open_without_waiting) as file:
        _require_regular_file(os.fstat(file.fileno()), path)
        return file.read()


def write_file_atomically(path: str, data: bytes) -> None:
    """Put `data` at the file that `path` leads to, through links, by a rename in its folder."""
    target = Path(os.path.realpath(path))
    before = _stat_replaceable_file(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".gong-{secrets.token_hex(8)}.tmp")
    try:
        _write_synced_file(temporary, data, before)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_folder(
    path: str, root: str | None = None
) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """Return the entries of a folder; with `root` no link below it is followed."""
    return os.scandir(path) if root is None else _open_folder_below(root, path)


@contextmanager
def _open_folder_below(root: str, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    handle = open_below(root, path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(handle) as entries:
            yield entries
    finally:
        os.close(handle)


def stat_below(root: str, path: str) -> os.stat_result:
    """Return the status of what is at `path`, itself no link; no link below `root` is followed."""
    if path.rstrip("/") == root.rstrip("/"):
        return os.stat(root)  # noqa: PTH116 (as below)
    folder, _, name = path.rstrip("/").rpartition("/")
    handle = open_below(root, folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return os.stat(name, dir_fd=handle, follow_symlinks=False)
    finally:
        os.close(handle)


def list_entries(path: str, depth: int, root: str | None = None) -> Iterator[DirEntry]:
    """Yield what a folder holds, a folder before its own content; linked folders stay closed.

    With `root` no link below it is followed, and nothing is told of where links lead.
    """
    with open_folder(path, root) as entries:
        looked_at = [(one, _describe_entry(one, follow=root is None)) for one in entries]
        kinds = {one.name: one.is_dir(follow_symlinks=False) for one, _ in looked_at}
    found = (listed for _, listed in looked_at if listed is not None)
    for one in sorted(found, key=lambda listed: listed.name):
        yield one
        if depth > 1 and kinds[one.name]:
            yield from _list_subfolder(f"{path}/{one.name}", one.name, depth - 1, root)


def _list_subfolder(path: str, name: str, depth: int, root: str | None) -> Iterator[DirEntry]:
    try:
        for entry in list_entries(path, depth, root):
            yield DirEntry(f"{name}/{entry.name}", entry.is_dir, entry.size)
    except OSError:
        # A folder that may not be opened has been named; its content cannot be.
        return


def _describe_entry(entry: os.DirEntry[str], *, follow: bool) -> DirEntry | None:
    try:
        status = entry.stat(follow_symlinks=follow)
    except OSError:
        # A dangling link, or a name that went away meanwhile.
        return None
    is_dir = stat.S_ISDIR(status.st_mode)
    return DirEntry(entry.name, is_dir, None if is_dir else status.st_size)


def _open_without_waiting(path: str | Path, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _require_regular_file(status: os.stat_result, path: str | Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))


def _stat_replaceable_file(path: Path) -> os.stat_result | None:
    """Return the status of the file to replace, None when there is none; raise if it is closed.

    A rename asks only the folder for leave; the file's own mode is asked here.
    """
    try:
        handle = _open_without_waiting(path, os.O_WRONLY)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
    finally:
        os.close(handle)
    _require_regular_file(status, path)
    return status


def _write_synced_file(path: Path, data: bytes, like: os.stat_result | None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _CREATED_FILE_MODE)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        if like is not None:
            _copy_owner_and_mode(handle, like)
        file.flush()
        os.fsync(handle)


def _copy_owner_and_mode(handle: int, like: os.stat_result) -> None:
    with suppress(PermissionError):
        # Only root may give a file away; anyone else's is his own already.
        os.fchown(handle, like.st_uid, like.st_gid)
    os.fchmod(handle, stat.S_IMODE(like.st_mode))


NEW_FILE_MODE, NEW_FOLDER_MODE = 0o666, 0o777
"""Before the umask takes its share, as with any program."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW_FLAGS = _FOLDER_FLAGS | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class _StagedChange:
    """A change that only needs to be swapped in."""

    change: FileChange
    folder: int
    """Descriptor of the file's folder."""
    name: str
    new: str
    """Name of the file with the new content."""
    kept: str
    """Temporary name of the old file."""


class _UndoLog:
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


class _OpenFolders:
    """Descriptors of the folders below one, each opened once."""

    def __init__(self, root: str, closing: ExitStack, undo: _UndoLog) -> None:
        self._closing = closing
        self._undo = undo
        self._root = root
        self._opened: dict[tuple[str, ...], int] = {
            (): _open_handle(root, _FOLDER_FLAGS, None, closing)
        }

    def open_folder_at(self, names: tuple[str, ...]) -> int:
        """Return the descriptor of a folder, which is created if it is missing."""
        if names not in self._opened:
            above, name = self.open_folder_at(names[:-1]), names[-1]
            try:
                self._opened[names] = _open_handle(name, _BELOW_FLAGS, above, self._closing)
            except FileNotFoundError:
                os.mkdir(name, NEW_FOLDER_MODE, dir_fd=above)
                self._undo.add(
                    "/".join((self._root, *names)), partial(os.rmdir, name, dir_fd=above)
                )
                self._opened[names] = _open_handle(name, _BELOW_FLAGS, above, self._closing)
        return self._opened[names]


def commit_changes(root: str, changes: Sequence[FileChange]) -> ChangeRefusal | None:
    """Make every change, or none of them and return why.

    `root` is a real path, as are those of the changes, all below it. A file that is no longer as
    the change has it before refuses the change (ESTALE).
    """
    undo = _UndoLog()
    at = root
    with ExitStack() as closing:
        try:
            folders = _OpenFolders(root, closing, undo)
            staged = []
            for change in changes:
                at = change.path
                parts = Path(at).relative_to(root).parts
                staged.append(
                    _stage_change(change, folders.open_folder_at(parts[:-1]), parts[-1], undo)
                )
            for one in staged:
                at = one.change.path
                _swap_in_change(one, undo)
        except BaseException as error:
            left = undo.run()
            if not isinstance(error, OSError):
                raise
            return ChangeRefusal(error, at, left)
        for one in staged:
            _remove_old_file(one)
    return None


def write_file_below(root: str, path: str, data: bytes) -> None:
    """Write `data` to `path` atomically; both are real paths, `path` below `root`.

    A link on the way raises OSError, so that none put there meanwhile can lead out of `root`.
    """
    undo = _UndoLog()
    *folders, name = _split_below_root(root, path)
    with ExitStack() as closing:
        try:
            folder = _OpenFolders(root, closing, undo).open_folder_at(tuple(folders))
            like = _stat_writable_file(name, folder)
            temporary = _write_temporary(name, folder, data, like, undo)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            undo.run()
            raise


def read_file_below(root: str, path: str) -> bytes:
    """Return the bytes of a regular file; both are real paths, `path` below `root`.

    A link on the way raises OSError.
    """
    _split_below_root(root, path)
    with open(path, "rb", opener=partial(open_below, root)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", path)
        return file.read()


def _split_below_root(root: str, path: str) -> tuple[str, ...]:
    """Return the names from `root` to `path`; `root` itself is a folder, and no file."""
    parts = Path(path).relative_to(root).parts
    if not parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return parts


def _open_handle(path: str, flags: int, above: int | None, closing: ExitStack) -> int:
    handle = os.open(path, flags, dir_fd=above)
    closing.callback(os.close, handle)
    return handle


def _stat_writable_file(name: str, folder: int) -> os.stat_result | None:
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


def _write_temporary(
    name: str, folder: int, data: bytes, like: os.stat_result | None, undo: _UndoLog
) -> str:
    """Return the name of a new file in the folder that holds `data`, synced."""
    new = f".gong-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(new, flags, NEW_FILE_MODE, dir_fd=folder)
    undo.add(name, partial(_unlink_if_there, new, folder))
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        if like is not None:
            _copy_owner_and_mode_below(handle, like)
        file.flush()
        os.fsync(handle)
    return new


def _stage_change(change: FileChange, folder: int, name: str, undo: _UndoLog) -> _StagedChange:
    staged = _StagedChange(change, folder, name, "", f".gong-{secrets.token_hex(8)}.old")
    status = _require_unchanged_file(staged)
    if change.after is None:
        return staged
    like = status if change.like is None else Path(change.like).lstat()
    return replace(staged, new=_write_temporary(change.path, folder, change.after, like, undo))


def _require_unchanged_file(staged: _StagedChange) -> os.stat_result | None:
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


def _copy_owner_and_mode_below(handle: int, like: os.stat_result) -> None:
    with suppress(PermissionError):
        # Only root may give a file away; anyone else's is his own already.
        os.fchown(handle, like.st_uid, like.st_gid)
    os.fchmod(handle, stat.S_IMODE(like.st_mode))


def _swap_in_change(one: _StagedChange, undo: _UndoLog) -> None:
    change, folder = one.change, one.folder
    if change.before is not None:
        _keep_old_file(one)
        undo.add(change.path, partial(_restore_old_file, one))
    if change.after is not None:
        os.rename(one.new, one.name, src_dir_fd=folder, dst_dir_fd=folder)
        if change.before is None:
            undo.add(change.path, partial(_unlink_if_there, one.name, folder))


def _keep_old_file(one: _StagedChange) -> None:
    """Keep the old file under a temporary name; with hard links its path is never empty."""
    if one.change.after is not None:
        with suppress(OSError):
            os.link(one.name, one.kept, src_dir_fd=one.folder, dst_dir_fd=one.folder)
            return
    os.rename(one.name, one.kept, src_dir_fd=one.folder, dst_dir_fd=one.folder)


def _restore_old_file(one: _StagedChange) -> None:
    os.rename(one.kept, one.name, src_dir_fd=one.folder, dst_dir_fd=one.folder)
    # Both names of one file: such a rename does nothing.
    _unlink_if_there(one.kept, one.folder)


def _remove_old_file(one: _StagedChange) -> None:
    if one.change.before is not None:
        with suppress(OSError):
            # All changes are done; a leftover file is not an error.
            _unlink_if_there(one.kept, one.folder)


def _unlink_if_there(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
