"""What an export holds: the shapes of its lines, the plan of its content, and a scan of it.

An export is one file of JSON lines (docs/export.md):

    {"export":1,"tape":{…tape.json…},"folder":"…"}      + "path" and "masked" where they apply
    {"blob":"<sha256>","data":"<base64>"}               each blob once; null if it is lost
    {"phase":"0001-main-start"}                         then its entry lines, byte for byte
    {"h":"…","branch":"main",…}                         the lines of the journal, byte for byte
    {"end":{"entries":…,"phases":…,"blobs":…,"refs":…,"sha256":"…"}}

Phases are in the order of their numbers; a fork's shared past is `0000-origin`. A plan fixes the
content when it is created, so the tape may be written during the export. The scan verifies all
lines before the first byte is written, and finds the blobs they name, and secrets.
"""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct

from ..damage import warn_of_damage
from ..errors import Damaged, NotFound, UsageError
from ..history.picks import list_picked_ends, require_own_picks
from ..masking.secrets import MaskedJson, mask_json, mask_text
from ..model.entries import BlobRef
from ..model.line import blank_redacted_data, has_valid_data, is_data_redacted, read_header, read_id
from ..store.blobs import HEAD_CHARACTERS, Blobs
from ..store.path import Segment, require_root
from ..store.phase import ORIGIN, order_phases
from ..store.refs import JOURNAL_NAME, Pin, encode_ref_line, replay_journal
from ..store.tape import INFO_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..model.line import Header
    from ..store.refs import Head
    from ..store.tape import Tape


ARCHIVE_VERSION = 1
"""The version of the file that this code writes and reads."""

Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
PAGE_ARCHIVE_START = b'<script type="application/json" id="archive">['
PAGE_ARCHIVE_END = b"]</script>"
"""The lines of a page of HTML between which it holds the lines of an export, as JSON strings."""


class MaskingRecord(Struct, frozen=True):
    """The masking: the id of the original tape, and how many secrets in how many entries."""

    tape: str
    secrets: int
    entries: int


class ArchiveHeader(Struct, frozen=True, omit_defaults=True):
    """The first line: `tape` is the unchanged tape.json."""

    export: int
    tape: Raw
    folder: str
    path: str | None = None
    """Id of the entry, if only the path to it was exported."""
    masked: MaskingRecord | None = None


class BlobLine(Struct, frozen=True):
    """One blob; `data` is its bytes in base64, null if it is missing."""

    blob: Digest
    data: bytes | None


class PhaseLine(Struct, frozen=True):
    """The entry lines after this one, up to the next line of another kind, are this phase's."""

    phase: str


class ArchiveTotals(Struct, frozen=True):
    """Totals of the lines before the last one; `sha256` of all those bytes, as hex digits."""

    entries: int
    phases: int
    blobs: int
    refs: int
    sha256: str


class EndLine(Struct, frozen=True):
    """The last line: a file without it was truncated."""

    end: ArchiveTotals


def encode_archive_line(line: Struct) -> bytes:
    """Return a line with its newline."""
    return msgspec.json.encode(line) + b"\n"


class ArchivedPhase(NamedTuple):
    """One phase of the export: the lines of its segments, one after the other."""

    name: str
    segments: tuple[Segment, ...]

    def lines(self) -> Iterator[tuple[Segment, int, bytes]]:
        """Yield segment, offset and line, oldest first."""
        for segment in self.segments:
            for offset, line in segment.lines():
                yield segment, offset, line


class ArchivePlan(NamedTuple):
    """The content of an export except blobs, which its lines name."""

    header: ArchiveHeader
    parts: tuple[ArchivedPhase, ...]
    """The shared past of a fork first, then the phases in order of their numbers."""
    refs: tuple[bytes, ...]
    """Lines of the journal, each with its newline."""


def plan_tape(tape: Tape) -> ArchivePlan:
    """Return the plan of everything that readers of a tape see; raise Damaged, NotFound.

    Torn tails, uncommitted phases and blobs that no entry names are left out.
    """
    data, committed = _read_committed_journal(tape)
    past = _plan_origin(tape)
    names = tape.phases.names()
    own = [name for name in names if name in committed]
    _refuse_uncommitted(tape, [name for name in names if name not in committed])
    missing = sorted(committed.difference(own))
    if missing:
        raise Damaged(f"{missing[0]} is missing, which {JOURNAL_NAME} names", file=JOURNAL_NAME)
    parts = tuple(ArchivedPhase(name, (_plan_whole_phase(tape, name),)) for name in own)
    return ArchivePlan(_build_header(tape), (*past, *parts), tuple(_split_journal(data)))


def _refuse_uncommitted(tape: Tape, names: Sequence[str]) -> None:
    """Raise Damaged for a phase in use that the current journal does not name."""
    for name in names:
        with suppress(NotFound), tape.phases.open(name) as file:
            is_used = len(list(islice(file.lines(), 2))) > 1
            if is_used and name not in tape.refs().phases():
                raise Damaged(
                    f"{name} holds entries that {JOURNAL_NAME} does not name;"
                    " `tape fsck` explains it",
                    file=name,
                )


def plan_path(tape: Tape, head: Head) -> ArchivePlan:
    """Return the plan of the path to an entry, with the journal lines about that path."""
    if head.phase == ORIGIN:
        raise UsageError(
            f"entry {head.entry[:12]} is in the past this tape was forked from: "
            "export the tape, or a later entry"
        )
    own: dict[str, Segment] = {}
    past: list[Segment] = []
    ends = [head]
    while ends:  # the path first, then those to entries that merges on it picked
        for segment in tape.path(ends.pop()):
            if segment.source.tape != tape.id or segment.phase == ORIGIN:
                past += [segment] * (segment not in past)
                continue
            known = own.get(segment.phase)
            if known is None or known.end < segment.end:
                own[segment.phase] = segment
            ends += [] if known else list_picked_ends(tape, segment)
    require_own_picks(past)
    parts = [ArchivedPhase(ORIGIN, tuple(past))] if past else []
    parts += [ArchivedPhase(name, (own[name],)) for name in sorted(own, key=order_phases)]
    refs = _iter_path_refs(tape, head, parts)
    return ArchivePlan(_build_header(tape, head.entry), tuple(parts), tuple(refs))


def _build_header(tape: Tape, path: str | None = None) -> ArchiveHeader:
    info = msgspec.json.format(tape.folder.read(INFO_NAME), indent=-1)
    return ArchiveHeader(ARCHIVE_VERSION, msgspec.Raw(info), tape.folder.name, path)


def _read_committed_journal(tape: Tape) -> tuple[bytes, set[str]]:
    """Return the bytes of the journal without a torn tail, and the phases it names."""
    data = tape.folder.read(JOURNAL_NAME)
    refs = replay_journal(data)
    if refs.damage:
        raise refs.damage[0]
    return data[: refs.size], refs.phases()


def _plan_origin(tape: Tape) -> tuple[ArchivedPhase, ...]:
    """Return the path that a fork shares with its origin, from the copy if there is one."""
    if tape.info.origin is None:
        return ()
    if tape.phases.has_origin:
        require_root(tape.source)
        return (ArchivedPhase(ORIGIN, (_plan_whole_phase(tape, ORIGIN),)),)
    try:
        shared = tape.collect_shared_segments()
    except NotFound as error:
        raise NotFound(
            f"the tape this one was forked from is not in the store, so its past cannot be "
            f"exported: {error}"
        ) from error
    require_own_picks(shared)
    return (ArchivedPhase(ORIGIN, tuple(shared)),)


def _plan_whole_phase(tape: Tape, name: str) -> Segment:
    with tape.phases.open(name) as file:
        tail = file.tail()
    branch = "" if name == ORIGIN else tape.find_branch(name)
    tape.report_torn_bytes(name, branch, tail.size - tail.end, warn_of_damage)
    return Segment(tape.source, name, tail.end)


def _split_journal(journal: bytes) -> list[bytes]:
    return [line + b"\n" for line in journal.split(b"\n")[:-1]]


def _iter_path_refs(tape: Tape, head: Head, parts: Sequence[ArchivedPhase]) -> Iterator[bytes]:
    """Yield the journal lines whose places are on the path, then those that end it at `head`.

    Those have the time of the entry, so that the same path gives the same file.
    """
    data, _ = _read_committed_journal(tape)
    lines = [(line, msgspec.json.decode(line)) for line in _split_journal(data)]
    labelled = {fields["entry"] for _, fields in lines if fields.get("entry")}
    there = {
        identity
        for part in (parts if labelled else ())
        for _, _, line in part.lines()
        if (identity := read_id(line)) in labelled
    }
    ends = {part.name: part.segments[-1].end for part in parts if part.name != ORIGIN}
    own = [line for line, fields in lines if _is_on_path(fields, ends, there)]
    yield from own
    facts = {"why": "import", "time": head.header.time}
    pin = Pin(head.offset, head.entry)
    newest = replay_journal(b"".join(own)).branches.get(head.branch, [None])[-1]
    if newest is None or (newest.phase, newest.pin) not in {(head.phase, None), (head.phase, pin)}:
        yield encode_ref_line({"branch": head.branch, "phase": head.phase, "pin": pin, **facts})
    yield encode_ref_line({"current": head.branch, **facts})


def _is_on_path(fields: dict[str, Any], ends: dict[str, int], entries: set[str]) -> bool:
    """Return whether a journal line applies to a path; the current branch does not."""
    if "branch" in fields:
        pin, end = fields["pin"], ends.get(fields["phase"], 0)
        return bool(end) and (pin is None or pin["offset"] < end)
    if fields.get("entry"):
        return fields["entry"] in entries
    return "current" not in fields


BLOB_IN_DATA = re.compile(
    rb'\{"\$blob":"([0-9a-f]{64})","bytes":[0-9]{1,18},"head":"(?:[^"\\]++|\\.)*+"\}', re.DOTALL
)
"""A blob reference in an entry."""
ENTRY_ID = re.compile(rb'"([0-9a-f]{40})"')
"""A whole string that may be the id of an entry."""


class ArchiveScan(Struct):
    """The result of the scan."""

    entries: int = 0
    blobs: dict[str, Blobs | None] = {}
    """Every blob that is named, in order, and where it is read; None if it is missing."""
    masked_blobs: dict[str, BlobRef] = {}
    """Digest of each blob with a secret → its reference after masking."""
    wanted: set[str] = set()
    """Possible ids of entries that others name."""
    secrets: int = 0
    masked: set[str] = set()
    """Ids of the entries with a secret."""
    is_secret_named: bool = False
    """Whether a title, or the name of the folder, has a secret."""


class CheckedLine(NamedTuple):
    """An entry line and its header."""

    raw: bytes
    header: Header

    @property
    def data(self) -> bytes:
        """The bytes of its data."""
        return self.raw[self.header.data : -1]


def read_checked_lines(part: ArchivedPhase) -> Iterator[CheckedLine]:
    """Yield the verified lines of a phase; raise Damaged with the place of one that fails.

    Data of an interrupted redaction is blank.
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
        raw = blank_redacted_data(raw, segment.source.phases.read_redacted_ids())
        if not is_data_redacted(raw, header):
            raise Damaged("its data does not match its hash")
    return CheckedLine(raw, header)


def scan_archive(tape: Tape, plan: ArchivePlan, *, redact: bool) -> ArchiveScan:
    """Scan everything in a plan; with `redact` for secrets too. Raises Damaged."""
    scan = ArchiveScan()
    for part in plan.parts:
        shelves = list(dict.fromkeys(tape.find_tape(one.source).blobs for one in part.segments))
        for line in read_checked_lines(part):
            scan.entries += 1
            _scan_line(scan, line, shelves, redact=redact)
    if redact:
        scan.wanted.update([plan.header.path] if plan.header.path else ())
        for ref in plan.refs:
            scan.wanted.update(entry.decode() for entry in ENTRY_ID.findall(ref))
            secrets = mask_json(ref).secrets
            scan.secrets += secrets
            scan.is_secret_named |= secrets > 0
        scan.is_secret_named |= mask_text(plan.header.folder).secrets > 0
    return scan


def _scan_line(scan: ArchiveScan, line: CheckedLine, shelves: list[Blobs], *, redact: bool) -> None:
    data, blobs = line.data, []
    if b"$blob" in data:
        blobs = [digest.decode() for digest in BLOB_IN_DATA.findall(data)]
    for digest in blobs:
        if scan.blobs.get(digest) is None:
            scan.blobs[digest] = _find_blob_shelf(digest, shelves)
            if redact:
                _scan_blob(scan, digest)
    if redact:
        scan.wanted.update(digest.decode() for digest in ENTRY_ID.findall(data))
        new, secrets = mask_entry_data(scan, data)
        scan.secrets += secrets
        if new != data:
            scan.masked.add(line.header.id)


def mask_entry_data(scan: ArchiveScan, data: bytes) -> MaskedJson:
    """Return the data of an entry with its secrets masked, those of its blobs too."""

    def rename_blob(name: re.Match[bytes]) -> bytes:
        new = scan.masked_blobs.get(name[1].decode())
        return name[0] if new is None else msgspec.json.encode(new)

    return mask_json(BLOB_IN_DATA.sub(rename_blob, data) if scan.masked_blobs else data)


def _find_blob_shelf(digest: str, shelves: list[Blobs]) -> Blobs | None:
    """Return the folder that has an intact copy of a blob; None if none has."""
    for shelf in shelves:
        try:
            if sha256(shelf.read(digest)).hexdigest() == digest:
                return shelf
        except NotFound:
            continue
    return None


def _scan_blob(scan: ArchiveScan, digest: str) -> None:
    data = read_blob(scan, digest)
    new, secrets = mask_blob(data) if data is not None else (b"", 0)
    if secrets:
        scan.secrets += secrets
        name = sha256(new).hexdigest()
        scan.masked_blobs[digest] = BlobRef(name, len(new), new.decode()[:HEAD_CHARACTERS])


def read_blob(scan: ArchiveScan, digest: str) -> bytes | None:
    """Return the bytes of a blob; None if it is missing."""
    shelf = scan.blobs[digest]
    return None if shelf is None else shelf.read(digest)


def mask_blob(data: bytes) -> tuple[bytes, int]:
    """Return a blob with its secrets masked, and their number; other bytes are unchanged."""
    try:
        text, secrets = mask_text(data.decode())
    except UnicodeDecodeError:
        return data, 0
    return (text.encode(), secrets) if secrets else (data, 0)
