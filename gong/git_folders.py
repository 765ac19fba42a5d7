"""Where git keeps its files for a folder, as git itself looks for it, and for what is inside of it.

    a folder .git            the usual case, where it holds what git expects; else git looks above
    a file .git              names a folder elsewhere: worktrees, submodules, --separate-git-dir
    HEAD, objects and refs   a bare repository, also where a clone brings one as plain files
    modules/NAME             submodules; others have a .git of their own below the working tree

Files are looked at, and git is not started.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINK = b"gitdir:"
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of a repository inside of another one, in the index."""
_MODE, _FLAGS, _PATH = 24, 60, 62
"""Of an entry of the index: where its mode, its flags and its path begin."""
_LENGTH_BITS, _EXTENDED = 0xFFF, 0x4000
_WORKTREE = rb"(?im)^\s*worktree\s*=\s*\"?([^\"\n]*)"
_MAX_FOLDERS = 2_000


class GitFolder(NamedTuple):
    """A repository: the folder in which its files are checked out, and that of git."""

    top: str
    place: str
    """The folder of git's files; of a worktree its own, not the common one."""
    is_bare: bool = False
    """Whether it was found by what it holds, and not by a `.git`."""

    @property
    def common(self) -> str:
        """The folder that all worktrees share."""
        named = read_bytes(f"{self.place}/commondir").strip()
        if not named:
            return self.place
        return os.path.normpath(os.path.join(self.place, os.fsdecode(named)))

    @property
    def stranger(self) -> str | None:
        """What of it lies elsewhere and does not name this folder as its own; None for nothing."""
        if self.is_bare:
            return None
        own = f"{self.top}/.git"
        if os.path.realpath(self.place) == os.path.join(os.path.realpath(self.top), ".git"):
            return None if self.common == self.place else self.common
        back = os.fsdecode(read_bytes(f"{self.place}/gitdir").strip())
        if back and os.path.realpath(os.path.join(self.place, back)) == os.path.realpath(own):
            return None
        named = re.search(_WORKTREE, read_bytes(f"{self.place}/config"))
        if named is not None and self.is_own_tree(os.fsdecode(named[1].strip())):
            return None
        return self.place

    def is_own_tree(self, worktree: str) -> bool:
        """Return whether a value of core.worktree means the folder that the repository is in."""
        place = os.path.join(self.place, worktree)
        return os.path.realpath(place) == os.path.realpath(self.top)


def locate_git_folder(folder: str) -> GitFolder | None:
    """Return the repository that git would find for a folder; None where there is none."""
    while True:
        named = f"{folder}/.git"
        if os.path.isfile(named):  # at every start, as below
            data = read_bytes(named)
            if data.startswith(_LINK):
                place = os.path.join(folder, os.fsdecode(data.removeprefix(_LINK).strip()))
                return GitFolder(folder, os.path.normpath(place))
            return GitFolder(folder, named)  # git stops here, and says so
        if is_git_folder(named):
            return GitFolder(folder, named)
        if is_git_folder(folder):
            return GitFolder(folder, folder, is_bare=True)
        above = os.path.dirname(folder)
        if above == folder or not folder:
            return None
        folder = above


def is_git_folder(path: str) -> bool:
    """Return whether a folder holds what git expects of a folder of its own."""
    if not os.path.lexists(f"{path}/HEAD"):
        return False
    parts = (f"{path}/objects", f"{path}/refs")
    return os.path.lexists(f"{path}/commondir") or all(map(os.path.lexists, parts))


def list_inner_folders(repository: GitFolder) -> Iterator[GitFolder]:
    """Yield the repositories that git enters from this one: submodules, and others it knows."""
    waiting, seen = [repository], {repository.place}
    while waiting and len(seen) < _MAX_FOLDERS:
        here = waiting.pop()
        for inner in (*_list_modules(here.common), *_list_gitlinks(here)):
            if inner.place not in seen:
                seen.add(inner.place)
                waiting.append(inner)
                yield inner


def _list_modules(common: str) -> Iterator[GitFolder]:
    for folder, names, _ in os.walk(f"{common}/modules"):
        if is_git_folder(folder):
            names[:] = []  # its own are found from it
            yield GitFolder(folder, folder, is_bare=True)


def _list_gitlinks(repository: GitFolder) -> Iterator[GitFolder]:
    for path in read_gitlinks(f"{repository.place}/index"):
        folder = f"{repository.top}/{os.fsdecode(path)}"
        inner = locate_git_folder(folder)
        if inner is not None and inner.top == folder:
            yield inner


def read_gitlinks(index: str) -> tuple[bytes, ...]:
    """Return the paths of the repositories that an index names; those of a broken one are none."""
    try:
        status = os.stat(index)
    except OSError:
        return ()
    return _find_gitlinks(index, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _find_gitlinks(index: str, _mtime: int, _size: int) -> tuple[bytes, ...]:
    data = read_bytes(index)
    if data.find(_GITLINK) < 0:
        return ()
    version = int.from_bytes(data[4:8], "big")
    entries = list_entries(data) if version == 4 else _find_entries(data)  # noqa: PLR2004
    return tuple(
        path for entry, path in entries if data[entry + _MODE : entry + _MODE + 4] == _GITLINK
    )


def _find_entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the entries of version 2 and 3 that may be repositories, with their paths."""
    at = data.find(_GITLINK)
    while at >= 0:
        entry = at - _MODE
        flags = int.from_bytes(data[entry + _FLAGS : entry + _PATH], "big")
        start = entry + _PATH + (2 if flags & _EXTENDED else 0)
        end = data.find(b"\0", start)
        if entry > 0 and 0 < end - start == flags & _LENGTH_BITS:
            yield entry, data[start:end]
        at = data.find(_GITLINK, at + 1)


def list_entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where each entry of an index of version 4 begins, and its path.

    A path is what is left of the one before it, and what is new; none of a damaged index.
    """
    path, at = b"", 12
    try:
        for _ in range(int.from_bytes(data[8:12], "big")):
            entry, at = at, at + _PATH
            if data[at - 2] & (_EXTENDED >> 8):
                at += 2
            dropped = data[at] & 0x7F
            while data[at] & 0x80:
                at += 1
                dropped = ((dropped + 1) << 7) | (data[at] & 0x7F)
            end = data.index(b"\0", at + 1)
            path = path[: len(path) - dropped] + data[at + 1 : end]
            at = end + 1
            yield entry, path
    except (IndexError, ValueError):
        return


def read_bytes(path: str) -> bytes:
    """Return the bytes of a file; none where there is none to read."""
    with suppress(OSError, ValueError), open(path, "rb") as file:  # at every start
        return file.read()
    return b""
