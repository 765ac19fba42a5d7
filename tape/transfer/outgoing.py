"""Export: a plan → the lines of a file, all of it or only the path to one entry.

A tape is only read. Memory holds one entry or one blob at a time, and the ids others name.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from .anew import RedactedCopy
from .plan import plan_path, plan_tape
from .shapes import ArchiveTotals, BlobLine, EndLine, PhaseLine, encode_archive_line
from .survey import mask_blob, read_blob, read_checked_lines, scan_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..branches import Head
    from ..tape import Tape
    from .plan import ArchivedPhase, ArchivePlan
    from .survey import ArchiveScan


class ExportReport(NamedTuple):
    """What was written."""

    tape: str
    """Id of the tape in the file: another one where secrets were masked."""
    entries: int
    blobs: int
    lost: tuple[str, ...]
    """Digests of the blobs that are named and not there."""
    secrets: int
    """How many were masked, in `masked` entries."""
    masked: int


def export_tape(
    tape: Tape, write: Callable[[bytes], object], *, head: Head | None = None, redact: bool = True
) -> ExportReport:
    """Write a tape, or the path to `head`, as the lines of one file; `redact` masks secrets.

    Raises Damaged with the place of the first line that does not hold, NotFound where the tape it
    was forked from is gone, and before anything is written.
    """
    plan = plan_tape(tape) if head is None else plan_path(tape, head)
    found = scan_archive(tape, plan, redact=redact)
    is_masked = bool(found.masked) or found.is_secret_named
    anew = RedactedCopy(plan, found, tape.id) if is_masked else None
    hashed = sha256()
    for line in _iter_archive_lines(plan, found, anew):
        hashed.update(line)
        write(line)
    blobs = {_get_blob_digest(found, digest) for digest in found.blobs}
    refs = len(plan.refs)
    totals = ArchiveTotals(found.entries, len(plan.parts), len(blobs), refs, hashed.hexdigest())
    write(encode_archive_line(EndLine(totals)))
    lost = tuple(digest for digest, shelf in found.blobs.items() if shelf is None)
    identity = anew.tape if anew else tape.id
    return ExportReport(identity, found.entries, len(blobs), lost, found.secrets, len(found.masked))


def _iter_archive_lines(
    plan: ArchivePlan, found: ArchiveScan, anew: RedactedCopy | None
) -> Iterator[bytes]:
    """Yield all lines but the last: blobs before the entries that name them, refs behind."""
    yield encode_archive_line(anew.header() if anew else plan.header)
    yield from _iter_blob_lines(found)
    for part in plan.parts:
        yield encode_archive_line(PhaseLine(part.name))
        yield from anew.lines(part) if anew else _copy_lines(part)
    yield from anew.refs() if anew else plan.refs


def _copy_lines(part: ArchivedPhase) -> Iterator[bytes]:
    for line in read_checked_lines(part):
        yield line.raw + b"\n"


def _iter_blob_lines(found: ArchiveScan) -> Iterator[bytes]:
    given: set[str] = set()
    for digest in found.blobs:
        name = _get_blob_digest(found, digest)
        if name in given:  # two that differ in nothing but a secret
            continue
        given.add(name)
        data = read_blob(found, digest)
        if data is not None and name != digest:
            data, _ = mask_blob(data)
        yield encode_archive_line(BlobLine(name, data))


def _get_blob_digest(found: ArchiveScan, digest: str) -> str:
    """Return the digest of a blob in the file."""
    new = found.masked_blobs.get(digest)
    return digest if new is None else new.hash
