"""Import: a file → a tape, checked whole, there whole or not at all.

Invariant: a tape is built under a name that no reader looks at, verified, and renamed. What fails
leaves nothing; a process that is killed leaves a folder `.new-…`, which nothing reads.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from msgspec import Raw

from ..blocks import join_texts
from ..entries import Redact, User
from ..errors import Damaged, TapeError
from ..given import parse_incoming_entry
from ..line import decode_line, is_data_redacted, read_header
from ..payload import decode_payload, describe_missing_blob
from ..phase import ENTRIES, ORIGIN
from ..refs import JOURNAL_NAME
from ..store import build_slug
from ..tape import Tape
from ..verify import Counts, FindingKind, verify
from .building import TapeBuilder
from .compare import find_missing
from .one_path import inspect_path, read_path_lines
from .reading import add_error_line, detect_form, read_archive, read_archive_header, read_items
from .recording import (
    ImportReport,
    ImportTarget,
    create_scratch_folder,
    find_existing_folder,
    place_tape,
    record_tape,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..disk import Folder
    from ..store import Beginning, Store
    from ..verify import Finding
    from ..writer import Writer

_REDACTED_DATA = b',"data":null'
_REDACT_HEADER = b'"type":"redact","dh":"'
_REDACT_REASON = "redacted before it was imported"


def import_file(store: Store, source: BinaryIO, beginning: Beginning) -> ImportReport:
    """Make the tape that a file holds, which can be read twice; `beginning` for bare lines.

    Takes an export, the entry lines of one path, or lines `{"type":…,"data":…}`. Doing so again
    adds nothing. Raises Damaged, NewerFormat or InvalidEntry with the line, UsageError for another
    kind of file, TapeError where the store has the tape and lacks what the file has; nothing is
    made then.
    """
    form = detect_form(source)
    if form == "export":
        header, info = read_archive_header(source)
        wanted = ImportTarget(info.id, header.folder, header.path is not None)
        with (
            create_scratch_folder(store, info.id) as (tapes, name),
            _open_builder(tapes, name) as building,
        ):
            read_archive(source, header, building)
            return _finish_import(store, tapes, building, wanted)
    if form == "entries":
        path = inspect_path(source)
        wanted = ImportTarget(
            path.info.id,
            _build_import_folder_name(path.info.created, path.prompt, path.info.id),
            True,
        )
        with (
            create_scratch_folder(store, path.info.id) as (tapes, name),
            _open_builder(tapes, name) as building,
        ):
            read_path_lines(source, path, building)
            return _finish_import(store, tapes, building, wanted)
    return _record_bare_lines(store, source, beginning)


def _build_import_folder_name(created: str, words: str, identity: str) -> str:
    return f"{created[:10]}-{build_slug(words)}-{identity[:8]}"


@contextmanager
def _open_builder(tapes: Folder, name: str) -> Iterator[TapeBuilder]:
    with tapes.sub(name) as folder:
        building = TapeBuilder(folder)
        try:
            yield building
        finally:
            building.close()


def _finish_import(
    store: Store, tapes: Folder, building: TapeBuilder, wanted: ImportTarget
) -> ImportReport:
    """Verify what was built, and put it among the tapes unless it is there."""
    building.finish_writing()
    name = building.folder.name
    with _open_built(store, tapes, name) as tape:
        made = _record_redactions(tape, everywhere=wanted.is_path)
        for finding in verify(tape, Counts()):
            _refuse_finding(finding, building)
        known = find_existing_folder(store, wanted.id)
        if known is not None:
            _require_all(store, known, tape, made)
    added = 0 if known is not None else building.entries
    folder = known or place_tape(store, tapes, tapes, name, wanted)
    return ImportReport(
        wanted.id,
        str(store.tapes.absolute() / folder),
        added,
        building.entries,
        len(building.lost),
    )


def _open_built(store: Store, tapes: Folder, name: str) -> Tape:
    """Open what was built; its clock stands still, so that the same file makes the same tape."""
    folder = tapes.sub(name)
    try:
        return Tape(folder, store.open, clock=lambda: 0)
    except (OSError, TapeError) as error:
        folder.close()
        raise Damaged(f"{error}; nothing was imported") from error


def _refuse_finding(finding: Finding, building: TapeBuilder) -> None:
    """Raise Damaged for what does not hold, but for a blob that the source says is lost."""
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


def _record_redactions(tape: Tape, *, everywhere: bool) -> str | None:
    """Name what was redacted in the tape it was forked from, or elsewhere than on its path.

    Return the id of the entry that does so, None where none is needed.
    """
    gone: list[str] = []
    named: set[str] = set()
    for phase, _, line in tape.iter_own_lines():
        if _REDACT_HEADER in line[:400] and isinstance(data := decode_line(line).data, Redact):
            named.update(data.targets)
        elif _REDACTED_DATA in line and (everywhere or phase == ORIGIN):
            header = read_header(line)
            gone += [header.id] if is_data_redacted(line, header) else []
    unnamed = tuple(entry for entry in gone if entry not in named)
    if not unnamed:
        return None
    with tape.writer() as writer:
        return writer.append(Redact(unnamed, _REDACT_REASON)).id


def _require_all(store: Store, folder: str, new: Tape, made: str | None) -> None:
    """Raise TapeError when the tape in the store lacks something of the one in the file."""
    with store.open_folder(folder) as there:
        lacks = find_missing(there, new, made)
    if lacks.entries or lacks.moves:
        raise TapeError(
            f"tape {new.id[:8]} is in the store and lacks {lacks.entries} entries and "
            f"{lacks.moves} moves of branches, titles and labels that this file has: joining them "
            "is what `tape pull` does; nothing was imported"
        )


class _BareLines(NamedTuple):
    """What bare lines come to."""

    id: str
    """The tape's id: it derives from types and data, so that the same lines are the same tape."""
    prompt: str
    entries: int
    """How many, with the start entry."""


def _inspect_bare_lines(source: BinaryIO) -> _BareLines:
    """Check bare lines, and go back to the beginning; raise InvalidEntry."""
    hashed, prompt, count = sha256(), "", 1
    for number, line in read_items(source):
        with add_error_line(number):
            kind, data = parse_incoming_entry(line)
        count += 1
        hashed.update(b"%b %b\n" % (kind.encode(), data))
        if kind == User.entry_type and not prompt:
            payload = decode_payload(kind, Raw(data), describe_missing_blob)
            prompt = join_texts(payload.content) if isinstance(payload, User) else ""
    source.seek(0)
    return _BareLines(hashed.hexdigest()[:32], prompt, count)


def _record_bare_lines(store: Store, source: BinaryIO, beginning: Beginning) -> ImportReport:
    """Record bare lines in a tape of their own."""
    found = _inspect_bare_lines(source)

    def fill(_: Tape, writer: Writer) -> None:
        for number, line in read_items(source):
            with add_error_line(number):
                writer.append_data(*parse_incoming_entry(line))

    made = record_tape(store, found.id, beginning._replace(slug=found.prompt), fill)
    return ImportReport(found.id, made.path, found.entries * made.is_new, found.entries, 0)
