"""Files of this machine: read, write whole or not at all, list; plain blocking functions.

Only regular files are read or replaced: a pipe would wait for ever, a device has no end, and a
rename would put a file where a device was.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .protocol import DirEntry
from .scanner import open_below

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

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
    """Give what stands in a folder; with `root` no link below it is followed."""
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
