"""Export: a plan → the lines of a file, all of it or only the path to one entry.

A tape is only read. Memory holds one entry or one blob at a time, and the ids others name.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from .anew import Anew
from .plan import path_to, whole
from .shapes import BlobLine, EndLine, PhaseLine, Totals, encode
from .survey import lines_of, masked_blob, read_blob, survey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..branches import Head
    from ..tape import Tape
    from .plan import Part, Plan
    from .survey import Survey


class Exported(NamedTuple):
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


def export(
    tape: Tape, write: Callable[[bytes], object], *, head: Head | None = None, redact: bool = True
) -> Exported:
    """Write a tape, or the path to `head`, as the lines of one file; `redact` masks secrets.

    Raises Damaged with the place of the first line that does not hold, NotFound where the tape it
    was forked from is gone, and before anything is written.
    """
    plan = whole(tape) if head is None else path_to(tape, head)
    found = survey(tape, plan, redact=redact)
    is_masked = bool(found.masked) or found.is_secret_named
    anew = Anew(plan, found, tape.id) if is_masked else None
    hashed = sha256()
    for line in _lines(plan, found, anew):
        hashed.update(line)
        write(line)
    blobs = {_name(found, digest) for digest in found.blobs}
    refs = len(plan.refs)
    totals = Totals(found.entries, len(plan.parts), len(blobs), refs, hashed.hexdigest())
    write(encode(EndLine(totals)))
    lost = tuple(digest for digest, shelf in found.blobs.items() if shelf is None)
    identity = anew.tape if anew else tape.id
    return Exported(identity, found.entries, len(blobs), lost, found.secrets, len(found.masked))


def _lines(plan: Plan, found: Survey, anew: Anew | None) -> Iterator[bytes]:
    """Yield all lines but the last: blobs before the entries that name them, refs behind."""
    yield encode(anew.header() if anew else plan.header)
    yield from _blobs(found)
    for part in plan.parts:
        yield encode(PhaseLine(part.name))
        yield from anew.lines(part) if anew else _as_they_stand(part)
    yield from anew.refs() if anew else plan.refs


def _as_they_stand(part: Part) -> Iterator[bytes]:
    for line in lines_of(part):
        yield line.raw + b"\n"


def _blobs(found: Survey) -> Iterator[bytes]:
    given: set[str] = set()
    for digest in found.blobs:
        name = _name(found, digest)
        if name in given:  # two that differ in nothing but a secret
            continue
        given.add(name)
        data = read_blob(found, digest)
        if data is not None and name != digest:
            data, _ = masked_blob(data)
        yield encode(BlobLine(name, data))


def _name(found: Survey, digest: str) -> str:
    """Return the digest of a blob in the file."""
    new = found.masked_blobs.get(digest)
    return digest if new is None else new.hash
