"""Upkeep: redacting what should not have been recorded, detaching from an origin, moving.

Invariant: what is lost is lost last, after the entry that says so is on the medium and after all
that only the lost bytes lead to. Cut short anywhere, the same call again completes it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from . import disk
from .blobs import NAMED
from .branches import sync_base
from .entries import Meta, Redact
from .errors import Ambiguous, Damaged, NotFound, UsageError
from .line import decode, is_redacted, read_header
from .phase import ENTRIES, ORIGIN, PhaseFile
from .reference import is_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .blobs import Blobs
    from .disk import Folder
    from .path import Segment
    from .tape import Tape

_STRUCTURE = frozenset({"start", "branch", "anchor", "redact"})
_GONE = b"null"
_DATA = b',"data":'
_REDACT = b'"type":"redact","dh":"'
_HEAD = 400  # bytes in which the type of a line stands
_NEW_ORIGIN = ".new-origin"
_CHUNK = 1 << 20


class Redacted(NamedTuple):
    """What a redaction did."""

    entry: str | None
    """Id of the `redact` entry; None when earlier ones name every target."""
    targets: tuple[str, ...]
    """Ids of the entries without data now; those with nothing to hide are left out."""
    blobs: tuple[str, ...]
    """Hashes of the blobs that were deleted."""
    quarantine: tuple[str, ...]
    """Names of the files in `quarantine/` that held copies of data, or were such blobs."""


class Target(NamedTuple):
    """An entry that may be redacted."""

    entry: str
    type: str
    time: str
    phase: str
    start: int
    """Offset of the data in its phase file."""
    data: bytes


def redactable(tape: Tape, targets: Sequence[str]) -> tuple[list[Target], list[str]]:
    """Return the entries that redacting ids or prefixes would overwrite, and blobs it would delete.

    Raises as `redact` does, and writes nothing.
    """
    hidden = _with_data(tape, targets)
    return hidden, _doomed(tape, hidden)


def redact(tape: Tape, targets: Sequence[str], why: str, *, branch: str | None = None) -> Redacted:
    """Overwrite the data of entries, given by id prefix, for good; this cannot be undone.

    A `redact` entry that names them comes first, on `branch` or the current one. Then their copies
    in quarantine are overwritten, the blobs go that no other entry of the tape names, and the data
    becomes `null` and spaces. Data shorter than that is left. Branches may be written meanwhile,
    but an entry that takes up a blob in the moment it goes will miss it. The tape's title and the
    name of its folder are not data and stay.

    Raises NotFound or Ambiguous for a prefix, UsageError for an entry that holds the structure or
    stands in an origin, and before anything is written; Busy when `branch` is being written.
    """
    hidden = _with_data(tape, targets)
    entry = _record(tape, [target.entry for target in hidden], why, branch)
    doomed = _doomed(tape, hidden)
    copies = _hide_copies(tape, hidden, doomed)
    blobs = tuple(digest for digest in doomed if tape.blobs.remove(digest))
    for target in hidden:
        with tape.phases.folder.sub(target.phase) as folder:
            _hide(folder, ENTRIES, [(target.start, len(target.data))])
    if tape.projection is not None:
        tape.projection.overwrote(tape.id)
    return Redacted(entry, tuple(target.entry for target in hidden), blobs, copies)


def _with_data(tape: Tape, targets: Sequence[str]) -> list[Target]:
    """Return the entries that have something to hide, each once."""
    found = {target.entry: target for target in (_target(tape, prefix) for prefix in targets)}
    return [target for target in found.values() if len(target.data) >= len(_GONE)]


def _target(tape: Tape, prefix: str) -> Target:
    """Return the entry of this tape that a prefix means, if it may be redacted."""
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
            f"entry {head.entry[:12]} is a {head.header.type}: it holds the tape together and "
            "cannot be redacted"
        )
    start = head.offset + head.header.data
    with tape.phases.open(head.phase) as file:
        data = file.read(start, head.end - 2)
    return Target(head.entry, head.header.type, head.header.time, head.phase, start, data)


def _missing(tape: Tape, prefix: str) -> NotFound | UsageError:
    for hit in tape.find_entry(prefix):
        return UsageError(
            f"entry {hit.head.entry[:12]} stands in tape {hit.tape.id[:8]}, which this one was "
            "forked from: redact it there"
        )
    return NotFound(f"no entry {prefix!r} in tape {tape.id[:8]}")


def _record(tape: Tape, targets: list[str], why: str, branch: str | None) -> str | None:
    """Name the targets in a `redact` entry on the medium, unless earlier ones name them all."""
    named = _redactions(line for _, _, line in tape.own_lines())
    new = tuple(target for target in targets if target not in named)
    if len(new) < len(targets):  # what names the others may never have reached its barrier
        for phase in tape.refs().phases():
            sync_base(tape.phases, phase)
    if not new:
        return None
    with tape.writer(branch) as writer:
        return writer.append(Redact(new, why)).id


def _redactions(lines: Iterable[bytes]) -> set[str]:
    """Return the ids that the redact entries among some lines name."""
    return {entry for line in lines if _REDACT in line[:_HEAD] for entry in _named(line)}


def _named(line: bytes) -> tuple[str, ...]:
    try:
        data = decode(line).data
    except Damaged:
        return ()
    return data.targets if isinstance(data, Redact) else ()


def _hide_copies(tape: Tape, targets: list[Target], doomed: list[str]) -> tuple[str, ...]:
    """Overwrite the targets' data in quarantine, keeping all else; return the files' names.

    A file that is one of the doomed blobs, put there because it was damaged, is deleted.
    """
    try:
        quarantine = tape.folder.sub("quarantine")
    except FileNotFoundError:
        return ()
    with quarantine:
        names = quarantine.names()
        gone = [name for name in names if name.startswith(tuple(f"blob.{d}" for d in doomed))]
        for name in gone:
            os.unlink(name, dir_fd=quarantine.fd)
        quarantine.sync()
        hidden = [name for name in names if name not in gone and _hidden(quarantine, name, targets)]
    return (*gone, *hidden)


def _hidden(quarantine: Folder, name: str, targets: list[Target]) -> bool:
    """Overwrite what a file holds of the targets' data; tell whether it held any."""
    spans = _copies(quarantine, name, targets)
    if spans:
        _hide(quarantine, name, spans)
    return bool(spans)


def _copies(quarantine: Folder, name: str, targets: list[Target]) -> list[tuple[int, int]]:
    """Return offset and length of the data in a file that is a target's, or begins like it."""
    try:
        lines = quarantine.read(name).split(b"\n")
    except IsADirectoryError:
        return []
    spans, offset = [], 0
    for line in lines:
        head, marker, rest = line.partition(_DATA)
        length = len(rest) - rest.endswith(b"}")
        if length >= len(_GONE) and any(_is_copy(line, rest, target) for target in targets):
            spans.append((offset + len(head) + len(marker), length))
        offset += len(line) + 1
    return spans


def _is_copy(line: bytes, rest: bytes, target: Target) -> bool:
    """Tell whether a line is the target's, or its end the beginning of the target's data."""
    return line.startswith(_begins(target.entry)) or (target.data + b"}").startswith(rest)


def _begins(entry: str) -> bytes:
    return b'{"id":"%b"' % entry.encode()


def _doomed(tape: Tape, targets: list[Target]) -> list[str]:
    """Return the hashes of the blobs that no entry but the targets names."""
    found = {digest for target in targets for digest in NAMED.findall(target.data)}
    begins = tuple(_begins(target.entry) for target in targets)
    for _, _, line in tape.own_lines() if found else ():
        if not line.startswith(begins):
            found.difference_update(NAMED.findall(line))
    return sorted(digest.decode() for digest in found)


def _hide(folder: Folder, name: str, spans: list[tuple[int, int]]) -> None:
    """Overwrite (offset, length) of a file by `null` and spaces, the `null` synced before them.

    So data that is neither whole nor gone begins with `null`, by which its line is known.
    """
    fd = folder.file(name, os.O_WRONLY)
    try:
        for first in (True, False):
            for offset, length in spans:
                text = _GONE[:length] if first else b" " * (length - len(_GONE))
                disk.overwrite(fd, text, offset if first else offset + len(_GONE))
            if folder.durable:
                disk.sync(fd)
    finally:
        os.close(fd)


def detach(tape: Tape) -> None:
    """Copy the path this tape shares with its origin, so that it stands without it.

    The copy, `phases/0000-origin/`, with the blobs it names, is there whole or not at all; blobs
    that are missing or damaged in the origin stay missing. What was redacted there is named by a
    `redact` entry here first. Does nothing for a tape that has no origin or is detached. Raises
    Busy while a branch is being written, NotFound when the origin is gone.
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
    """Build the copy beside the phases; return the redacted ids in it that nothing names yet."""
    shared = tape.shared()
    with tape.folder.make(_NEW_ORIGIN) as new:
        with suppress(FileNotFoundError):  # left by a copy that was cut short
            os.unlink(ENTRIES, dir_fd=new.fd)
        with PhaseFile(new.file(ENTRIES, os.O_RDWR | os.O_CREAT | os.O_EXCL), ORIGIN) as copy:
            for segment in shared:
                _copy(segment, copy.fd)
            if new.durable:
                disk.sync(copy.fd)
            _copy_blobs(copy, [tape.tape_of(segment.source).blobs for segment in shared], tape)
            unnamed = _unnamed(tape, copy)
        new.sync()
    return unnamed


def _copy(segment: Segment, fd: int) -> None:
    with segment.source.phases.open(segment.phase) as file:
        for start in range(0, segment.end, _CHUNK):
            disk.write_all(fd, file.read(start, min(start + _CHUNK, segment.end)))


def _copy_blobs(copy: PhaseFile, shelves: list[Blobs], tape: Tape) -> None:
    digests = {digest for _, line in copy.lines() for digest in NAMED.findall(line)}
    for digest in sorted(digests):
        for blobs in dict.fromkeys(shelves):
            _copy_blob(digest.decode(), blobs, tape.blobs)


def _copy_blob(digest: str, source: Blobs, to: Blobs) -> None:
    with suppress(NotFound):
        data = source.read(digest)
        if sha256(data).hexdigest() == digest:
            to.put(data)


def _unnamed(tape: Tape, copy: PhaseFile) -> tuple[str, ...]:
    own = (line for _, _, line in tape.own_lines())
    named = _redactions(chain(own, (line for _, line in copy.lines())))
    gone = (_redacted(line) for _, line in copy.lines() if _DATA + _GONE in line)
    return tuple(entry for entry in gone if entry and entry not in named)


def _redacted(line: bytes) -> str | None:
    """Return the id of a line whose data is gone."""
    try:
        header = read_header(line)
    except Damaged:
        return None
    return header.id if is_redacted(line, header) else None


def move(tape: Tape, cwd: str) -> str:
    """Record that the project moved to the folder `cwd`, and return the entry's id.

    It stands on the current branch, written while nobody else writes any: raises Busy.
    """
    branch = tape.refs().current
    with tape.writer(branch) as writer, tape.alone(but=branch):
        return writer.append(Meta(cwd=cwd)).id
