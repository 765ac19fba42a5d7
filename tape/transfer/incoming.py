"""Import: a file → a tape, checked whole, there whole or not at all.

Invariant: a tape is built under a name that no reader looks at, verified, and renamed. What fails
leaves nothing; a process that is killed leaves a folder `.new-…`, which nothing reads.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from msgspec import Raw

from ..blocks import text_of
from ..entries import Redact, User
from ..errors import Damaged, TapeError
from ..given import given
from ..line import decode, is_redacted, read_header
from ..payload import missing_blob, read_data
from ..phase import ENTRIES, ORIGIN
from ..refs import REFS
from ..store import slug
from ..tape import Tape
from ..verify import Counts, Kind, verify
from .building import Building
from .compare import lacking
from .one_path import path_of, read_path
from .reading import at_line, form_of, header_of, items, read_export
from .recording import Imported, Wanted, new_folder, placed, recorded, there

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..disk import Folder
    from ..store import Beginning, Store
    from ..verify import Finding
    from ..writer import Writer

_GONE = b',"data":null'
_REDACT = b'"type":"redact","dh":"'
_WHY = "redacted before it was imported"


def import_file(store: Store, source: BinaryIO, beginning: Beginning) -> Imported:
    """Make the tape that a file holds, which can be read twice; `beginning` for bare lines.

    Takes an export, the entry lines of one path, or lines `{"type":…,"data":…}`. Doing so again
    adds nothing. Raises Damaged, NewerFormat or InvalidEntry with the line, UsageError for another
    kind of file, TapeError where the store has the tape and lacks what the file has; nothing is
    made then.
    """
    form = form_of(source)
    if form == "export":
        header, info = header_of(source)
        wanted = Wanted(info.id, header.folder, header.path is not None)
        with new_folder(store, info.id) as (tapes, name), _building(tapes, name) as building:
            read_export(source, header, building)
            return _finished(store, tapes, building, wanted)
    if form == "entries":
        path = path_of(source)
        wanted = Wanted(path.info.id, _folder(path.info.created, path.prompt, path.info.id), True)
        with new_folder(store, path.info.id) as (tapes, name), _building(tapes, name) as building:
            read_path(source, path, building)
            return _finished(store, tapes, building, wanted)
    return _recorded(store, source, beginning)


def _folder(created: str, words: str, identity: str) -> str:
    return f"{created[:10]}-{slug(words)}-{identity[:8]}"


@contextmanager
def _building(tapes: Folder, name: str) -> Iterator[Building]:
    with tapes.sub(name) as folder:
        building = Building(folder)
        try:
            yield building
        finally:
            building.close()


def _finished(store: Store, tapes: Folder, building: Building, wanted: Wanted) -> Imported:
    """Verify what was built, and put it among the tapes unless it is there."""
    building.end()
    name = building.folder.name
    with _opened(store, tapes, name) as tape:
        made = _name_redacted(tape, everywhere=wanted.is_path)
        for finding in verify(tape, Counts()):
            _refuse(finding, building)
        known = there(store, wanted.id)
        if known is not None:
            _demand_all(store, known, tape, made)
    added = 0 if known is not None else building.entries
    folder = known or placed(store, tapes, tapes, name, wanted)
    return Imported(
        wanted.id,
        str(store.tapes.absolute() / folder),
        added,
        building.entries,
        len(building.lost),
    )


def _opened(store: Store, tapes: Folder, name: str) -> Tape:
    """Open what was built; its clock stands still, so that the same file makes the same tape."""
    folder = tapes.sub(name)
    try:
        return Tape(folder, store.open, clock=lambda: 0)
    except (OSError, TapeError) as error:
        folder.close()
        raise Damaged(f"{error}; nothing was imported") from error


def _refuse(finding: Finding, building: Building) -> None:
    """Raise Damaged for what does not hold, but for a blob that the source says is lost."""
    if finding.level == "note":
        return
    if finding.kind is Kind.BLOB_NAMED and any(one in finding.message for one in building.lost):
        return
    phase = finding.file.removeprefix("phases/").removesuffix(f"/{ENTRIES}")
    first = building.first_ref if finding.file == REFS else building.phases.get(phase, 0)
    where = f"line {first + finding.line - 1}" if finding.line and first else finding.file
    raise Damaged(f"{where}: {finding.message}; nothing was imported")


def _name_redacted(tape: Tape, *, everywhere: bool) -> str | None:
    """Name what was redacted in the tape it was forked from, or elsewhere than on its path.

    Return the id of the entry that does so, None where none is needed.
    """
    gone: list[str] = []
    named: set[str] = set()
    for phase, _, line in tape.own_lines():
        if _REDACT in line[:400] and isinstance(data := decode(line).data, Redact):
            named.update(data.targets)
        elif _GONE in line and (everywhere or phase == ORIGIN):
            header = read_header(line)
            gone += [header.id] if is_redacted(line, header) else []
    unnamed = tuple(entry for entry in gone if entry not in named)
    if not unnamed:
        return None
    with tape.writer() as writer:
        return writer.append(Redact(unnamed, _WHY)).id


def _demand_all(store: Store, folder: str, new: Tape, made: str | None) -> None:
    """Raise TapeError when the tape in the store lacks something of the one in the file."""
    with store.open_folder(folder) as there:
        lacks = lacking(there, new, made)
    if lacks.entries or lacks.moves:
        raise TapeError(
            f"tape {new.id[:8]} is in the store and lacks {lacks.entries} entries and "
            f"{lacks.moves} moves of branches, titles and labels that this file has: joining them "
            "is what `tape pull` does; nothing was imported"
        )


class _Given(NamedTuple):
    """What bare lines come to."""

    id: str
    """The tape's id: it derives from types and data, so that the same lines are the same tape."""
    prompt: str
    entries: int
    """How many, with the start entry."""


def _looked_at(source: BinaryIO) -> _Given:
    """Check bare lines, and go back to the beginning; raise InvalidEntry."""
    hashed, prompt, count = sha256(), "", 1
    for number, line in items(source):
        with at_line(number):
            kind, data = given(line)
        count += 1
        hashed.update(b"%b %b\n" % (kind.encode(), data))
        if kind == User.entry_type and not prompt:
            payload = read_data(kind, Raw(data), missing_blob)
            prompt = text_of(payload.content) if isinstance(payload, User) else ""
    source.seek(0)
    return _Given(hashed.hexdigest()[:32], prompt, count)


def _recorded(store: Store, source: BinaryIO, beginning: Beginning) -> Imported:
    """Record bare lines in a tape of their own."""
    found = _looked_at(source)

    def fill(_: Tape, writer: Writer) -> None:
        for number, line in items(source):
            with at_line(number):
                writer.append_data(*given(line))

    made = recorded(store, found.id, beginning._replace(slug=found.prompt), fill)
    return Imported(found.id, made.path, found.entries * made.is_new, found.entries, 0)
