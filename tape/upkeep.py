"""Upkeep: redact data, detach from an origin, record a moved project.

Invariant: data is destroyed last, after the entry that records it is synced and after everything
that only this data names. If a call is interrupted, the same call again completes it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from . import disk
from .blobs import NAMED
from .entries import Meta, Redact
from .errors import Ambiguous, Damaged, NotFound, TapeError, UsageError
from .line import blank_named, is_redacted, read_header
from .phase import ENTRIES, ORIGIN, PhaseFile
from .redaction import BLANK, Mark, Overwriting, complete, find_doomed
from .reference import is_prefix

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .blobs import Blobs
    from .path import Segment, Source
    from .tape import Tape

_STRUCTURE = frozenset({"start", "branch", "anchor", "redact"})
_DATA = b',"data":'
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


def redactable(tape: Tape, targets: Sequence[str]) -> tuple[list[Overwriting], list[str]]:
    """Return the entries that redacting `targets` would overwrite, and blobs it would delete.

    Raises as `redact` does, and writes nothing.
    """
    hidden = _with_data(tape, targets)
    return hidden, find_doomed(tape.phases, hidden)


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
    hidden = _with_data(tape, targets)
    with Mark.put(tape.folder) as mark:
        try:
            entry = _record(tape, [target.entry for target in hidden], why, branch)
        except TapeError:
            mark.remove()
            raise
        done = complete(tape)
        mark.remove()
    return Redacted(entry, tuple(target.entry for target in hidden), done.blobs, done.quarantine)


def _with_data(tape: Tape, targets: Sequence[str]) -> list[Overwriting]:
    """Return the entries that have data to hide, each once."""
    found = {target.entry: target for target in (_target(tape, prefix) for prefix in targets)}
    return [target for target in found.values() if len(target.data) >= len(BLANK)]


def _target(tape: Tape, prefix: str) -> Overwriting:
    """Return the entry of this tape that a prefix names, if it may be redacted."""
    if not is_prefix(prefix):
        raise UsageError(f"{prefix!r} is not the id of an entry: give four hex digits or more")
    hits = tape.own_entries(prefix)
    if not hits:
        raise _missing(tape, prefix)
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
    return Overwriting(
        head.entry, head.header.type, head.header.time, head.phase, head.offset, start, data
    )


def _missing(tape: Tape, prefix: str) -> NotFound | UsageError:
    for hit in tape.find_entry(prefix):
        return UsageError(
            f"entry {hit.head.entry[:12]} is in tape {hit.tape.id[:8]}, which this one was "
            "forked from: redact it there"
        )
    return NotFound(f"no entry {prefix!r} in tape {tape.id[:8]}")


def _record(tape: Tape, targets: list[str], why: str, branch: str | None) -> str | None:
    """Write and sync a `redact` entry for the targets; None if earlier ones name them all."""
    named = tape.phases.redacted_ids()
    new = tuple(target for target in targets if target not in named)
    if not new:
        return None
    with tape.writer(branch) as writer:
        return writer.append(Redact(new, why)).id


def detach(tape: Tape) -> None:
    """Copy the path this tape shares with its origin, so that it no longer needs the origin.

    The copy, `phases/0000-origin/`, with the blobs it names, is created whole or not at all; blobs
    that are missing or damaged in the origin stay missing. A `redact` entry here first names what
    was redacted there. Does nothing for a tape that has no origin or is detached. Raises Busy while
    a branch is being written, NotFound if the origin is missing.
    """
    while tape.info.origin is not None and not tape.phases.has_origin:
        with tape.alone():
            unnamed = _copy_past(tape)
            if not unnamed:
                with tape.followed():
                    tape.folder.move(_NEW_ORIGIN, tape.phases.folder, ORIGIN)
                return
        with tape.writer() as writer:
            writer.append(Redact(unnamed, "redacted in the tape this one was forked from"))


def _copy_past(tape: Tape) -> tuple[str, ...]:
    """Build the copy beside the phases; return the redacted ids in it that no entry names yet.

    Data that an interrupted redaction left in the origin is not copied.
    """
    shared = tape.shared()
    with tape.folder.make(_NEW_ORIGIN) as new:
        with suppress(FileNotFoundError):  # left by an interrupted copy
            os.unlink(ENTRIES, dir_fd=new.fd)
        with PhaseFile(new.file(ENTRIES, os.O_RDWR | os.O_CREAT | os.O_EXCL), ORIGIN) as copy:
            gone = {id_ for source in _sources(shared) for id_ in source.phases.redacted_ids()}
            for segment in shared:
                _copy(segment, copy.fd, gone)
            if new.durable:
                disk.sync(copy.fd)
            _copy_blobs(copy, [tape.tape_of(segment.source).blobs for segment in shared], tape)
            unnamed = _unnamed(tape, copy)
        new.sync()
    return unnamed


def _sources(shared: Sequence[Segment]) -> list[Source]:
    return list({segment.source.tape: segment.source for segment in shared}.values())


def _copy(segment: Segment, fd: int, gone: Collection[str]) -> None:
    """Append the lines of a segment as they are, with redacted data blank."""
    with segment.source.phases.open(segment.phase) as file:
        for _, data in file.runs(0, segment.end):
            disk.write_all(fd, data if not gone else _blanked(data, gone))


def _blanked(data: bytes, gone: Collection[str]) -> bytes:
    return b"".join(blank_named(line[:-1], gone) + b"\n" for line in BytesIO(data).readlines())


def _copy_blobs(copy: PhaseFile, shelves: list[Blobs], tape: Tape) -> None:
    digests = {digest for _, line in copy.lines() for digest in NAMED.findall(line)}
    for digest in sorted(digests):
        for blobs in dict.fromkeys(shelves):
            _copy_blob(digest.decode(), blobs, tape.blobs)


def _copy_blob(digest: str, source: Blobs, to: Blobs) -> None:
    with suppress(NotFound):
        to.put(source.read(digest))


def _unnamed(tape: Tape, copy: PhaseFile) -> tuple[str, ...]:
    named = {*tape.phases.redacted_ids(), *copy.redacted_ids()}
    gone = (_redacted(line) for _, line in copy.lines() if _DATA + BLANK in line)
    return tuple(entry for entry in gone if entry and entry not in named)


def _redacted(line: bytes) -> str | None:
    """Return the id of a line whose data is redacted; else None."""
    try:
        header = read_header(line)
    except Damaged:
        return None
    return header.id if is_redacted(line, header) else None


def move(tape: Tape, cwd: str) -> str:
    """Record that the project moved to the folder `cwd`, and return the entry's id.

    It is written to the current branch under the locks of all branches; raises Busy.
    """
    branch = tape.refs().current
    with tape.writer(branch) as writer, tape.alone(but=branch):
        return writer.append(Meta(cwd=cwd)).id
