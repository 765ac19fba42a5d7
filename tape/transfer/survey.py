"""A first look at all lines of an export: that they hold, which blobs they name, what is secret.

Nothing is given out before it ends, so what is damaged is refused before the first byte.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from ..blobs import HEAD_CHARACTERS, Blobs
from ..blocks import BlobRef
from ..errors import Damaged, NotFound
from ..line import blank_redacted_data, has_valid_data, is_data_redacted, read_header
from .masking import MaskedJson, mask_json, mask_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..line import Header
    from ..path import Segment
    from ..tape import Tape
    from .plan import ArchivedPhase, ArchivePlan

BLOB_IN_DATA = re.compile(
    rb'\{"\$blob":"([0-9a-f]{64})","bytes":[0-9]{1,18},"head":"(?:[^"\\]++|\\.)*+"\}', re.DOTALL
)
"""A blob as an entry names it."""
ENTRY_ID = re.compile(rb'"([0-9a-f]{40})"')
"""What may be the id of an entry, where it is a whole string."""


class ArchiveScan(Struct):
    """What a first look found."""

    entries: int = 0
    blobs: dict[str, Blobs | None] = {}
    """Every blob that is named, in order, and where it is read; None where it is lost."""
    masked_blobs: dict[str, BlobRef] = {}
    """Digest of each blob that holds a secret → what names it once that is masked."""
    wanted: set[str] = set()
    """What may be ids of entries that others name."""
    secrets: int = 0
    masked: set[str] = set()
    """Ids of the entries with a secret."""
    is_secret_named: bool = False
    """A title, or the name of the folder, holds a secret."""


class CheckedLine(NamedTuple):
    """An entry line and its header."""

    raw: bytes
    header: Header

    @property
    def data(self) -> bytes:
        """The bytes of its data."""
        return self.raw[self.header.data : -1]


def read_checked_lines(part: ArchivedPhase) -> Iterator[CheckedLine]:
    """Yield the lines of a phase, each checked; raise Damaged with the place of one that fails.

    Data that a redaction cut short has left in part is blank.
    """
    before: Header | None = None
    for segment, offset, raw in part.lines():
        try:
            line = _check_entry_line(segment, raw, before)
        except Damaged as error:
            raise Damaged(
                f"{segment.phase}: the line at byte {offset} is damaged: {error}; `tape fsck` "
                "explains it",
                file=segment.phase,
                offset=offset,
            ) from error
        before = line.header
        yield line


def _check_entry_line(segment: Segment, raw: bytes, before: Header | None) -> CheckedLine:
    header = read_header(raw)
    if before is not None and header.parent_id != before.id:
        raise Damaged("it does not follow from the line before it")
    if not has_valid_data(raw, header) and not is_data_redacted(raw, header):
        raw = blank_redacted_data(raw, segment.source.phases.redacted_ids())
        if not is_data_redacted(raw, header):
            raise Damaged("its data does not match its hash")
    return CheckedLine(raw, header)


def scan_archive(tape: Tape, plan: ArchivePlan, *, redact: bool) -> ArchiveScan:
    """Look at everything a plan holds; with `redact` for secrets too. Raises Damaged."""
    found = ArchiveScan()
    for part in plan.parts:
        shelves = list(dict.fromkeys(tape.find_tape(one.source).blobs for one in part.segments))
        for line in read_checked_lines(part):
            found.entries += 1
            _scan_line(found, line, shelves, redact=redact)
    if redact:
        _scan_names(found, plan)
    return found


def _scan_line(
    found: ArchiveScan, line: CheckedLine, shelves: list[Blobs], *, redact: bool
) -> None:
    data, blobs = line.data, []
    if b"$blob" in data:
        blobs = [digest.decode() for digest in BLOB_IN_DATA.findall(data)]
    for digest in blobs:
        if found.blobs.get(digest) is None:
            found.blobs[digest] = _find_blob_shelf(digest, shelves)
            if redact:
                _scan_blob(found, digest)
    if redact:
        found.wanted.update(digest.decode() for digest in ENTRY_ID.findall(data))
        new, secrets = mask_entry_data(found, data)
        found.secrets += secrets
        if new != data:
            found.masked.add(line.header.id)


def mask_entry_data(found: ArchiveScan, data: bytes) -> MaskedJson:
    """Return the data of an entry with its secrets masked, those of its blobs too."""
    if found.masked_blobs:
        data = BLOB_IN_DATA.sub(lambda one: _rename_blob(found, one), data)
    return mask_json(data)


def _rename_blob(found: ArchiveScan, name: re.Match[bytes]) -> bytes:
    new = found.masked_blobs.get(name[1].decode())
    return name[0] if new is None else msgspec.json.encode(new)


def _find_blob_shelf(digest: str, shelves: list[Blobs]) -> Blobs | None:
    """Return where a blob is read that is what its name says."""
    for shelf in shelves:
        try:
            if sha256(shelf.read(digest)).hexdigest() == digest:
                return shelf
        except NotFound:
            continue
    return None


def _scan_blob(found: ArchiveScan, digest: str) -> None:
    data = read_blob(found, digest)
    new, secrets = mask_blob(data) if data is not None else (b"", 0)
    if secrets:
        found.secrets += secrets
        name = sha256(new).hexdigest()
        found.masked_blobs[digest] = BlobRef(name, len(new), new.decode()[:HEAD_CHARACTERS])


def read_blob(found: ArchiveScan, digest: str) -> bytes | None:
    """Return the bytes of a blob, None where it is lost."""
    shelf = found.blobs[digest]
    return None if shelf is None else shelf.read(digest)


def mask_blob(data: bytes) -> tuple[bytes, int]:
    """Return a blob with its secrets masked, and how many; one that is no text is left alone."""
    try:
        text, secrets = mask_text(data.decode())
    except UnicodeDecodeError:
        return data, 0
    return (text.encode(), secrets) if secrets else (data, 0)


def _scan_names(found: ArchiveScan, plan: ArchivePlan) -> None:
    found.wanted.update([plan.header.path] if plan.header.path else ())
    for line in plan.refs:
        found.wanted.update(entry.decode() for entry in ENTRY_ID.findall(line))
        secrets = mask_json(line).secrets
        found.secrets += secrets
        found.is_secret_named |= secrets > 0
    found.is_secret_named |= mask_text(plan.header.folder).secrets > 0
