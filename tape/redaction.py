"""Redaction: overwrite data permanently; an interrupted one can be completed (tape.md §2).

Order of the steps: write a mark in the tape's folder and the `redact` entry, both synced; overwrite
copies in quarantine; delete blobs; overwrite the data; erase it from the index; remove the mark. So
a redact entry names everything that still has to be overwritten, and the data, which names its
blobs, is overwritten after them. `complete` continues from any step; running it twice is harmless.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from . import disk
from .blobs import NAMED
from .errors import Damaged
from .line import is_redacted, read_header
from .phase import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from .blobs import Blobs
    from .disk import Folder
    from .phase import Phases

MARK = ".redacting"
"""Name of the file in the tape's folder while a redaction is unfinished."""
BLANK = b"null"
_DATA = b',"data":'
_ID_START = len(b'{"id":"')
_ID_END = _ID_START + 40


class Redactable(Protocol):
    """The parts of a tape that a redaction changes."""

    id: str
    folder: Folder
    phases: Phases
    blobs: Blobs

    def forget_overwritten(self) -> None:
        """Remove what was overwritten from the index."""


class Overwriting(NamedTuple):
    """An entry whose data is to be overwritten."""

    entry: str
    type: str
    time: str
    phase: str
    offset: int
    """Offset of its line in its phase file."""
    start: int
    """Offset of its data."""
    data: bytes


class Overwritten(NamedTuple):
    """What was overwritten or deleted."""

    targets: tuple[str, ...]
    """Ids of the entries."""
    blobs: tuple[str, ...]
    """Hashes of the blobs that were deleted."""
    quarantine: tuple[str, ...]
    """Names of the files in `quarantine/` that held copies of data, or were such blobs."""


class Mark:
    """The mark of an unfinished redaction, locked by the process that works on it."""

    __slots__ = ("_fd", "_folder")

    def __init__(self, folder: Folder, fd: int) -> None:
        self._folder, self._fd = folder, fd

    @classmethod
    def put(cls, folder: Folder) -> Self:
        """Create the mark, synced, or take over that of a crash; wait if a process holds it."""
        while True:
            fd = folder.file(MARK, os.O_RDWR | os.O_CREAT)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                folder.sync()
                return cls(folder, fd)
            os.close(fd)  # the process that held it has finished

    @classmethod
    def take_over(cls, folder: Folder) -> Self | None:
        """Return the mark that a crash left; None if there is none, or a process holds it."""
        try:
            fd = folder.file(MARK, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return None
        return cls(folder, fd)

    def remove(self) -> None:
        """Remove the mark: the redaction is complete."""
        with suppress(FileNotFoundError):
            os.unlink(MARK, dir_fd=self._folder.fd)
        self._folder.sync()

    def close(self) -> None:
        """Unlock the mark; if it was not removed, the next process completes the redaction."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def has_stale_mark(folder: Folder) -> bool:
    """Return whether a redaction was interrupted and no process is completing it now."""
    try:
        fd = folder.file(MARK)
    except (FileNotFoundError, OSError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def complete(tape: Redactable) -> Overwritten:
    """Overwrite all data that redact entries name and that still exists, with its blobs and copies.

    The redact entries are synced first: a program may have been killed between its write and its
    sync. Raises WriteFailed.
    """
    said = list(tape.phases.redact_entries())
    if tape.phases.folder.durable:
        for name in {phase for phase, _ in said}:
            with tape.phases.open(name) as file:
                disk.sync(file.fd)
    ids = {target for _, data in said for target in data.targets}
    targets = list(find_unfinished(tape.phases, ids))
    doomed = find_doomed(tape.phases, targets)
    copies = _hide_copies(tape.folder, targets, ids, doomed)
    blobs = tuple(digest for digest in doomed if tape.blobs.remove(digest))
    for target in targets:
        with tape.phases.folder.sub(target.phase) as folder:
            hide(folder, ENTRIES, [(target.start, len(target.data))])
    tape.forget_overwritten()
    return Overwritten(tuple(target.entry for target in targets), blobs, copies)


def complete_interrupted(tape: Redactable) -> None:
    """Complete a redaction that a crash interrupted, unless another process works on it."""
    mark = Mark.take_over(tape.folder)
    if mark is None and tape.folder.has(MARK):
        return
    if mark is None:  # an older program left no mark: the newest entry is a redact entry
        if next(find_unfinished(tape.phases, tape.phases.redacted_ids()), None):
            complete(tape)
        return
    with mark:
        complete(tape)
        mark.remove()


def find_unfinished(phases: Phases, ids: Collection[str]) -> Iterator[Overwriting]:
    """Yield the entries among `ids` whose data is not all overwritten; reads every line."""
    begins = {entry.encode() for entry in ids}
    for phase, offset, line in phases.all_lines() if begins else ():
        if line[_ID_START:_ID_END] not in begins:
            continue
        try:
            header = read_header(line)
        except Damaged:  # the offset of its data is unknown
            continue
        data = line[header.data : -1]
        if len(data) >= len(BLANK) and not is_redacted(line, header):
            start = offset + header.data
            yield Overwriting(header.id, header.type, header.time, phase, offset, start, data)


def find_doomed(phases: Phases, targets: Sequence[Overwriting]) -> list[str]:
    """Return the hashes of the blobs that only the targets name."""
    found = {digest for target in targets for digest in NAMED.findall(target.data)}
    ids = {target.entry.encode() for target in targets}
    for _, _, line in phases.all_lines() if found else ():
        if line[_ID_START:_ID_END] not in ids:
            found.difference_update(NAMED.findall(line))
    return sorted(digest.decode() for digest in found)


def find_copies(tape: Folder, ids: Collection[str]) -> list[str]:
    """Return the names of the files in quarantine that hold data of the entries `ids`."""
    try:
        with tape.sub("quarantine") as quarantine:
            return [name for name in quarantine.names() if any(_copies(quarantine, name, (), ids))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _hide_copies(
    tape: Folder, targets: Sequence[Overwriting], ids: Collection[str], doomed: Iterable[str]
) -> tuple[str, ...]:
    """Overwrite the targets' data in quarantine, keeping all else; return the files' names.

    A file that is one of the `doomed` blobs, moved there because it was damaged, is deleted.
    """
    try:
        quarantine = tape.sub("quarantine")
    except FileNotFoundError:
        return ()
    with quarantine:
        names = quarantine.names()
        gone = [name for name in names if name.startswith(tuple(f"blob.{d}" for d in doomed))]
        gone += [name for name in names if name.startswith(tuple(doomed))]
        for name in gone:
            os.unlink(name, dir_fd=quarantine.fd)
        quarantine.sync()
        hidden = []
        for name in (name for name in names if name not in gone):
            spans = list(_copies(quarantine, name, targets, ids))
            if spans:
                hide(quarantine, name, spans)
                hidden.append(name)
    return (*gone, *hidden)


def _copies(
    quarantine: Folder, name: str, targets: Sequence[Overwriting], ids: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield offset and length of data in a file that is a target's, or the beginning of it."""
    try:
        lines = quarantine.read(name).split(b"\n")
    except OSError:  # a folder, or a link that is not followed
        return
    offset = 0
    for line in lines:
        head, marker, rest = line.partition(_DATA)
        data = rest.removesuffix(b"}")
        if (
            len(data) >= len(BLANK)
            and data.rstrip(b" ") != BLANK
            and _is_copy(line, rest, targets, ids)
        ):
            yield offset + len(head) + len(marker), len(data)
        offset += len(line) + 1


def _is_copy(
    line: bytes, rest: bytes, targets: Sequence[Overwriting], ids: Collection[str]
) -> bool:
    """Return whether a line is of one of `ids`, or ends with the beginning of a target's data."""
    if line[_ID_START:_ID_END].decode("latin-1") in ids:
        return True
    return any(_is_beginning(rest, target.data + b"}") for target in targets)


def _is_beginning(rest: bytes, data: bytes) -> bool:
    """Return whether bytes are the beginning of `data`, also if it is half overwritten."""
    if data.startswith(rest):
        return True
    if not rest.startswith(BLANK) or len(rest) > len(data):
        return False
    return data[len(BLANK) : len(rest)].endswith(rest[len(BLANK) :].lstrip(b" "))


def hide(folder: Folder, name: str, spans: Sequence[tuple[int, int]]) -> None:
    """Overwrite spans (offset, length) of a file by `null` and spaces; sync `null` first."""
    fd = folder.file(name, os.O_WRONLY)
    try:
        for first in (True, False):
            for offset, length in spans:
                text = BLANK[:length] if first else b" " * (length - len(BLANK))
                disk.overwrite(fd, text, offset if first else offset + len(BLANK))
            if folder.durable:
                disk.sync(fd)
    finally:
        os.close(fd)
