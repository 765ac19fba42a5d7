"""Export: a plan → the lines of a file, for a whole tape or only the path to one entry.

The tape is only read. Memory holds one entry or one blob at a time, and the ids that entries name.

If something is masked, `RedactedCopy` rewrites the lines: new id, new hashes, the same history.
Invariant: the result is a complete tape, every hash and every place in it valid. The same tape
always gives the same bytes. Entries of a copied past before the first masked one are unchanged; all
of the tape's own entries change, because their root names the tape:

    data masked  →  "dh" changes  →  the entry's id changes  →  "parentId" of its child, and every
    "entry":"<id>" and "offset" that names it (pins, anchors, summaries, labels) change with it
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..masking.secrets import mask_text
from ..model.entries import Start
from ..model.line import read_id, rewrite_line
from ..store.phase import ORIGIN
from ..store.refs import encode_ref_line
from ..store.store import build_slug
from .contents import (
    ENTRY_ID,
    ArchiveTotals,
    BlobLine,
    EndLine,
    MaskingRecord,
    PhaseLine,
    encode_archive_line,
    mask_blob,
    mask_entry_data,
    plan_path,
    plan_tape,
    read_blob,
    read_checked_lines,
    scan_archive,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..store.refs import Head
    from ..store.tape import Tape
    from .contents import ArchivedPhase, ArchiveHeader, ArchivePlan, ArchiveScan, CheckedLine


_PLACE_FIELDS = re.compile(
    rb'"offset":([0-9]+)(,(?:"count":[0-9]+,)?"(?:entry|first)":"([0-9a-f]{40})")'
)


class RedactedCopy:
    """A plan with its secrets masked."""

    def __init__(self, plan: ArchivePlan, scan: ArchiveScan, tape: str) -> None:
        self._plan, self._found, self._old = plan, scan, tape
        self.tape = sha256(f"masked {tape}".encode()).hexdigest()[:32]
        """Id of the resulting tape."""
        self._ids: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._known: Callable[[str], object] = self._ids.get
        self._assign_ids()

    def _assign_ids(self) -> None:
        """Compute the new ids and places of all entries that others name.

        Phases are processed in parallel: an entry may name one of a later phase, written earlier on
        another branch.
        """
        phases = {
            line.header.id: part.name
            for part in self._plan.parts
            for line in read_checked_lines(part)
            if line.header.id in self._found.wanted
        }
        going = {part.name: self._rewrite_phase(part) for part in self._plan.parts}

        def rewrite_up_to(entry: str) -> None:
            while entry in phases and entry not in self._ids:
                if next(going[phases[entry]], None) is None:
                    return

        self._known = rewrite_up_to
        for steps in going.values():
            for _ in steps:
                pass
        self._known = self._ids.get

    def lines(self, part: ArchivedPhase) -> Iterator[bytes]:
        """Yield the rewritten lines of a phase, each with its newline."""
        return self._rewrite_phase(part)

    def _rewrite_phase(self, part: ArchivedPhase) -> Iterator[bytes]:
        before: str | None = None
        offset = 0
        for line in read_checked_lines(part):
            parent = before
            if before is None and line.header.parent_id is not None:
                self._known(line.header.parent_id)
                parent = self._ids.get(line.header.parent_id, line.header.parent_id)
            raw = self._rewrite_line(line, parent, is_own=part.name != ORIGIN)
            before = read_id(raw)
            if line.header.id in self._found.wanted and line.header.id not in self._ids:
                self._ids[line.header.id] = before
                if part.name != ORIGIN:  # a place in a copied past is a place in the origin tape
                    self._offsets[line.header.id] = offset
            offset += len(raw)
            yield raw

    def _rewrite_line(self, line: CheckedLine, parent: str | None, *, is_own: bool) -> bytes:
        data = line.data
        if line.header.id in self._found.masked:
            data = mask_entry_data(self._found, data).data
        data = self._rename_entries(data)
        if is_own and line.header.type == Start.entry_type:
            # the new id of the tape, and the old one beside it
            old, new = (b'"tape":"%b"' % field.encode() for field in (self._old, self.tape))
            data = data.replace(old, new, 1)[:-1] + b',"masked_from":"%b"}' % self._old.encode()
        if data == line.data and parent == line.header.parent_id:
            return line.raw + b"\n"
        return rewrite_line(line.raw, line.header, parent, data)

    def _rename_entries(self, data: bytes) -> bytes:
        """Return data with the new ids and places of the entries it names."""
        for entry in ENTRY_ID.findall(data):
            self._known(entry.decode())

        def move_place(match: re.Match[bytes]) -> bytes:
            offset = self._offsets.get(match[3].decode())
            return match[0] if offset is None else b'"offset":%d%b' % (offset, match[2])

        def rename_entry(match: re.Match[bytes]) -> bytes:
            entry = match[1].decode()
            return b'"%b"' % self._ids.get(entry, entry).encode()

        return ENTRY_ID.sub(rename_entry, _PLACE_FIELDS.sub(move_place, data))

    def refs(self) -> list[bytes]:
        """Return the lines of the journal, each with its newline."""
        lines = []
        for line in self._plan.refs:
            fields: dict[str, Any] = msgspec.json.decode(line)
            del fields["h"]
            if fields.get("pin"):
                entry = fields["pin"]["entry"]
                at = self._offsets.get(entry, fields["pin"]["offset"])
                fields["pin"] = {"offset": at, "entry": self._ids.get(entry, entry)}
            if fields.get("entry"):
                fields["entry"] = self._ids.get(fields["entry"], fields["entry"])
            for field in ("title", "why"):
                if fields.get(field):
                    fields[field] = mask_text(fields[field]).text
            lines.append(encode_ref_line(fields))
        return lines

    def header(self) -> ArchiveHeader:
        """Return the first line: the new tape.json, and the counts of masked secrets."""
        info: dict[str, Any] = msgspec.json.decode(self._plan.header.tape)
        info["id"] = self.tape
        if info.get("origin"):
            entry = info["origin"]["entry"]
            info["origin"]["entry"] = self._ids.get(entry, entry)
        path = self._plan.header.path
        titles = [title for ref in self.refs() if (title := msgspec.json.decode(ref).get("title"))]
        slug = build_slug(titles[-1] if titles else "")
        return replace(
            self._plan.header,
            tape=Raw(msgspec.json.encode(info)),
            folder=f"{info['created'][:10]}-{slug}-{self.tape[:8]}",
            path=path and self._ids.get(path, path),
            masked=MaskingRecord(self._old, self._found.secrets, len(self._found.masked)),
        )


class ExportReport(NamedTuple):
    """The result of an export."""

    tape: str
    """Id of the tape in the file: a new one if secrets were masked."""
    entries: int
    blobs: int
    lost: tuple[str, ...]
    """Digests of the blobs that are named but missing."""
    secrets: int
    """Number of masked secrets, in `masked` entries."""
    masked: int


def export_tape(
    tape: Tape, write: Callable[[bytes], object], *, head: Head | None = None, redact: bool = True
) -> ExportReport:
    """Write a tape, or the path to `head`, as the lines of one file; `redact` masks secrets.

    Raises Damaged with the place of the first line that does not verify, NotFound if the origin is
    missing, both before anything is written.
    """
    plan = plan_tape(tape) if head is None else plan_path(tape, head)
    scan = scan_archive(tape, plan, redact=redact)
    is_masked = bool(scan.masked) or scan.is_secret_named
    redacted_copy = RedactedCopy(plan, scan, tape.id) if is_masked else None
    hashed = sha256()
    for line in _iter_archive_lines(plan, scan, redacted_copy):
        hashed.update(line)
        write(line)
    blobs = {_get_blob_digest(scan, digest) for digest in scan.blobs}
    refs = len(plan.refs)
    totals = ArchiveTotals(scan.entries, len(plan.parts), len(blobs), refs, hashed.hexdigest())
    write(encode_archive_line(EndLine(totals)))
    lost = tuple(digest for digest, shelf in scan.blobs.items() if shelf is None)
    identity = redacted_copy.tape if redacted_copy else tape.id
    return ExportReport(identity, scan.entries, len(blobs), lost, scan.secrets, len(scan.masked))


def _iter_archive_lines(
    plan: ArchivePlan, scan: ArchiveScan, redacted_copy: RedactedCopy | None
) -> Iterator[bytes]:
    """Yield all lines except the last: blobs before the entries that name them, refs after."""
    yield encode_archive_line(redacted_copy.header() if redacted_copy else plan.header)
    yield from _iter_blob_lines(scan)
    for part in plan.parts:
        yield encode_archive_line(PhaseLine(part.name))
        copied = (line.raw + b"\n" for line in read_checked_lines(part))
        yield from redacted_copy.lines(part) if redacted_copy else copied
    yield from redacted_copy.refs() if redacted_copy else plan.refs


def _iter_blob_lines(scan: ArchiveScan) -> Iterator[bytes]:
    written: set[str] = set()
    for digest in scan.blobs:
        name = _get_blob_digest(scan, digest)
        if name in written:  # two blobs that differ only in a secret
            continue
        written.add(name)
        data = read_blob(scan, digest)
        if data is not None and name != digest:
            data, _ = mask_blob(data)
        yield encode_archive_line(BlobLine(name, data))


def _get_blob_digest(scan: ArchiveScan, digest: str) -> str:
    """Return the digest of a blob in the file."""
    new = scan.masked_blobs.get(digest)
    return digest if new is None else new.hash
