"""Redaction: data overwritten for good, recoverable wherever it is cut short (tape.md §2).

State: a mark in the tape's folder, then the `redact` entry, both synced; then copies in quarantine,
then blobs, then the data itself, then the index; then the mark goes. So whatever still has to be
overwritten can be told by the redact entry that names it, and while any data is whole, what leads
from it to its blobs and copies is. `complete` goes on from anywhere; doing it twice is harmless.
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
"""Name of the file that is in the tape's folder while a redaction is not through."""
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
        """Have the index forget what was overwritten."""


class Overwriting(NamedTuple):
    """An entry whose data goes."""

    entry: str
    type: str
    time: str
    phase: str
    offset: int
    """Where its line begins in its phase file."""
    start: int
    """Where its data does."""
    data: bytes


class Overwritten(NamedTuple):
    """What went."""

    targets: tuple[str, ...]
    """Ids of the entries."""
    blobs: tuple[str, ...]
    """Hashes of the blobs that were deleted."""
    quarantine: tuple[str, ...]
    """Names of the files in `quarantine/` that held copies of data, or were such blobs."""


class Mark:
    """The mark of a redaction under way, locked by whoever is at work."""

    __slots__ = ("_fd", "_folder")

    def __init__(self, folder: Folder, fd: int) -> None:
        self._folder, self._fd = folder, fd

    @classmethod
    def put(cls, folder: Folder) -> Self:
        """Put the mark there, synced, or take over the one a crash left; waits for another's."""
        while True:
            fd = folder.file(MARK, os.O_RDWR | os.O_CREAT)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                folder.sync()
                return cls(folder, fd)
            os.close(fd)  # whoever held it was through

    @classmethod
    def take_over(cls, folder: Folder) -> Self | None:
        """Return the mark that a crash left; None where there is none, or somebody is at work."""
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
        """Take the mark away: nothing is left to do."""
        with suppress(FileNotFoundError):
            os.unlink(MARK, dir_fd=self._folder.fd)
        self._folder.sync()

    def close(self) -> None:
        """Let go of the mark; unless it was removed, the next one to look goes on from here."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def has_stale_mark(folder: Folder) -> bool:
    """Tell whether a redaction was cut short and nobody is completing it now."""
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
    """Overwrite whatever redact entries name and is still there, with its blobs and copies.

    What names it is synced first: a program may have been killed between its write and its sync.
    Raises WriteFailed.
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
    """Complete a redaction that a crash cut short; one that somebody is at is left to them."""
    mark = Mark.take_over(tape.folder)
    if mark is None and tape.folder.has(MARK):
        return
    if mark is None:  # a tape whose newest entry is a redact entry, as an older program left it
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
        except Damaged:  # where its data begins cannot be told
            continue
        data = line[header.data : -1]
        if len(data) >= len(BLANK) and not is_redacted(line, header):
            start = offset + header.data
            yield Overwriting(header.id, header.type, header.time, phase, offset, start, data)


def find_doomed(phases: Phases, targets: Sequence[Overwriting]) -> list[str]:
    """Return the hashes of the blobs that no entry but the targets names."""
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

    A file that is one of the doomed blobs, put there because it was damaged, is deleted.
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
    """Yield offset and length of the data in a file that is a target's, or begins like it."""
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
    """Tell whether a line is that of one of `ids`, or its end the beginning of a target's data."""
    if line[_ID_START:_ID_END].decode("latin-1") in ids:
        return True
    return any(_is_beginning(rest, target.data + b"}") for target in targets)


def _is_beginning(rest: bytes, data: bytes) -> bool:
    """Tell whether bytes are the beginning of `data`, or that as overwriting left it halfway."""
    if data.startswith(rest):
        return True
    if not rest.startswith(BLANK) or len(rest) > len(data):
        return False
    return data[len(BLANK) : len(rest)].endswith(rest[len(BLANK) :].lstrip(b" "))


def hide(folder: Folder, name: str, spans: Sequence[tuple[int, int]]) -> None:
    """Overwrite (offset, length) of a file by `null` and spaces, the `null` synced before them."""
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
