"""Upkeep: redact data, detach a tape from its origin, record a moved project.

Invariant: data is destroyed last, after the entry that records it is synced and after everything
that only this data names. If a call is interrupted, the same call again completes it: `redact`
leaves a mark (see `redaction`), `detach` builds `.new-origin` and renames it when it is whole.
"""

from __future__ import annotations

import os
from contextlib import suppress
from io import BytesIO
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from ...errors import Ambiguous, Damaged, NotFound, TapeError, UsageError
from ...folders import locate_repository
from ...history.picks import require_own_picks
from ...ids import is_id_prefix
from ...index.library import list_tapes
from ...model.entries import Meta, Redact
from ...model.line import BLANK_DATA, DATA_KEY, blank_redacted_data, is_data_redacted, read_header
from ...places.moved import find_moved_folder
from .. import disk
from ..blobs import find_blob_hashes
from ..phase import ENTRIES, ORIGIN, PhaseFile
from ..redaction import (
    RedactionEntry,
    RedactionMark,
    complete_redaction,
    find_unshared_blobs,
)
from ..refs import JOURNAL_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...index.projection import Index
    from ...places.moved import MovedProject
    from ..store import Store
    from ..tape import Tape

_STRUCTURE = frozenset({"start", "branch", "anchor", "redact"})
_NEW_ORIGIN = ".new-origin"


class Redacted(NamedTuple):
    """What a redaction did."""

    entry: str | None
    """Id of the `redact` entry; None if earlier ones name every target."""
    targets: tuple[str, ...]
    """Ids of the entries that were overwritten; those without data to hide are left out."""
    blobs: tuple[str, ...]
    """Hashes of the blobs that were deleted."""
    quarantine: tuple[str, ...]
    """Names of the files in `quarantine/` that held copies of data, or were such blobs."""


def preview_redaction(tape: Tape, targets: Sequence[str]) -> tuple[list[RedactionEntry], list[str]]:
    """Return the entries that redacting `targets` would overwrite, and blobs it would delete.

    Raises as `redact` does, and writes nothing.
    """
    hidden = _select_entries_with_data(tape, targets)
    return hidden, find_unshared_blobs(tape.phases, hidden)


def redact(tape: Tape, targets: Sequence[str], why: str, *, branch: str | None = None) -> Redacted:
    """Overwrite the data of entries, given by id prefix; this cannot be undone.

    A `redact` entry that names them is written first, on `branch` or the current one. Then their
    copies in quarantine are overwritten, blobs that no other entry of the tape names are deleted,
    and the data becomes `null` and spaces. Data shorter than `null` is left. Interrupted redactions
    are completed too. Branches may be written meanwhile, but an entry that refers to a blob while
    it is deleted loses it. The tape's title and the name of its folder are not data and stay.

    Raises NotFound or Ambiguous for a prefix, UsageError for an entry that is part of the structure
    or of an origin, all before anything is written; Busy if `branch` is being written.
    """
    hidden = _select_entries_with_data(tape, targets)
    with RedactionMark.place_mark(tape.folder) as mark:
        try:
            named, entry = tape.phases.read_redacted_ids(), None
            new = tuple(target.entry for target in hidden if target.entry not in named)
            if new:
                with tape.writer(branch) as writer:
                    entry = writer.append(Redact(new, why)).id
        except TapeError:
            mark.remove()
            raise
        done = complete_redaction(tape)
        mark.remove()
    return Redacted(entry, tuple(target.entry for target in hidden), done.blobs, done.quarantine)


def _select_entries_with_data(tape: Tape, targets: Sequence[str]) -> list[RedactionEntry]:
    """Return the entries of this tape that the prefixes name and that have data, each once."""
    targets_by_id = {}
    for prefix in targets:
        if not is_id_prefix(prefix):
            raise UsageError(f"{prefix!r} is not the id of an entry: give four hex digits or more")
        hits = tape.find_own_entries(prefix)
        if not hits:
            for hit in tape.find_entry(prefix):
                raise UsageError(
                    f"entry {hit.head.entry[:12]} is in tape {hit.tape.id[:8]}, which this one was "
                    "forked from: redact it there"
                )
            raise NotFound(f"no entry {prefix!r} in tape {tape.id[:8]}")
        if len(hits) > 1:
            raise Ambiguous(prefix, tuple(f"{hit.head.entry} in {hit.head.phase}" for hit in hits))
        head = hits[0].head
        if head.header.type in _STRUCTURE:
            raise UsageError(
                f"entry {head.entry[:12]} is a {head.header.type}: it is part of the structure and "
                "cannot be redacted"
            )
        start = head.offset + head.header.data
        with tape.phases.open(head.phase) as file:
            data = file.read(start, head.end - 2)
        if len(data) >= len(BLANK_DATA):
            at = (head.phase, head.offset, start, data)
            targets_by_id[head.entry] = RedactionEntry(
                head.entry, head.header.type, head.header.time, *at
            )
    return [*targets_by_id.values()]


def detach(tape: Tape) -> None:
    """Copy the path this tape shares with its origin, so that it no longer needs the origin.

    The copy, `phases/0000-origin/`, with the blobs it names, is created whole or not at all; blobs
    that are missing or damaged in the origin stay missing. A `redact` entry here first names what
    was redacted there. Does nothing for a tape that has no origin or is detached. Raises Busy while
    a branch is being written, NotFound if the origin is missing, UsageError if a merge in the
    shared past picked entries that are not on it.
    """
    while tape.info.origin is not None and not tape.phases.has_origin:
        with tape.hold_all_locks():
            unnamed = _copy_shared_path(tape)
            if not unnamed:
                with tape.notify_projection():
                    tape.folder.move(_NEW_ORIGIN, tape.phases.folder, ORIGIN)
                    # Whoever looks for changed tapes, such as a push, asks when this one was.
                    os.utime(JOURNAL_NAME, dir_fd=tape.folder.fd, follow_symlinks=False)
                return
        with tape.writer() as writer:
            writer.append(Redact(unnamed, "redacted in the tape this one was forked from"))


def _copy_shared_path(tape: Tape) -> tuple[str, ...]:
    """Build the copy beside the phases; return the redacted ids in it that no entry names yet.

    Data that an interrupted redaction left in the origin is not copied.
    """
    shared = tape.collect_shared_segments()
    require_own_picks(shared)
    with tape.folder.make(_NEW_ORIGIN) as new:
        with suppress(FileNotFoundError):  # left by an interrupted copy
            os.unlink(ENTRIES, dir_fd=new.fd)
        with PhaseFile(new.file(ENTRIES, os.O_RDWR | os.O_CREAT | os.O_EXCL), ORIGIN) as copy:
            gone: set[str] = set()
            for source in {segment.source.tape: segment.source for segment in shared}.values():
                gone |= source.phases.read_redacted_ids()
            for segment in shared:
                with segment.source.phases.open(segment.phase) as file:
                    for _, data in file.read_runs(0, segment.end):
                        lines = BytesIO(data).readlines() if gone else ()
                        blank = (blank_redacted_data(line[:-1], gone) + b"\n" for line in lines)
                        disk.write_bytes(copy.fd, b"".join(blank) or data)
            if new.durable:
                disk.sync_file(copy.fd)
            shelves = dict.fromkeys(tape.find_tape(segment.source).blobs for segment in shared)
            digests = {digest for _, line in copy.lines() for digest in find_blob_hashes(line)}
            for digest, blobs in product(sorted(digests), shelves):
                with suppress(NotFound):
                    tape.blobs.put(blobs.read(digest.decode()))
            named = {*tape.phases.read_redacted_ids(), *copy.read_redacted_ids()}
            unnamed = []
            for line in (line for _, line in copy.lines() if DATA_KEY + BLANK_DATA in line):
                with suppress(Damaged):
                    header = read_header(line)
                    if is_data_redacted(line, header) and header.id not in named:
                        unnamed.append(header.id)
        new.sync()
    return tuple(unnamed)


def move_project(
    store: Store, index: Index | None, moved: MovedProject, repository: str | None = None
) -> tuple[str, ...]:
    """Record of each tape of a project where it is now; return the ids of the others.

    Those are in use by another program, or damaged. `repository` is the name of the one there.
    """
    left = []
    for row in list_tapes(store, index):
        if row.id not in moved.tapes:
            continue
        try:
            with store.open_folder(row.folder) as tape:
                move(tape, find_moved_folder(row.cwd, moved.was, moved.here), repository)
        except TapeError:
            left.append(row.id)
    return tuple(left)


def move(tape: Tape, cwd: str, repository: str | None = None) -> str:
    """Record that the project moved to the folder `cwd`, and return the entry's id.

    `repository` is the name of the one there. It is written to the current branch under the locks
    of all branches; raises Busy.
    """
    branch = tape.refs().current
    with tape.writer(branch) as writer, tape.hold_all_locks(but=branch):
        project = locate_repository(cwd)
        return writer.append(Meta(cwd=cwd, project=project, repository=repository)).id
