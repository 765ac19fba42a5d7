"""Import: a file → a tape, verified, created whole or not at all.

Invariant: a tape is built or recorded under a name that readers ignore, verified, and renamed into
the store when it is complete. A failed import leaves nothing; a killed process leaves a folder
`.new-…`, which readers ignore. A tape that the store has is compared instead: if it lacks nothing
of the file, the import adds nothing. If it does, the tape that the file made is united with it, as
another copy; entries of one path cannot be, as they come without a journal of their own.

    export            header → its lines, byte for byte → verify → rename
    page of HTML      the export that it holds
    entries of a path two readings: what tape it is; its lines, with a journal made for them
    bare lines        two readings: check them and derive the id; record them as any writer does
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from itertools import zip_longest
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from msgspec import Raw

from ..check.finding import Counts, FindingKind
from ..check.verify import verify
from ..errors import Damaged, NotFound, TapeError
from ..model.entries import Redact, User, join_texts
from ..model.incoming_entry import parse_incoming_entry
from ..model.line import (
    decode_line,
    decode_payload,
    describe_missing_blob,
    is_data_redacted,
    read_header,
    read_id,
)
from ..store.phase import ENTRIES, ORIGIN
from ..store.recorded_tape import (
    ImportReport,
    ImportTarget,
    create_scratch_folder,
    find_existing_folder,
    place_tape,
    record_tape,
)
from ..store.refs import JOURNAL_NAME
from ..store.store import Store, build_slug
from ..store.tape import Tape
from ..unite.journal import KeptEnd  # noqa: TC001 (msgspec reads it)
from ..unite.tapes import TapeUnion, unite_tapes
from .tape_builder import (
    TapeBuilder,
    add_error_line,
    detect_form,
    inspect_path,
    open_page_archive,
    read_archive,
    read_archive_header,
    read_items,
    read_path_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..check.finding import Finding
    from ..store.disk import Folder
    from ..store.store import Beginning
    from ..store.writer import Writer

_IMPORT_MOVE = b'"why":"import"'


class FileImportReport(ImportReport, frozen=True):
    """The result of an import of a file of ours."""

    moves: int = 0
    """Number of moves of branches, titles and labels that a tape in the store got from it."""
    kept_ends: tuple[KeptEnd, ...] = ()
    """Branches that moved in the store and in the file, and the branches of their other ends."""


class TapeDifference(NamedTuple):
    """What the store's tape lacks."""

    entries: int
    moves: int
    """Number of journal lines: branches, titles, labels."""


class RedactionPhase(NamedTuple):
    """The phase that an import opened to name what was redacted, and the entries in it."""

    phase: str
    entries: frozenset[str]


def find_missing(there: Tape, new: Tape, redactions: RedactionPhase | None) -> TapeDifference:
    """Return what `new` has and `there` lacks; `made` is what only the import added.

    Entries are compared by id, so one that was redacted meanwhile is not missing.
    """
    entries, added = 0, redactions.entries if redactions else frozenset()
    for phase in new.phases.list_with_origin():
        if phase != ORIGIN or there.phases.has_origin:  # else it is in the tape it was forked from
            both = zip_longest(_iter_entry_ids(new, phase), _iter_entry_ids(there, phase))
            entries += sum(one is not None and one not in (other, *added) for one, other in both)
    old = set(there.folder.read(JOURNAL_NAME).split(b"\n"))
    moves = [line for line in new.folder.read(JOURNAL_NAME).split(b"\n") if line not in old]
    own = (_IMPORT_MOVE, f'"phase":"{redactions.phase}"'.encode() if redactions else _IMPORT_MOVE)
    return TapeDifference(entries, sum(not any(name in line for name in own) for line in moves))


def _iter_entry_ids(tape: Tape, phase: str) -> Iterator[str]:
    try:
        with tape.phases.open(phase) as file:
            for _, line in file.lines():
                yield read_id(line)
    except NotFound:
        return


_REDACTED_DATA = b',"data":null'
_REDACT_HEADER = b'"type":"redact","dh":"'
_REDACT_REASON = "redacted before it was imported"


def import_file(store: Store, source: BinaryIO, beginning: Beginning) -> FileImportReport:
    """Create a tape from a file that can be read twice; `beginning` is for bare lines.

    Accepts an export, a page that holds one, the entry lines of one path, or lines
    `{"type":…,"data":…}`. Importing it again adds nothing; of an export or a page that has more
    than the store's tape of this id, what is missing is added, and nothing is dropped. Raises
    Damaged, NewerFormat or InvalidEntry with the line, UsageError for another kind of file,
    TapeError if the store's tape lacks entries of a path's file, and what `unite_tapes` raises;
    nothing is changed then.
    """
    form = detect_form(source)
    if form == "page":
        with open_page_archive(source) as archive:
            return import_file(store, archive, beginning)
    if form == "export":
        header, info = read_archive_header(source)
        target = ImportTarget(info.id, header.folder, header.path is not None)
        with (
            create_scratch_folder(store, info.id) as (tapes, name),
            _open_builder(tapes, name) as building,
        ):
            read_archive(source, header, building)
            return _finish_import(store, tapes, building, target)
    if form == "entries":
        path = inspect_path(source)
        info, slug = path.info, build_slug(path.prompt)
        target = ImportTarget(info.id, f"{info.created[:10]}-{slug}-{info.id[:8]}", is_path=True)
        with (
            create_scratch_folder(store, path.info.id) as (tapes, name),
            _open_builder(tapes, name) as building,
        ):
            read_path_lines(source, path, building)
            return _finish_import(store, tapes, building, target)
    return _record_bare_lines(store, source, beginning)


@contextmanager
def _open_builder(tapes: Folder, name: str) -> Iterator[TapeBuilder]:
    with tapes.sub(name) as folder:
        building = TapeBuilder(folder)
        try:
            yield building
        finally:
            building.close()


def _finish_import(
    store: Store, tapes: Folder, building: TapeBuilder, target: ImportTarget
) -> FileImportReport:
    """Verify the built tape, and move it into the store unless the store has it."""
    building.finish_writing()
    name = building.folder.name
    with _open_built(store, tapes, name) as tape:
        redactions = _record_redactions(tape, everywhere=target.is_path)
        for finding in verify(tape, Counts()):
            _refuse_finding(finding, building)
        known, union = find_existing_folder(store, target.id), None
        if known is not None:
            union = _add_missing(store, known, tape, redactions, is_path=target.is_path)
    folder = known or place_tape(store, tapes, tapes, name, target)
    return FileImportReport(
        target.id,
        str(store.tapes.absolute() / folder),
        union.entries if union else building.entries,
        building.entries,
        len(building.lost),
        union.moves if union else 0,
        union.kept if union else (),
    )


def _open_built(store: Store, tapes: Folder, name: str) -> Tape:
    """Open the built tape with a fixed clock, so that the same file gives the same tape."""
    folder = tapes.sub(name)
    try:
        return Tape(folder, store.open, clock=lambda: 0)
    except (OSError, TapeError) as error:
        folder.close()
        raise Damaged(f"{error}; nothing was imported") from error


def _refuse_finding(finding: Finding, building: TapeBuilder) -> None:
    """Raise Damaged for a finding, except for a blob that is missing in the source."""
    if finding.level == "note":
        return
    if finding.kind is FindingKind.BLOB_NAMED and any(
        one in finding.message for one in building.lost
    ):
        return
    phase = finding.file.removeprefix("phases/").removesuffix(f"/{ENTRIES}")
    first = building.first_ref if finding.file == JOURNAL_NAME else building.phases.get(phase, 0)
    where = f"line {first + finding.line - 1}" if finding.line and first else finding.file
    raise Damaged(f"{where}: {finding.message}; nothing was imported")


def _record_redactions(tape: Tape, *, everywhere: bool) -> RedactionPhase | None:
    """Write a `redact` entry for data that was redacted in the origin, or off the path.

    Returns None if none is needed.
    """
    gone: list[str] = []
    named: set[str] = set()
    for phase, _, line in tape.phases.read_all_lines():
        if _REDACT_HEADER in line[:400] and isinstance(data := decode_line(line).data, Redact):
            named.update(data.targets)
        elif _REDACTED_DATA in line and (everywhere or phase == ORIGIN):
            header = read_header(line)
            gone += [header.id] if is_data_redacted(line, header) else []
    unnamed = tuple(entry for entry in gone if entry not in named)
    if not unnamed:
        return None
    with tape.writer() as writer:
        writer.append(Redact(unnamed, _REDACT_REASON))
        phase = writer.place.phase
    ids = [*_iter_entry_ids(tape, phase)]
    return RedactionPhase(phase, frozenset(ids))


def _add_missing(
    store: Store, folder: str, new: Tape, redactions: RedactionPhase | None, *, is_path: bool
) -> TapeUnion:
    """Add what the tape in the store lacks of the one that the file made.

    Raises TapeError where something is missing and the file is one path of the tape.
    """
    with store.open_folder(folder) as here:
        lacks = find_missing(here, new, redactions)
        if not lacks.entries and not lacks.moves:
            return TapeUnion(0, (), 0, (), ())
        if is_path:
            raise TapeError(
                f"tape {new.id[:8]} is in the store and lacks {lacks.entries} entries of this "
                "file, which is one path of it: import the whole tape, as `tape export "
                f"{new.id[:8]}` writes it where the file is from; nothing was imported"
            )
        return unite_tapes(here, new)


def _record_bare_lines(store: Store, source: BinaryIO, beginning: Beginning) -> FileImportReport:
    """Record bare lines in a tape of their own; raise InvalidEntry before anything is recorded.

    The tape's id is derived from types and data, so the same lines give the same tape.
    """
    hashed, prompt, entries = sha256(), "", 1
    for number, line in read_items(source):
        with add_error_line(number):
            kind, data = parse_incoming_entry(line)
        entries += 1
        hashed.update(b"%b %b\n" % (kind.encode(), data))
        if kind == User.entry_type and not prompt:
            payload = decode_payload(kind, Raw(data), describe_missing_blob)
            prompt = join_texts(payload.content) if isinstance(payload, User) else ""
    source.seek(0)

    def fill(_: Tape, writer: Writer) -> None:
        for number, line in read_items(source):
            with add_error_line(number):
                writer.append_data(*parse_incoming_entry(line))

    identity = hashed.hexdigest()[:32]
    tape = record_tape(store, identity, beginning._replace(slug=prompt), fill)
    return FileImportReport(identity, tape.path, entries * tape.is_new, entries, 0)
