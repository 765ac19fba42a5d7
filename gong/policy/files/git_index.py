"""Which files with credentials a git repository tracks: its index, read without git.

    entry    times, numbers and size of the file as it was last looked at, the object, flags, path
    version  2 and 3 hold whole paths; 4 holds what differs from the path before
    split    core.splitIndex keeps most entries in files sharedindex.*

Names are looked for in the bytes at once, since an index may hold 100,000 paths.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache, lru_cache
from glob import glob
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ...git_folders import list_entries, locate_git_folder
from ..commands.tables import has_pattern_match, load_tables
from .real_paths import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = b"DIRC"
_WHOLE_PATHS, _SHORTENED_PATHS = (2, 3), 4
_FIXED_BYTES = 62
"""Of an entry before its path; the last two hold flags, and its length in the lower twelve bits."""
_LENGTH_BITS, _EXTENDED = 0xFFF, 0x4000
_MTIME, _SIZE, _OBJECT = slice(8, 12), slice(36, 40), slice(40, 60)
"""Of an entry: the seconds of its time, its size, and the object that holds its bytes."""


class TrackedFile(NamedTuple):
    """A file that a repository tracks."""

    path: str
    """Absolute."""
    mtime: int
    size: int
    oid: str
    """The object that holds its bytes; wrong in a repository with SHA-256."""

    @property
    def is_changed(self) -> bool:
        """Whether the file on the disk may differ from what was last recorded."""
        if ELSEWHERE.get() is not None:
            return True
        try:
            status = os.stat(self.path)  # a path as git has it
        except OSError:
            return True
        same = status.st_size & 0xFFFFFFFF == self.size and int(status.st_mtime) == self.mtime
        return not same


def list_tracked_credentials(folder: str) -> Iterator[TrackedFile]:
    """Yield the files of the repository around a folder that may hold credentials, by name."""
    if (elsewhere := ELSEWHERE.get()) is not None:
        top = elsewhere.find_repository(folder)
        index = None if top is None else elsewhere.read_file(f"{top}/.git/index")
        for entry in _parse_index(index) if index else ():
            yield entry._replace(path=f"{top}/{entry.path}")
        return
    repository = locate_git_folder(folder)
    if repository is None:
        return
    place = repository.place
    names = (f"{place}/index", *glob(f"{escape_glob(place)}/sharedindex.*"))
    for name in names:
        with suppress(OSError):
            status = os.stat(name)
            for entry in _read_index(name, status.st_mtime_ns, status.st_size):
                yield entry._replace(path=f"{repository.top}/{entry.path}")


@lru_cache(maxsize=8)
def _read_index(name: str, _mtime: int, _size: int) -> tuple[TrackedFile, ...]:
    """Return the files of an index, by their paths in the repository; raises OSError."""
    with open(name, "rb") as file:
        return _parse_index(file.read())


def _parse_index(data: bytes) -> tuple[TrackedFile, ...]:
    tracked = []
    for entry, path in _list_entries(data):
        mtime, size = (
            int.from_bytes(data[entry + field.start : entry + field.stop], "big")
            for field in (_MTIME, _SIZE)
        )
        oid = data[entry + _OBJECT.start : entry + _OBJECT.stop].hex()
        tracked.append(TrackedFile(os.fsdecode(path), mtime, size, oid))
    return tuple(tracked)


def escape_glob(path: str) -> str:
    """Return a pattern that fits this path alone."""
    return re.sub(r"([*?[])", r"[\1]", path)


def _list_entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where the entries of files with credentials begin, and their paths."""
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != _HEAD:
        return
    if version == _SHORTENED_PATHS:
        entries = {path: entry for entry, path in list_entries(data)}
        paths = b"\0" + b"\0".join(entries) + b"\0"
        for start, end in _find_ends(paths):
            path = paths[paths.rfind(b"\0", 0, start) + 1 : end]
            if _is_named(path):
                yield entries[path], path
    elif version in _WHOLE_PATHS:
        for start, end in _find_ends(data):
            place = _find_entry(data, start, end)
            if place is not None and _is_named(data[place[1] : end]):
                yield place[0], data[place[1] : end]


def _find_ends(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where names that may be wanted begin, and where their paths end, each end once."""
    dotted, others = _compile_hints()
    starts = {match.start() for match in dotted.finditer(data)}
    for hint in others:
        at = data.find(hint)
        while at >= 0:
            starts.add(at)
            at = data.find(hint, at + 1)
    seen = set()
    for start in sorted(starts):
        end = data.find(b"\0", start)
        if end >= 0 and end not in seen:
            seen.add(end)
            yield start, end


def _find_entry(data: bytes, name: int, end: int) -> tuple[int, int] | None:
    """Return where the entry and its path begin, which ends there: its flags hold the length."""
    for start in range(name, max(end - _LENGTH_BITS, _FIXED_BYTES) - 1, -1):
        for more in (0, 2):  # bytes of further flags
            flags = int.from_bytes(data[start - more - 2 : start - more], "big")
            is_extended = bool(flags & _EXTENDED)
            if flags & _LENGTH_BITS == end - start and is_extended == bool(more):
                return start - _FIXED_BYTES - more, start
        if data[start - 1 : start] == b"\0" and start < name - 4:
            return None
    return None


def is_credentials_path(path: str) -> bool:
    """Return whether an absolute path fits one of the patterns of files with credentials."""
    places = load_tables().places
    return has_pattern_match(path, (*places.sensitive, *places.secrets))


def _is_named(path: bytes) -> bool:
    return is_credentials_path(f"/{os.fsdecode(path)}")


@cache
def _compile_hints() -> tuple[re.Pattern[bytes], tuple[bytes, ...]]:
    """Return what is in every path that fits: a pattern of what begins with a dot, and other texts.

    A path ends with a zero; one character in front makes the search as fast as for plain text.
    """
    places = load_tables().places
    hints = set()
    for place in (*places.sensitive, *places.secrets):
        tail = place.removeprefix("*")
        fixed = max(re.split(r"\*|\?|\[[^\]]*\]", tail), key=len)
        if place[:1] == "*":  # those of the system are in no repository
            hints.add((fixed + "\0" if tail.endswith(fixed) else fixed).removeprefix("/"))
    dotted = sorted(hint[1:] for hint in hints if hint[:1] == ".")
    by_letter = groupby(dotted, key=lambda hint: hint[:1])
    parts = [
        f"{re.escape(letter)}(?:{'|'.join(re.escape(hint[1:]) for hint in words)})"
        for letter, words in by_letter
    ]
    others = tuple(sorted(hint.encode() for hint in hints if hint[:1] != "."))
    return re.compile(f"\\.(?:{'|'.join(parts)})".encode()), others
