"""Redaction: overwrite data permanently; an interrupted one can be completed (tape.md §2).

The order of the steps, each synced before the next; a crash between any two leaves what is named:

| step | if it stops here |
|---|---|
| 1 place the mark `.redacting` in the tape's folder | the next writer removes the mark |
| 2 append the `redact` entry, which names the targets | the rest is done by `resume_redaction` |
| 3 overwrite copies in quarantine, delete blobs | the targets still name their blobs |
| 4 overwrite the data: `null` first, then spaces | it starts with `null`, as no entry's data does |
| 5 erase it from the index, remove the mark | the next writer does so, and scrubs at its end |

So the redact entry names everything that still has to be overwritten, and the data, which names its
blobs, goes after them. `complete_redaction` continues from any step; running it twice is harmless.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from ..errors import Damaged
from ..model.line import BLANK_DATA, DATA_KEY, is_data_redacted, read_header, read_id
from .blobs import find_blob_hashes
from .disk import Descriptor, overwrite_bytes, sync_file
from .locks import is_flock_held, try_flock
from .phase import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from .blobs import Blobs
    from .disk import Folder
    from .phase import Phases

MARK_NAME = ".redacting"
"""Name of the file in the tape's folder while a redaction is unfinished."""


class RedactableTape(Protocol):
    """The parts of a tape that a redaction changes."""

    id: str
    folder: Folder
    phases: Phases
    blobs: Blobs

    def forget_redacted(self, *, scrubs: bool) -> None:
        """Remove what was overwritten from the index; with `scrubs` all traces of it, at once."""


class RedactionEntry(NamedTuple):
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


class RedactionResult(NamedTuple):
    """What was overwritten or deleted."""

    targets: tuple[str, ...]
    """Ids of the entries."""
    blobs: tuple[str, ...]
    """Hashes of the blobs that were deleted."""
    quarantine: tuple[str, ...]
    """Names of the files in `quarantine/` that held copies of data, or were such blobs."""


class RedactionMark(Descriptor):
    """The mark of an unfinished redaction, locked by the process that works on it.

    If it is closed without `remove`, the next process completes the redaction.
    """

    __slots__ = ("_folder",)

    def __init__(self, folder: Folder, fd: int) -> None:
        super().__init__(fd)
        self._folder = folder

    @classmethod
    def place_mark(cls, folder: Folder) -> Self:
        """Create the mark, synced, or take over that of a crash; wait if a process holds it."""
        while True:
            fd = folder.file(MARK_NAME, os.O_RDWR | os.O_CREAT)
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Whoever held the lock removed the file at its end: then this lock is on no name, and
            # another process may hold one on a new file.
            if os.fstat(fd).st_nlink:
                folder.sync()
                return cls(folder, fd)
            os.close(fd)

    @classmethod
    def take_over(cls, folder: Folder) -> Self | None:
        """Return the mark that a crash left; None if there is none, or a process holds it."""
        try:
            fd = folder.file(MARK_NAME, os.O_RDWR)
        except FileNotFoundError:
            return None
        if try_flock(fd):
            return cls(folder, fd)
        os.close(fd)
        return None

    def remove(self) -> None:
        """Remove the mark: the redaction is complete."""
        with suppress(FileNotFoundError):
            os.unlink(MARK_NAME, dir_fd=self._folder.fd)
        self._folder.sync()


def has_stale_redaction_mark(folder: Folder) -> bool:
    """Return whether a redaction was interrupted and no process is completing it now."""
    try:
        return not is_flock_held(folder, MARK_NAME)
    except OSError:
        return False


def complete_redaction(tape: RedactableTape, *, scrubs: bool = True) -> RedactionResult:
    """Overwrite all data that redact entries name and that still exists, with its blobs and copies.

    Without `scrubs` its words stay in the file of the index, found by no search, until this program
    or a later one has nothing else to do: that takes long for a large index.

    The redact entries are synced first: a program may have been killed between its write and its
    sync. Raises WriteFailed.
    """
    payloads = list(tape.phases.iter_redact_payloads())
    for name in {phase for phase, _, _ in payloads}:
        tape.phases.sync(name)
    ids = {target for _, _, data in payloads for target in data.targets}
    targets = list(find_unredacted_entries(tape.phases, ids))
    unshared = find_unshared_blobs(tape.phases, targets)
    # What depends on the data goes first: afterwards nothing tells where the copies are.
    copies = _overwrite_quarantined_copies(tape.folder, targets, ids, unshared)
    blobs = tuple(digest for digest in unshared if tape.blobs.remove(digest))
    for target in targets:
        with tape.phases.folder.sub(target.phase) as folder:
            blank_spans(folder, ENTRIES, [(target.start, len(target.data))])
    tape.forget_redacted(scrubs=scrubs)
    return RedactionResult(tuple(target.entry for target in targets), blobs, copies)


def resume_redaction(tape: RedactableTape) -> None:
    """Complete a redaction that a crash interrupted, unless another process works on it."""
    mark = RedactionMark.take_over(tape.folder)
    if mark is None and tape.folder.has(MARK_NAME):
        return
    if mark is None:  # an older program left no mark: the newest entry is a redact entry
        if next(find_unredacted_entries(tape.phases, tape.phases.read_redacted_ids()), None):
            complete_redaction(tape, scrubs=False)
        return
    with mark:
        complete_redaction(tape, scrubs=False)
        mark.remove()


def find_unredacted_entries(phases: Phases, ids: Collection[str]) -> Iterator[RedactionEntry]:
    """Yield the entries among `ids` whose data is not all overwritten; reads every line."""
    pending = set(ids)
    for phase, offset, line in phases.read_all_lines() if pending else ():
        if read_id(line) not in pending:
            continue
        try:
            header = read_header(line)
        except Damaged:  # the offset of its data is unknown; `tape verify` reports the line
            continue
        data = line[header.data : -1]
        if len(data) >= len(BLANK_DATA) and not is_data_redacted(line, header):
            start = offset + header.data
            yield RedactionEntry(header.id, header.type, header.time, phase, offset, start, data)


def find_unshared_blobs(phases: Phases, targets: Sequence[RedactionEntry]) -> list[str]:
    """Return the hashes of the blobs that only the targets name."""
    digests = {digest for target in targets for digest in find_blob_hashes(target.data)}
    ids = {target.entry for target in targets}
    for _, _, line in phases.read_all_lines() if digests else ():
        if read_id(line) not in ids:
            digests.difference_update(find_blob_hashes(line))
    return sorted(digest.decode() for digest in digests)


def find_quarantined_copies(tape: Folder, ids: Collection[str]) -> list[str]:
    """Return the names of the files in quarantine that hold data of the entries `ids`."""
    try:
        with tape.sub("quarantine") as quarantine:
            return [
                name
                for name in quarantine.names()
                if any(_find_copied_data(quarantine, name, (), ids))
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _overwrite_quarantined_copies(
    tape: Folder, targets: Sequence[RedactionEntry], ids: Collection[str], unshared: Iterable[str]
) -> tuple[str, ...]:
    """Overwrite the targets' data in quarantine, keeping all else; return the files' names.

    A file that is one of the `unshared` blobs, moved there because it was damaged, is deleted.
    """
    try:
        quarantine = tape.sub("quarantine")
    except FileNotFoundError:
        return ()
    with quarantine:
        names = quarantine.names()
        # A blob in quarantine has its hash in its name, so it goes whole.
        gone = [name for name in names if name.startswith(tuple(f"blob.{d}" for d in unshared))]
        gone += [name for name in names if name.startswith(tuple(unshared))]
        for name in gone:
            os.unlink(name, dir_fd=quarantine.fd)
        quarantine.sync()
        hidden = []
        for name in (name for name in names if name not in gone):
            spans = list(_find_copied_data(quarantine, name, targets, ids))
            if spans:
                blank_spans(quarantine, name, spans)
                hidden.append(name)
    return (*gone, *hidden)


def _find_copied_data(
    quarantine: Folder, name: str, targets: Sequence[RedactionEntry], ids: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield offset and length of data in a file that is a target's, or the beginning of it."""
    try:
        lines = quarantine.read(name).split(b"\n")
    except OSError:  # a folder, or a link that is not followed
        return
    offset = 0
    for line in lines:
        head, marker, rest = line.partition(DATA_KEY)
        data = rest.removesuffix(b"}")
        if (
            len(data) >= len(BLANK_DATA)
            and data.rstrip(b" ") != BLANK_DATA
            and _is_copied_line(line, rest, targets, ids)
        ):
            yield offset + len(head) + len(marker), len(data)
        offset += len(line) + 1


def _is_copied_line(
    line: bytes, rest: bytes, targets: Sequence[RedactionEntry], ids: Collection[str]
) -> bool:
    """Return whether a line is of one of `ids`, or ends with the beginning of a target's data.

    The data may be half overwritten: by `null`, and by spaces up to some place.
    """
    if read_id(line) in ids:
        return True
    is_blank, behind = rest.startswith(BLANK_DATA), rest[len(BLANK_DATA) :].lstrip(b" ")
    full_lines = [target.data + b"}" for target in targets]
    return any(
        whole.startswith(rest)
        or (
            is_blank
            and whole[len(BLANK_DATA) : len(rest)].endswith(behind)
            and len(rest) <= len(whole)
        )
        for whole in full_lines
    )


def blank_spans(folder: Folder, name: str, spans: Sequence[tuple[int, int]]) -> None:
    """Overwrite spans (offset, length) of a file by `null` and spaces; sync `null` first."""
    with Descriptor(folder.file(name, os.O_WRONLY)) as file:
        # `null` in front marks the data as being overwritten. Without the sync between the two the
        # disk may store the spaces alone, and what is left looks like damage.
        for first in (True, False):
            for offset, length in spans:
                text = BLANK_DATA[:length] if first else b" " * (length - len(BLANK_DATA))
                overwrite_bytes(file.fd, text, offset if first else offset + len(BLANK_DATA))
            if folder.durable:
                sync_file(file.fd)
