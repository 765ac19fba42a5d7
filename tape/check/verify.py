"""Verify: recompute everything of one tape and report damage (tape.md §2, §4, §5); reads only.

In constant memory: lines are hashed, and parsed only where a phase begins, where a blob is named
and where something was redacted. What is asked of a line, in this order:

    line                       its hashes match, or it is an overwritten line that was redacted
    time                       a valid date
    place, first of a phase    a start, branch or anchor entry that names this phase and its base
    place, copied past         it follows the line before; the first one is a root
    place, any other line      it follows the line before, and is of none of the first types
    data                       an object; the blobs it names are there

To follow is to name the line before as parent, one deeper and at a later time.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Damaged, NewerFormat, NotFound, OlderFormat, TapeError
from ..model import line as lines
from ..model.entries import Anchor, Branch, Redact, Repair, Start
from ..model.line import Unread
from ..store.leftovers import find_tape_leftovers
from ..store.path import find_origin_end, read_base
from ..store.phase import ENTRIES, ORIGIN
from ..store.redaction import (
    MARK_NAME,
    find_quarantined_copies,
    find_unredacted_entries,
    has_stale_redaction_mark,
)
from ..store.refs import JOURNAL_NAME
from ..store.tape import INFO_NAME
from ..store.tape_folder import TapeFolder, is_archived
from .finding import (
    FindingKind,
    build_damage,
    build_note,
    check_time,
    describe_tail,
    find_unrecorded_tails,
)
from .journal_and_blobs import BlobCheck, JournalCheck
from .scan import BLOB_KEY, FIRST_TYPES, OBJECT_START, open_scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..model.entries import Place
    from ..model.line import Header
    from ..store.disk import Folder
    from ..store.phase import PhaseFile
    from ..store.tape import Tape
    from .finding import Counts, Fault, Finding
    from .scan import ScanPhase


def verify(
    tape: Tape,
    counts: Counts,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Iterator[Finding]:
    """Yield the findings of a tape, and count in `counts` what was checked.

    With `jobs` above 1 the entries of a large tape are read by that many processes, forked from
    this one: call it where no other thread runs. `progress` is called with the number of lines
    read, and 0 because the total is unknown. Raises NewerFormat at the first line that a later
    version wrote.
    """
    # List phases before reading the journal: one that is started meanwhile is then named in it.
    names = tape.phases.names()
    blobs, journal = BlobCheck(tape), JournalCheck(tape, names)
    yield from _find_damaged_frames(tape)
    yield from _find_links(tape.folder, "")
    yield from blobs.check_blobs()
    yield from journal.check_lines()
    all_names = [ORIGIN, *names] if tape.phases.has_origin else names
    labels = set(journal.refs.labels.values())
    with open_scan(tape.phases, all_names, frozenset(labels), jobs) as scan:
        phases = PhaseCheck(tape, journal, blobs, labels, scan, progress)
        for name in all_names:
            yield from phases.check_phase(name)
    yield from phases.check_info()
    yield from phases.find_unaccounted()
    yield from phases.find_unfinished_redactions()
    yield from phases.find_unrecorded()
    yield from journal.check_moves(phases.branches)
    yield from journal.find_uncommitted(phases.sizes)
    for leftover in find_tape_leftovers(tape):
        yield build_note(
            FindingKind.LEFTOVER,
            leftover.path,
            "left by an interrupted write: `tape gc` deletes it",
        )
    counts.entries += sum(phases.sizes.values())
    counts.phases += len(names)
    counts.blobs += blobs.count


def _find_damaged_frames(tape: Tape) -> Iterator[Finding]:
    """Yield a finding for each part of an archived tape that does not match its hash."""
    packed = tape.folder.packed if isinstance(tape.folder, TapeFolder) else None
    for error, files in packed.find_damaged_frames() if packed is not None else ():
        in_it = f"; in it: {', '.join(files)}" if files else ""
        message = f"a part of the archived tape does not match its hash{in_it}"
        yield build_damage(FindingKind.ARCHIVE, error.file, message, offset=error.offset)


def _find_links(folder: Folder, prefix: str) -> Iterator[Finding]:
    """Yield a finding for every symbolic link: none is allowed in a tape."""
    if is_archived(folder):  # none is in an archive
        return
    with os.scandir(folder.fd) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        path = prefix + entry.name
        if entry.is_symlink():
            yield build_damage(
                FindingKind.LINK, path, "a symbolic link: links inside a tape are not followed"
            )
        elif entry.is_dir(follow_symlinks=False):
            with folder.sub(entry.name) as inner:
                yield from _find_links(inner, f"{path}/")


_CHANGED_FAULT = FindingKind.LINE, "its data does not match its hash"
_OVERWRITTEN_FAULT = (
    FindingKind.OVERWRITTEN,
    "its data was overwritten, but no redact entry names it",
)
_REPAIR_HINT = "`tape fsck --repair` completes it"


class _LinePlace(NamedTuple):
    phase: str
    line: int
    offset: int


class PhaseCheck:
    """Checks the phases of one tape."""

    def __init__(
        self,
        tape: Tape,
        journal: JournalCheck,
        blobs: BlobCheck,
        labels: set[str],
        scan: ScanPhase,
        progress: Callable[[int, int], None],
    ) -> None:
        self._tape, self._journal, self._blobs = tape, journal, blobs
        self._scan, self._progress, self._lines = scan, progress, 0
        self.sizes: dict[str, int] = {}
        """The number of whole lines in each phase."""
        self.branches: dict[str, str] = {}
        """The branch each phase was written on."""
        self._starts: list[Start] = []
        self._redacted: list[tuple[str, _LinePlace, Fault]] = []
        """Entries with overwritten data, and the fault to report if no redact entry names them."""
        self._named = cache(tape.phases.read_redacted_ids)
        self._redactions: set[str] = set()
        self._blobless: list[tuple[str, _LinePlace, Fault]] = []
        self._labels = labels
        self._recorded: set[str | None] = set()

    def check_phase(self, name: str) -> Iterator[Finding]:
        """Check every line of one phase."""
        self.sizes[name] = count = end = 0
        try:
            with self._tape.phases.open(name) as file:
                for part in self._scan(name):
                    self._lines += part.lines
                    self._progress(self._lines, 0)
                    for number, offset, before in part.odd:
                        spot = _LinePlace(name, count + number, offset)
                        for fault in self._check_line(spot, file.line_at(offset), before):
                            yield self._build_line_damage(spot, fault)
                    self._labels -= part.seen
                    count, end = count + part.lines, max(end, part.end)
                self.sizes[name] = count
                yield from self._check_tail(file, count, end)
        except NotFound:
            pass  # a missing phase matters only if a ref names it, and is reported there
        except OSError as error:
            on = self._journal.find_branches_over(name)
            message = f"cannot be read: {error.strerror}"
            yield build_damage(FindingKind.UNREADABLE, _build_entries_path(name), message, on=on)

    def _check_line(self, spot: _LinePlace, line: bytes, before: Header | None) -> list[Fault]:
        """Return the faults of a line."""
        try:
            header = lines.read_header(line)
        except (NewerFormat, OlderFormat) as error:
            raise type(error)(f"{spot.phase}, line {spot.line}: {error}") from error
        except Damaged as error:
            return [(FindingKind.LINE, str(error))]
        self._labels.discard(header.id)
        if not lines.has_valid_data(line, header) and not lines.is_data_redacted(line, header):
            return [] if header.id in self._named() else [_CHANGED_FAULT]
        try:
            return [
                *check_time(header.time),
                *self._check_place(spot, header, line, before),
                *self._check_data(spot, header, line),
            ]
        except (Damaged, ValueError, RecursionError) as error:
            return [(FindingKind.DATA, f"its data cannot be read: {error}")]

    def _check_data(self, spot: _LinePlace, header: Header, line: bytes) -> list[Fault]:
        """Return the faults of a line's data: not an object, a redaction, or wrong blobs."""
        if lines.is_data_redacted(line, header):
            self._redacted.append((header.id, spot, _OVERWRITTEN_FAULT))
        elif line[header.data] != OBJECT_START:
            return [(FindingKind.DATA, "its data is not an object")]
        elif header.type == Redact.entry_type:
            data = lines.decode_line(line).data
            self._redactions.update(data.targets if isinstance(data, Redact) else ())
        elif header.type == Repair.entry_type:
            self._recorded.add(getattr(lines.decode_line(line).data, "quarantine", None))
        elif line.find(BLOB_KEY, header.data) >= 0:
            wrong = self._blobs.find_wrong_blobs(line[header.data : -1])
            self._blobless += [(header.id, spot, digest) for digest in wrong]
        return []

    def _check_place(
        self, spot: _LinePlace, header: Header, line: bytes, before: Header | None
    ) -> Iterator[Fault]:
        if spot.line == 1 and spot.phase != ORIGIN:
            yield from self._check_first(spot.phase, header, line)
            return
        if header.type in FIRST_TYPES and spot.phase != ORIGIN:
            yield FindingKind.PLACE, f"an entry of type {header.type} stands inside a phase"
        if before is not None:  # else the line before is damaged: nothing can be compared
            yield from _check_chain(header, before)
        elif spot.line == 1 and (header.parent_id is not None or header.n != 0):
            message = "a copied past begins with the root, and this entry has a parent"
            yield FindingKind.PLACE, message

    def _check_first(self, phase: str, header: Header, line: bytes) -> Iterator[Fault]:
        """Yield the faults of the first entry of a phase."""
        entry = lines.decode_line(line)
        data = entry.data
        if not isinstance(data, Start | Branch | Anchor):
            what = f"{entry.type}, {data.why}" if isinstance(data, Unread) else entry.type
            yield FindingKind.PLACE, f"a phase cannot begin with {what}"
            return
        began: str = data.kind if isinstance(data, Anchor) else ""
        if isinstance(data, Start):
            began = "start"
            self._starts.append(data)
        self.branches[phase] = data.branch
        if data.phase != phase:
            yield FindingKind.PLACE, f"it is the first entry of phase {data.phase!r}"
        if data.phase.partition("-")[2] != "-".join(filter(None, (data.branch, began))):
            message = f"its phase is not named after branch {data.branch!r} and what started it"
            yield FindingKind.PLACE, message
        yield from self._check_base(header, read_base(entry))

    def _check_base(self, header: Header, base: Place | None) -> Iterator[Fault]:
        if base is None:
            if header.parent_id is not None or header.n != 0:
                yield FindingKind.PLACE, "the first entry of a tape has a parent but no origin"
            return
        try:
            before = self._read_header_at(base)
        except (TapeError, OSError) as error:
            yield FindingKind.BASE, f"its base does not exist: {error}"
            return
        if before.id != base.entry:
            message = f"{base.phase} holds another entry at byte {base.offset} than its base"
            yield FindingKind.BASE, message
        yield from _check_chain(header, before)

    def _read_header_at(self, base: Place) -> Header:
        """Return the header of the line a base names, in this tape or in an origin."""
        if base.tape not in (None, self._tape.id) and self._tape.phases.has_origin:
            source = self._tape.source
            with source.phases.open(ORIGIN) as file:
                return lines.read_header(
                    next(file.read_lines_back(find_origin_end(source, base)))[1]
                )
        tape: Tape | None = self._tape
        while tape is not None and base.tape not in (None, tape.id):
            tape = tape.origin()
        if tape is None:
            raise NotFound(f"tape {base.tape} is not an origin of this one")
        with tape.phases.open(base.phase) as file:
            return lines.read_header(file.line_at(base.offset))

    def _check_tail(self, file: PhaseFile, count: int, end: int) -> Iterator[Finding]:
        size = file.size()
        rest = file.read(end, size)
        if count == 0 and file.name not in self._journal.list_named_phases():
            return  # an interrupted start of a phase: it has a note of its own
        if count == 0:
            on = self._journal.find_branches_over(file.name)
            message = "it has no first entry"
            yield build_damage(
                FindingKind.EMPTY, _build_entries_path(file.name), message, line=1, offset=0, on=on
            )
        if not rest or b"\n" in rest:  # lines that were appended meanwhile are not checked
            return
        lock = self.branches.get(file.name, "")
        on = self._journal.find_branches_over(file.name, end)
        tail = describe_tail(
            self._tape.folder, _build_entries_path(file.name), lock, end, size, count + 1, on
        )
        if file.size() == size:  # else its writer appended and released the lock meanwhile
            yield tail

    def check_info(self) -> Iterator[Finding]:
        """Yield findings where tape.json contradicts the start entry."""
        for kind, message in check_time(self._tape.info.created):
            yield build_damage(kind, INFO_NAME, message)
        if len(self._starts) != 1:
            message = f"the tape begins {len(self._starts)} times, not once"
            yield build_damage(FindingKind.INFO, INFO_NAME, message)
        for start in self._starts:
            if (start.tape, start.origin) != (self._tape.info.id, self._tape.info.origin):
                yield build_damage(
                    FindingKind.INFO,
                    INFO_NAME,
                    "its id and origin are not those of the start entry",
                )

    def find_unaccounted(self) -> Iterator[Finding]:
        """Yield findings about overwritten data, blobs and labels."""
        for entry, spot, wrong in (*self._redacted, *self._blobless):
            if entry not in self._redactions:
                yield self._build_line_damage(spot, wrong)
        for entry in sorted(self._labels):
            try:
                origin = self._tape.origin()
                if origin is not None:
                    is_known = bool(origin.find_entry(entry))
                else:  # it may be the rest of an interrupted detach
                    is_known = self._tape.info.origin is not None
            except (TapeError, OSError):
                is_known = True  # a broken origin is reported with the start entry
            if not is_known:
                message = f"a label names the entry {entry[:12]}, which does not exist"
                yield build_damage(FindingKind.LABEL, JOURNAL_NAME, message)

    def find_unrecorded(self) -> Iterator[Finding]:
        """Yield findings for torn tails in quarantine that no repair entry names."""
        yield from find_unrecorded_tails(self._tape.folder, self.branches, self._recorded)

    def find_unfinished_redactions(self) -> Iterator[Finding]:
        """Yield findings for redactions that were interrupted before all was overwritten."""
        pending = self._redactions - {entry for entry, _, _ in self._redacted}
        is_stale = has_stale_redaction_mark(self._tape.folder)
        by_whom = f"the next append, or {_REPAIR_HINT}" if is_stale else _REPAIR_HINT
        for unredacted in find_unredacted_entries(self._tape.phases, pending):
            message = f"a redaction of entry {unredacted.entry[:12]} was interrupted: {by_whom}"
            yield build_note(
                FindingKind.REDACTION,
                _build_entries_path(unredacted.phase),
                message,
                offset=unredacted.offset,
            )
        for name in find_quarantined_copies(self._tape.folder, self._redactions):
            message = f"it holds data of a redacted entry: {by_whom}"
            yield build_note(FindingKind.REDACTION, f"quarantine/{name}", message)
        if is_stale:
            message = f"a redaction was interrupted: {by_whom}"
            yield build_note(FindingKind.REDACTION, MARK_NAME, message)

    def _build_line_damage(self, spot: _LinePlace, wrong: Fault) -> Finding:
        on = self._journal.find_branches_over(spot.phase, spot.offset)
        kind, message = wrong
        return build_damage(
            kind,
            _build_entries_path(spot.phase),
            message,
            line=spot.line,
            offset=spot.offset,
            on=on,
        )


def _check_chain(header: Header, before: Header) -> Iterator[Fault]:
    if header.parent_id != before.id:
        yield FindingKind.PLACE, "its parent is not the entry before it"
    if header.n != before.n + 1:
        yield FindingKind.PLACE, f"its depth is {header.n}, not {before.n + 1}"
    if header.time <= before.time:
        yield FindingKind.PLACE, "its time is not after its parent's"


def _build_entries_path(phase: str) -> str:
    return f"phases/{phase}/{ENTRIES}"
