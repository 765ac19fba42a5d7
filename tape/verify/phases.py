"""Phases: check the hashes of every line, its parent, and the base of the first one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .. import line as lines
from ..entries import Anchor, Branch, Redact, Repair, Start
from ..errors import Damaged, NewerFormat, NotFound, OlderFormat, TapeError
from ..path import base_of, origin_end
from ..payload import Unread
from ..phase import ENTRIES, ORIGIN
from ..redaction import MARK, find_copies, find_unfinished, has_stale_mark
from ..refs import REFS
from ..tape import INFO
from .finding import Kind, damage, note, odd_time
from .scan import BLOB, FIRST, OBJECT
from .tails import tail, unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..entries import Place
    from ..line import Entry, Header
    from ..phase import PhaseFile
    from ..tape import Tape
    from .blobs import BlobCheck
    from .finding import Finding, Wrong
    from .journal import JournalCheck
    from .scan import Scan

    _Check = Callable[["_Spot", Header, bytes, Header | None], Iterator[Wrong]]

_CHANGED = Kind.LINE, "its data does not match its hash"
_OVERWRITTEN = Kind.OVERWRITTEN, "its data was overwritten, but no redact entry names it"
_REPAIRS = "`tape fsck --repair` completes it"


class _Spot(NamedTuple):
    phase: str
    line: int
    offset: int


class PhaseCheck:
    """Checks the phases of one tape."""

    def __init__(
        self, tape: Tape, journal: JournalCheck, blobs: BlobCheck, labels: set[str], scan: Scan
    ) -> None:
        self._tape, self._journal, self._blobs, self._scan = tape, journal, blobs, scan
        self.sizes: dict[str, int] = {}
        """The number of whole lines in each phase."""
        self.branches: dict[str, str] = {}
        """The branch each phase was written on."""
        self._starts: list[Start] = []
        self._redacted: list[tuple[str, _Spot, Wrong]] = []
        """Entries with overwritten data, and the fault to report if no redact entry names them."""
        self._named = cache(tape.phases.redacted_ids)
        self._redactions: set[str] = set()
        self._blobless: list[tuple[str, _Spot, Wrong]] = []
        self._labels = labels
        self._recorded: set[str | None] = set()

    def lines(self, name: str) -> Iterator[Finding]:
        """Check every line of one phase."""
        self.sizes[name] = 0
        try:
            with self._tape.phases.open(name) as file:
                yield from self._lines(file)
        except NotFound:
            pass  # a missing phase matters only if a ref names it, and is reported there
        except OSError as error:
            on = self._journal.over(name)
            message = f"cannot be read: {error.strerror}"
            yield damage(Kind.UNREADABLE, _file(name), message, on=on)

    def _lines(self, file: PhaseFile) -> Iterator[Finding]:
        count = end = 0
        for part in self._scan(file.name):
            for number, offset, before in part.odd:
                spot = _Spot(file.name, count + number, offset)
                for one in self._line(spot, file.line_at(offset), before):
                    yield self._damage(spot, one)
            self._labels -= part.seen
            count, end = count + part.lines, max(end, part.end)
        self.sizes[file.name] = count
        yield from self._tail(file, count, end)

    def _line(self, spot: _Spot, line: bytes, before: Header | None) -> list[Wrong]:
        """Return the faults of a line."""
        try:
            header = lines.read_header(line)
        except (NewerFormat, OlderFormat) as error:
            raise type(error)(f"{spot.phase}, line {spot.line}: {error}") from error
        except Damaged as error:
            return [(Kind.LINE, str(error))]
        self._labels.discard(header.id)
        if not lines.data_holds(line, header) and not lines.is_redacted(line, header):
            return [] if header.id in self._named() else [_CHANGED]
        try:
            place: _Check = self._first if spot.line == 1 else _later
            if spot.phase == ORIGIN:
                place = _copied
            return [
                *odd_time(header.time),
                *place(spot, header, line, before),
                *self._data(spot, header, line),
            ]
        except (Damaged, ValueError, RecursionError) as error:
            return [(Kind.DATA, f"its data cannot be read: {error}")]

    def _data(self, spot: _Spot, header: Header, line: bytes) -> list[Wrong]:
        """Return the faults of a line's data: not an object, a redaction, or wrong blobs."""
        if lines.is_redacted(line, header):
            self._redacted.append((header.id, spot, _OVERWRITTEN))
        elif line[header.data] != OBJECT:
            return [(Kind.DATA, "its data is not an object")]
        elif header.type == Redact.entry_type:
            data = lines.decode(line).data
            self._redactions.update(data.targets if isinstance(data, Redact) else ())
        elif header.type == Repair.entry_type:
            self._recorded.add(getattr(lines.decode(line).data, "quarantine", None))
        elif line.find(BLOB, header.data) >= 0:
            wrong = self._blobs.wrong(line[header.data : -1])
            self._blobless += [(header.id, spot, one) for one in wrong]
        return []

    def _first(self, spot: _Spot, header: Header, line: bytes, _: Header | None) -> Iterator[Wrong]:
        """Yield the faults of the first entry of a phase."""
        entry = lines.decode(line)
        data = entry.data
        if not isinstance(data, Start | Branch | Anchor):
            yield Kind.PLACE, f"a phase cannot begin with {_described(entry)}"
            return
        if isinstance(data, Start):
            self._starts.append(data)
        self.branches[spot.phase] = data.branch
        yield from _names(spot.phase, data)
        yield from self._base(header, base_of(entry))

    def _base(self, header: Header, base: Place | None) -> Iterator[Wrong]:
        if base is None:
            if header.parent_id is not None or header.n != 0:
                yield Kind.PLACE, "the first entry of a tape has a parent but no origin"
            return
        try:
            before = self._header_at(base)
        except (TapeError, OSError) as error:
            yield Kind.BASE, f"its base does not exist: {error}"
            return
        if before.id != base.entry:
            message = f"{base.phase} holds another entry at byte {base.offset} than its base"
            yield Kind.BASE, message
        yield from _chain(header, before)

    def _header_at(self, base: Place) -> Header:
        """Return the header of the line a base names, in this tape or in an origin."""
        if base.tape not in (None, self._tape.id) and self._tape.phases.has_origin:
            source = self._tape.source
            with source.phases.open(ORIGIN) as file:
                return lines.read_header(next(file.lines_back(origin_end(source, base)))[1])
        tape: Tape | None = self._tape
        while tape is not None and base.tape not in (None, tape.id):
            tape = tape.origin()
        if tape is None:
            raise NotFound(f"tape {base.tape} is not an origin of this one")
        with tape.phases.open(base.phase) as file:
            return lines.read_header(file.line_at(base.offset))

    def _tail(self, file: PhaseFile, count: int, end: int) -> Iterator[Finding]:
        size = file.size()
        rest = file.read(end, size)
        if count == 0 and file.name not in self._journal.named():
            return  # an interrupted start of a phase: it has a note of its own
        if count == 0:
            on = self._journal.over(file.name)
            message = "it has no first entry"
            yield damage(Kind.EMPTY, _file(file.name), message, line=1, offset=0, on=on)
        if not rest or b"\n" in rest:  # lines that were appended meanwhile are not checked
            return
        lock = self.branches.get(file.name, "")
        on = self._journal.over(file.name, end)
        found = tail(self._tape.folder, _file(file.name), lock, end, size, count + 1, on)
        if (
            file.size() == size
        ):  # else its writer appended and released the lock before it was checked
            yield found

    def info(self) -> Iterator[Finding]:
        """Yield findings where tape.json contradicts the start entry."""
        for kind, message in odd_time(self._tape.info.created):
            yield damage(kind, INFO, message)
        if len(self._starts) != 1:
            message = f"the tape begins {len(self._starts)} times, not once"
            yield damage(Kind.INFO, INFO, message)
        for start in self._starts:
            if (start.tape, start.origin) != (self._tape.info.id, self._tape.info.origin):
                yield damage(Kind.INFO, INFO, "its id and origin are not those of the start entry")

    def leftovers(self) -> Iterator[Finding]:
        """Yield findings about overwritten data, blobs and labels."""
        for entry, spot, wrong in (*self._redacted, *self._blobless):
            if entry not in self._redactions:
                yield self._damage(spot, wrong)
        for entry in sorted(self._labels):
            if not self._is_in_origin(entry):
                message = f"a label names the entry {entry[:12]}, which does not exist"
                yield damage(Kind.LABEL, REFS, message)

    def _is_in_origin(self, entry: str) -> bool:
        try:
            origin = self._tape.origin()
            if origin is None:
                return (
                    self._tape.info.origin is not None
                )  # it may be the rest of an interrupted detach
            return bool(origin.find_entry(entry))
        except (TapeError, OSError):
            return True  # a broken origin is reported with the start entry

    def unrecorded(self) -> Iterator[Finding]:
        """Yield findings for torn tails in quarantine that no repair entry names."""
        yield from unrecorded(self._tape.folder, self.branches, self._recorded)

    def unfinished(self) -> Iterator[Finding]:
        """Yield findings for redactions that were interrupted before all was overwritten."""
        pending = self._redactions - {entry for entry, _, _ in self._redacted}
        is_stale = has_stale_mark(self._tape.folder)
        by_whom = f"the next append, or {_REPAIRS}" if is_stale else _REPAIRS
        for found in find_unfinished(self._tape.phases, pending):
            message = f"a redaction of entry {found.entry[:12]} was interrupted: {by_whom}"
            yield note(Kind.REDACTION, _file(found.phase), message, offset=found.offset)
        for name in find_copies(self._tape.folder, self._redactions):
            message = f"it holds data of a redacted entry: {by_whom}"
            yield note(Kind.REDACTION, f"quarantine/{name}", message)
        if is_stale:
            message = f"a redaction was interrupted: {by_whom}"
            yield note(Kind.REDACTION, MARK, message)

    def _damage(self, spot: _Spot, wrong: Wrong) -> Finding:
        on = self._journal.over(spot.phase, spot.offset)
        kind, message = wrong
        return damage(kind, _file(spot.phase), message, line=spot.line, offset=spot.offset, on=on)


def _later(_: _Spot, header: Header, __: bytes, before: Header | None) -> Iterator[Wrong]:
    """Yield the faults of an entry that is not the first of its phase."""
    if header.type in FIRST:
        yield Kind.PLACE, f"an entry of type {header.type} stands inside a phase"
    if before is not None:  # the line before is damaged, so nothing can be compared
        yield from _chain(header, before)


def _copied(spot: _Spot, header: Header, __: bytes, before: Header | None) -> Iterator[Wrong]:
    """Yield the faults of an entry in a copied past, which is one chain from the root."""
    if before is not None:
        yield from _chain(header, before)
    elif spot.line == 1 and (header.parent_id is not None or header.n != 0):
        yield Kind.PLACE, "a copied past begins with the root, and this entry has a parent"


def _chain(header: Header, before: Header) -> Iterator[Wrong]:
    if header.parent_id != before.id:
        yield Kind.PLACE, "its parent is not the entry before it"
    if header.n != before.n + 1:
        yield Kind.PLACE, f"its depth is {header.n}, not {before.n + 1}"
    if header.time <= before.time:
        yield Kind.PLACE, "its time is not after its parent's"


def _names(phase: str, data: Start | Branch | Anchor) -> Iterator[Wrong]:
    """Yield the contradictions between a phase and its first entry."""
    if data.phase != phase:
        yield Kind.PLACE, f"it is the first entry of phase {data.phase!r}"
    began = data.kind if isinstance(data, Anchor) else "start" if isinstance(data, Start) else ""
    if data.phase.partition("-")[2] != "-".join(filter(None, (data.branch, began))):
        message = f"its phase is not named after branch {data.branch!r} and what started it"
        yield Kind.PLACE, message


def _described(entry: Entry) -> str:
    data = entry.data
    return f"{entry.type}, {data.why}" if isinstance(data, Unread) else entry.type


def _file(phase: str) -> str:
    return f"phases/{phase}/{ENTRIES}"
