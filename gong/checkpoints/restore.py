"""Files put back on disk as a plan says: bytes, kind and exact mode, or absence.

Each file is whole or untouched: written without a name, synced, and put in its place, beside which
it has a name only where another file is replaced. So a kill leaves none behind, but where the file
system knows no files without a name. Deletions come first, so that a file can take the place of a
folder that is empty then, and so that they make room. A folder that is left empty by a deletion
goes too, as in git. No link below the folder of the session is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import NotFound
from tape.files.changes import KnownVersion, is_link_mode
from tape.files.git_patch import REGULAR_MODE, PatchSide, build_patch
from tape.folders import locate_repository

from ..env.protocol import is_inside_folder
from .disk_file import read_disk_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tape.files.plan import FileRestore

    from .disk_file import DiskFile
    from .place_disk import PlaceDisk

MAX_BYTES = 256 << 20
"""Largest file that is compared, kept and restored."""


def read_present_file(path: str, disk: PlaceDisk | None = None) -> DiskFile | None:
    """Return a file or link as it is on the disk, with its bytes up to `MAX_BYTES`.

    Here and below, a path that `disk` owns is one of another place, and of its disk.
    """
    if disk is not None and disk.has_path(path):
        return disk.read(path)
    return read_disk_file(path, lambda size: "it is too large" if size > MAX_BYTES else "")


def look_at_file(path: str, disk: PlaceDisk | None = None) -> KnownVersion | None:
    """Return the version of a file that is on the disk; None where none is."""
    return describe_disk_file(read_present_file(path, disk))


def describe_disk_file(file: DiskFile | None) -> KnownVersion | None:
    """Return the version of a file that was read."""
    if file is None:
        return None
    return KnownVersion(file.digest, file.mode, why=file.why or None)


def is_below(path: str, files: Collection[str]) -> bool:
    """Return whether one of some files or links is in the place of a folder above a path."""
    while (parent := os.path.dirname(path)) != path:
        if parent in files:
            return True
        path = parent
    return False


def find_obstacle(
    path: str, folder: str, going: Collection[str] = (), disk: PlaceDisk | None = None
) -> str:
    """Return why nothing may be written at a path, "" if it may.

    `folder` is that of the session: links above it are the user's own. `going` are the files that
    are deleted before.
    """
    if disk is not None and disk.has_path(path):
        return disk.find_obstacle(path)
    parent = os.path.dirname(path)
    above = folder if is_inside_folder(path, folder) else "/"
    inside = os.path.relpath(parent, above)
    expected = os.path.normpath(os.path.join(os.path.realpath(above), inside))
    if os.path.realpath(parent) != expected:
        return "a link leads its folder elsewhere"
    if _is_folder(path):
        for at, folders, names in os.walk(path):
            names += [name for name in folders if os.path.islink(os.path.join(at, name))]
            if any(os.path.join(at, name) not in going for name in names):
                return "a folder is in its place"
    return ""


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


_PASSING_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE}
)
"""Errors of the disk or the machine, after which trying again helps: a full disk, a quota."""


class RestoreFailures(NamedTuple):
    """What could not be restored."""

    why: dict[str, str]
    """The reason by path."""
    may_pass: bool
    """Whether one of the reasons is the disk or the machine, so that trying again helps."""


def restore_files(
    files: Iterable[FileRestore],
    load: Callable[[str], bytes],
    folder: str,
    disk: PlaceDisk | None = None,
) -> RestoreFailures:
    """Put files back; return which failed.

    `load` returns the bytes of a blob. What was restored stays when another file fails.
    """
    may_pass = False
    top = locate_repository(folder) or folder
    failed: dict[str, str] = {}
    todo = sorted(files, key=lambda file: (file.target is not None, file.path))
    for file in [file for file in todo if disk is not None and disk.has_path(file.path)]:
        todo.remove(file)
        assert disk is not None
        try:
            disk.restore(file, load)
        except OSError as error:
            failed[file.path] = error.strerror or str(error)
            may_pass |= error.errno in _PASSING_ERRORS
    gone = [file.path for file in todo if file.target is None]
    for path in reversed(gone):  # the deepest first
        try:
            # Folders below `top` that are empty then go, too
            os.unlink(path)
            parent = os.path.dirname(path)
            while is_inside_folder(parent, top) and parent != top and not os.listdir(parent):
                os.rmdir(parent)
                parent = os.path.dirname(parent)
            _sync_folder(parent)
        except OSError as error:
            failed[path] = error.strerror or str(error)
            may_pass |= error.errno in _PASSING_ERRORS
    for file in todo:
        if file.target is not None:
            try:
                if why := find_obstacle(file.path, folder):
                    failed[file.path] = why
                else:
                    _put_file(file.path, file.now, file.target, load)
            except OSError as error:
                failed[file.path] = error.strerror or str(error)
                may_pass |= error.errno in _PASSING_ERRORS
    return RestoreFailures(failed, may_pass)


def build_restore_patch(
    file: FileRestore,
    load: Callable[[str], bytes],
    folder: str,
    disk: PlaceDisk | None = None,
    *,
    with_bytes: bool,
) -> bytes:
    """Return the patch that restoring a file would be; raise NotFound where bytes are missing.

    Paths are relative to `folder`, absolute outside of it. `load` is as in `restore_files`.
    """
    path = os.path.relpath(file.path, folder) if is_inside_folder(file.path, folder) else file.path
    if disk is not None and disk.has_path(file.path):
        path = disk.split_path(file.path)[1].lstrip("/")
    disk_file = None if file.now is None else read_present_file(file.path, disk)
    if file.now is not None and describe_disk_file(disk_file) != file.now:
        raise NotFound("it was changed meanwhile")
    now = then = None
    if disk_file is not None:
        if disk_file.data is None:
            raise NotFound(disk_file.why or "it cannot be read")
        now = PatchSide(path, disk_file.data, disk_file.mode or REGULAR_MODE)
    if (target := file.target) is not None:
        if target.blob is not None:
            data = load(target.blob)
        elif target.text is not None:
            data = target.text.encode("utf-8", "surrogatepass")
        elif (
            disk_file is not None
            and disk_file.data is not None
            and disk_file.digest == target.digest
        ):
            data = disk_file.data  # only the mode differs
        else:
            raise NotFound(target.why or "its bytes from before were not stored")
        then = PatchSide(path, data, target.mode or (now.mode if now else REGULAR_MODE))
    return b"".join(build_patch(now, then, with_bytes=with_bytes))


def _put_file(
    path: str, now: KnownVersion | None, target: KnownVersion, load: Callable[[str], bytes]
) -> None:
    mode = int(target.mode, 8) if target.mode else None
    is_file = now is not None and not is_link_mode(now.mode) and not is_link_mode(target.mode)
    if now is not None and is_file and now.digest == target.digest:
        assert mode is not None  # else it would be the same file
        os.chmod(path, stat.S_IMODE(mode))
        return
    data = target.text.encode("utf-8", "surrogatepass") if target.text is not None else b""
    if target.blob is not None:
        data = load(target.blob)
    parent, name = os.path.split(path)
    os.makedirs(parent, exist_ok=True)
    short = sha256(os.fsencode(name)).hexdigest()[:16]  # any name is short enough then
    beside = os.path.join(parent, f".{short}.gong-restore")
    if os.path.lexists(beside):  # of a restore that was killed
        os.unlink(beside)
    try:
        if is_link_mode(target.mode):
            os.symlink(os.fsdecode(data), beside)
        else:
            if mode is None:
                mode = int(now.mode, 8) if is_file and now is not None and now.mode else 0o644
            _put_new_file(path, beside, data, stat.S_IMODE(mode))
        if os.path.lexists(beside):
            _replace_by(beside, path)
    except BaseException:
        if os.path.lexists(beside):
            os.unlink(beside)
        raise
    _sync_folder(parent)


def _replace_by(beside: str, path: str) -> None:
    """Put a file in the place of another, or of folders without files: each was deleted."""
    if _is_folder(path):
        for at, _, _ in os.walk(path, topdown=False):
            os.rmdir(at)
    os.replace(beside, path)


def _open_unnamed(folder: str, flags: int) -> int | None:
    """Open a new file without a name; None where file system or platform know none."""
    if not (hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd")):
        return None
    try:
        return os.open(folder, flags | os.O_TMPFILE, 0o600)
    except OSError:
        return None


def _put_new_file(path: str, beside: str, data: bytes, mode: int) -> None:
    """Write a file to its path if nothing is there, else to `beside`."""
    flags = os.O_WRONLY | os.O_CLOEXEC
    fd = _open_unnamed(os.path.dirname(path), flags)
    is_named = fd is None
    if fd is None:
        fd = os.open(beside, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
        if not is_named:
            try:
                _give_name(file.fileno(), path)
            except FileExistsError:
                _give_name(file.fileno(), beside)


def _give_name(fd: int, path: str) -> None:
    """Give a file without a name one; raises FileExistsError where something has it."""
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # With a folder given Python follows the link in /proc, as open(2) advises
        os.link(f"/proc/self/fd/{fd}", os.path.basename(path), dst_dir_fd=folder)
    finally:
        os.close(folder)


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
