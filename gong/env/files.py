"""Files of this machine: read, written and listed by plain blocking functions.

Only regular files are read or replaced: a pipe would wait for ever, a device has no end, and a
rename would put a file where a device was.

Many changes below one folder are made all or none (`commit_changes`). Each change goes through

    staged      `before` is compared with the file; the new content is synced as .gong-….tmp
    swapped in  the old file is kept as .gong-….old, the new one renamed into its place
    done        after the last swap, the old file is removed

and each step leaves its undo step behind; if one fails, all are undone, the last first. Folders are
opened one by one below the root and no link is followed, so that none can lead out of it, not even
one that is created meanwhile.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .protocol import ChangeRefusal, DirEntry
from .scanner import open_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .protocol import FileUpdate


NEW_FILE_MODE, NEW_FOLDER_MODE = 0o666, 0o777
"""Before the umask takes its share, as with any program."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


_SMALL_BYTES = 256 * 1024


def is_small_file(path: str) -> bool:
    """Return whether there is a file of known size that is read at once.

    What has no size, as below /proc, may be as long as it likes.
    """
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and 0 < status.st_size <= _SMALL_BYTES


def has_path(path: str) -> bool:
    """Return whether something is there; a dangling link is nothing."""
    return os.path.exists(path)  # noqa: PTH110 (Path raises below a folder that may not be searched)


def find_status(path: str) -> os.stat_result:
    """Return the status of what `path` leads to, through links."""
    return Path(path).stat()


def find_real_path(path: str) -> str:
    """Return where `path` leads through all links."""
    return os.path.realpath(path)


def read_regular_file(path: str) -> bytes:
    """Return the bytes of a regular file; EINVAL for anything else."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        _require_regular_file(os.fstat(file.fileno()), path)
        return file.read()


def write_file_atomically(path: str, data: bytes) -> None:
    """Put `data` at the file that `path` leads to, through links, by a rename in its folder."""
    target = Path(os.path.realpath(path))
    before = _stat_writable_file(str(target))
    _make_folders(target.parent)
    undo = _UndoLog()
    try:
        new = _write_temporary(str(target), None, data, before, undo)
        Path(new).replace(target)
    except BaseException:
        undo.run()
        raise


def _make_folders(folder: Path) -> None:
    missing = []
    while not folder.is_dir() and folder != folder.parent:
        missing.append(folder)
        folder = folder.parent
    for missing_folder in reversed(missing):
        missing_folder.mkdir(exist_ok=True)


@contextmanager
def open_folder(path: str, root: str | None = None) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Return the entries of a folder; with `root` no link below it is followed."""
    if root is None:
        with os.scandir(path) as entries:
            yield entries
        return
    handle = open_below(root, path, _FOLDER_FLAGS)
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
    handle = open_below(root, folder, _FOLDER_FLAGS)
    try:
        return os.stat(name, dir_fd=handle, follow_symlinks=False)
    finally:
        os.close(handle)


def list_entries(path: str, depth: int, root: str | None = None) -> Iterator[DirEntry]:
    """Yield what a folder holds, a folder before its own content; linked folders stay closed.

    With `root` no link below it is followed, and nothing is read where links lead.
    """
    pairs: list[tuple[DirEntry, bool]] = []
    with open_folder(path, root) as entries:
        for entry in entries:
            with suppress(OSError):  # a dangling link, or a name that went away meanwhile
                status = entry.stat(follow_symlinks=root is None)
                is_dir = stat.S_ISDIR(status.st_mode)
                listed = DirEntry(entry.name, is_dir, None if is_dir else status.st_size)
                pairs.append((listed, entry.is_dir(follow_symlinks=False)))
    for child, is_own_folder in sorted(pairs, key=lambda listed: listed[0].name):
        yield child
        if depth > 1 and is_own_folder:
            # A folder that may not be opened has been named; its content cannot be.
            with suppress(OSError):
                for inner in list_entries(f"{path}/{child.name}", depth - 1, root):
                    yield DirEntry(f"{child.name}/{inner.name}", inner.is_dir, inner.size)


def _require_regular_file(status: os.stat_result, path: str | Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))


def _stat_writable_file(path: str, folder: int | None = None) -> os.stat_result | None:
    """Return the status of a file that may be replaced, None when there is none.

    A rename asks only the folder for leave; the file's own mode is asked here. Below a `folder` no
    link is followed.
    """
    flags = os.O_WRONLY | os.O_NONBLOCK | (os.O_NOFOLLOW if folder is not None else 0)
    try:
        handle = os.open(path, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
    finally:
        os.close(handle)
    _require_regular_file(status, path)
    return status


def _write_temporary(
    path: str, folder: int | None, data: bytes, like: os.stat_result | None, undo: _UndoLog
) -> str:
    """Return the name of a new file beside the one at `path` that holds `data`, synced.

    It has the owner and mode of `like`. Without `folder` the name is a path.
    """
    new = f".gong-{secrets.token_hex(8)}.tmp"
    if folder is None:
        new = str(Path(path).with_name(new))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(new, flags, NEW_FILE_MODE, dir_fd=folder)
    undo.add_step(path, partial(_unlink_if_there, new, folder))
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        if like is not None:
            with suppress(PermissionError):
                # Only root may give a file away; anyone else's is his own already.
                os.fchown(handle, like.st_uid, like.st_gid)
            os.fchmod(handle, stat.S_IMODE(like.st_mode))
        file.flush()
        os.fsync(handle)
    return new


class _UndoLog:
    """Functions that undo the steps, the last one first."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Callable[[], object]]] = []

    def add_step(self, path: str, step: Callable[[], object]) -> None:
        """Add what undoes a step for `path`."""
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
        self._root, self._closing, self._undo = root, closing, undo
        self._opened: dict[tuple[str, ...], int] = {}
        self.open_folder_at(())

    def open_folder_at(self, names: tuple[str, ...]) -> int:
        """Return the descriptor of a folder, which is created if it is missing."""
        for count in range(len(names) + 1):
            if names[:count] not in self._opened:
                self._open_folder(names[:count])
        return self._opened[names]

    def _open_folder(self, names: tuple[str, ...]) -> None:
        """Open a folder of which the one above is open."""
        if not names:
            handle = os.open(self._root, _FOLDER_FLAGS)
        else:
            above, name = self._opened[names[:-1]], names[-1]
            flags = _FOLDER_FLAGS | os.O_NOFOLLOW
            try:
                handle = os.open(name, flags, dir_fd=above)
            except FileNotFoundError:
                os.mkdir(name, NEW_FOLDER_MODE, dir_fd=above)
                path = "/".join((self._root, *names))
                self._undo.add_step(path, partial(os.rmdir, name, dir_fd=above))
                handle = os.open(name, flags, dir_fd=above)
        self._closing.callback(os.close, handle)
        self._opened[names] = handle


class _StagedChange:
    """One change of many: staged, then swapped in; `folder` is the descriptor of its folder."""

    def __init__(self, change: FileUpdate, folder: int, name: str) -> None:
        self.change, self.folder, self.name = change, folder, name
        self.kept = f".gong-{secrets.token_hex(8)}.old"
        """Temporary name of the old file."""
        self._new = ""
        """Name of the file with the new content."""

    def stage(self, undo: _UndoLog) -> None:
        """Write the new content beside the file; ESTALE when that is not as it was before."""
        change, status = self.change, self._require_unchanged()
        if change.after is not None:
            like = status if change.like is None else Path(change.like).lstat()
            self._new = _write_temporary(change.path, self.folder, change.after, like, undo)

    def _require_unchanged(self) -> os.stat_result | None:
        # A rename asks only the folder for leave; a file that stays is asked for its own.
        access = os.O_RDONLY if self.change.after is None else os.O_RDWR
        flags = access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            handle = os.open(self.name, flags, dir_fd=self.folder)
        except FileNotFoundError:
            if self.change.before is None:
                return None
            raise
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or file.read() != self.change.before:
                raise OSError(errno.ESTALE, "the file has changed since it was read")
        return status

    def swap_in(self, undo: _UndoLog) -> None:
        """Put the new file in the place of the old one, which is kept beside it."""
        path, before, after, _ = self.change
        if before is not None:
            linked = False
            if after is not None:
                with suppress(OSError):  # with hard links its path is never empty
                    os.link(self.name, self.kept, src_dir_fd=self.folder, dst_dir_fd=self.folder)
                    linked = True
            if not linked:
                self._rename(self.name, self.kept)
            undo.add_step(path, self._restore)
        if after is not None:
            self._rename(self._new, self.name)
            if before is None:
                undo.add_step(path, partial(_unlink_if_there, self.name, self.folder))

    def _restore(self) -> None:
        self._rename(self.kept, self.name)
        # Both names of one file: such a rename does nothing.
        _unlink_if_there(self.kept, self.folder)

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.folder, dst_dir_fd=self.folder)


def commit_changes(root: str, changes: Sequence[FileUpdate]) -> ChangeRefusal | None:
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
                *above, name = Path(at).relative_to(root).parts
                update = _StagedChange(change, folders.open_folder_at(tuple(above)), name)
                update.stage(undo)
                staged.append(update)
            for update in staged:
                at = update.change.path
                update.swap_in(undo)
        except BaseException as error:
            left = undo.run()
            if not isinstance(error, OSError):
                raise
            return ChangeRefusal(error, at, left)
        for update in staged:
            with suppress(OSError):
                # All changes are done; a leftover file is not an error.
                _unlink_if_there(update.kept, update.folder)
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
        _require_regular_file(os.fstat(file.fileno()), path)
        return file.read()


def _split_below_root(root: str, path: str) -> tuple[str, ...]:
    """Return the names from `root` to `path`; `root` itself is a folder, and no file."""
    parts = Path(path).relative_to(root).parts
    if not parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return parts


def _unlink_if_there(name: str, folder: int | None) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
