"""A file as it is at one moment: kind and mode, its bytes, and what tells that it has changed.

Links are not followed: the bytes of a link are the text of its target. Folders, pipes, sockets and
devices have no state.

    on disk                      state
    ---------------------------  ------------------------------------------------------
    nothing, or a folder         None
    a file of at most the limit  mode, digest and bytes
    a larger one                 mode and size; `why` says that it is too large
    one that cannot be read      mode and size; `why` has the error
    a link                       mode 120777, digest and bytes of its target's text
"""

from __future__ import annotations

import os
import stat
import time
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_SETTLED_NS = 50_000_000
"""A file that changed so recently may change again without a new time: clocks of files tick."""
_ATTEMPTS = 3

FileSignature = tuple[int, int, int, int, int, int]
"""Size, times of content and status in ns, inode, mode, names: equal until something changes."""


class DiskFile(NamedTuple):
    """A regular file or a link."""

    signature: FileSignature | None
    """None where the environment tells none."""
    why: str = ""
    """Why the bytes are not here."""
    digest: str | None = None
    """SHA-256 of the bytes; None if they were not read."""
    data: bytes | None = None
    is_settled: bool = False
    """Whether an equal signature later means equal bytes."""

    @property
    def size(self) -> int:
        """Bytes of the file, or of the target's text of a link; 0 if that is not known."""
        if self.signature is not None:
            return self.signature[0]
        return len(self.data or b"")

    @property
    def mode(self) -> str | None:
        """Kind and permissions as six octal digits, 100644 or 120777; None if not known."""
        return None if self.signature is None else f"{self.signature[4]:06o}"

    @classmethod
    def from_bytes(cls, data: bytes, signature: FileSignature | None = None) -> DiskFile:
        """Return a file that holds these bytes."""
        return cls(signature, "", sha256(data).hexdigest(), data)


def build_signature(status: os.stat_result) -> FileSignature:
    """Return what tells whether a file has changed."""
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
    )


def stat_file(path: str | bytes) -> FileSignature | None:
    """Return the signature of a file or link; None where there is none, or none can be seen."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    kind = stat.S_IFMT(status.st_mode)
    return build_signature(status) if kind in {stat.S_IFREG, stat.S_IFLNK} else None


def stat_own_files(top: str, paths: Collection[str]) -> dict[str, FileSignature | None]:
    """Return the signatures of files below a folder, by path relative to it.

    None where there is none, also where a link is in the place of a folder above it: what that
    leads to is another file.
    """
    folders = {path.rpartition("/")[0] for path in paths}
    linked = {folder for folder in folders if _is_behind_link(top, folder)}
    return {
        path: None if path.rpartition("/")[0] in linked else stat_file(f"{top}/{path}")
        for path in paths
    }


def _is_behind_link(top: str, folder: str) -> bool:
    while folder:
        if os.path.islink(f"{top}/{folder}"):
            return True
        folder = folder.rpartition("/")[0]
    return False


def is_settled(signature: FileSignature, now_ns: int) -> bool:
    """Return whether a file changed long enough ago for an equal signature to mean equal bytes."""
    return now_ns - max(signature[1], signature[2]) > _SETTLED_NS


def read_disk_file(
    path: str, refuse: Callable[[int], str], can_hash: Callable[[int], bool] | None = None
) -> DiskFile | None:
    """Return a file or link as it is now; None where there is none.

    `refuse` tells why a file of that size is not kept in memory, with "" if it is; `can_hash`,
    whether it is hashed then. A file that changes while it is read is read again.
    """
    file = None
    for _ in range(_ATTEMPTS):
        now = time.time_ns()
        signature = stat_file(path)
        if signature is None:
            return None
        file = _read_as(path, signature, refuse, can_hash)
        file = file._replace(is_settled=is_settled(signature, now))
        if stat_file(path) == signature:
            break
    return file


def _read_as(
    path: str,
    signature: FileSignature,
    refuse: Callable[[int], str],
    can_hash: Callable[[int], bool] | None,
) -> DiskFile:
    size = signature[0]
    try:
        if stat.S_ISLNK(signature[4]):
            data = os.fsencode(os.readlink(path))
            return DiskFile.from_bytes(data, signature)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not (why := refuse(size)):
                return DiskFile.from_bytes(file.read(size), signature)
            digest = file_digest(file, "sha256") if can_hash and can_hash(size) else None
            return DiskFile(signature, why, digest.hexdigest() if digest else None)
    except OSError as error:
        return DiskFile(signature, f"it cannot be read: {error.strerror or error}")
