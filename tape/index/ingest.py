"""Lines of tapes → rows of the index, in runs; and rows deleted again.

Reading (`read_runs`) gives runs of lines with what they say, and how far each phase was read. A run
is small enough for memory and for one transaction, whatever the size of the tape. However a phase
is cut into runs, the outcome is the same. Entries that a redaction names are read as if their data
were gone, also while it is not.

Writing (`insert_run`) happens in the caller's transaction:

    the run continues what the index holds    → insert its lines
    the phase was cut short or replaced       → delete its lines, insert
    the run redacts what had been read        → delete all of the tape; read it again

An example: 0001-main is indexed up to its 5th line, e, at byte 4,000. What a reader does next:

    the file at byte 4,000    read from   rows
    e, f, g                   f           f and g are inserted
    e                         –           as they are
    another line, or none     byte 0      all lines of the phase are deleted, those there inserted
    e, f redacts b            f           all of the tape are deleted; it is read again, b blank

Invariant: a key of `entries` is never given twice while its words are in `text`. The words of a
deleted line can only be taken out when they are known again, so its key waits in `removed`.
"""

from __future__ import annotations

import os
from collections import ChainMap
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import astuple

from ..clock import parse_timestamp
from ..errors import Damaged, NewerFormat, NotFound
from ..model.line import Header, encode_id_prefix, has_valid_data, is_redaction_begun, read_header
from ..store.path import FSCK_ADVICE
from ..store.phase import ORIGIN, order_phases
from .contents import ASKED_OPS, NO_CONTENTS, LineContents, extract_contents, resolve_path
from .full_text import BYTES_OF_CHARACTER, decode_start, space_cjk
from .sums import add_sums, delete_sums
from .tape_record import TALLY_COLUMNS, PhaseTally, select_phase, select_redacted_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from sqlite3 import Connection

    from ..store.phase import PhaseFile
    from ..store.refs import Refs
    from ..store.writer import WritableTape


_RUN_LINES, _RUN_BYTES = 4_096, 1 << 22
"""Limits of one run; a single line may be larger."""


class IndexedLine(NamedTuple):
    """One entry line that was read."""

    offset: int
    length: int
    """Length in bytes without the newline."""
    header: Header
    contents: LineContents
    cwd: str | None
    """The working folder at this entry."""


class LineRun(NamedTuple):
    """Lines of one phase, one after the other."""

    phase: str
    before: PhaseTally | None
    """The state of the phase before this run; None if it is new."""
    after: PhaseTally
    lines: list[IndexedLine]
    is_anew: bool
    """The phase is not what was known: all its rows are deleted first."""


def read_runs(
    tape: WritableTape,
    refs: Refs,
    phases: dict[str, PhaseTally],
    redacted: AbstractSet[str] = frozenset(),
    *,
    only: AbstractSet[str] | None = None,
    skipped: Callable[[str], None] = lambda _: None,
) -> Iterator[LineRun]:
    """Yield what is new in the phases that refs name, in order, and in a copied past.

    `phases` is the state of each phase and is updated; deleted phases are removed from it. Phases
    that no ref names are not committed, and ignored. With `only`, names of committed phases, no
    others are read; the base phases of new ones must be among them. Lines that changed on the disk
    are left out and reported to `skipped`.
    """
    committed = refs.phases() | {ORIGIN} if only is None else only
    there: dict[str, PhaseTally] = {}
    for name in tape.phases.list_with_origin() if only is None else sorted(only, key=order_phases):
        if name in committed:
            with suppress(NotFound), tape.phases.open(name) as file:  # a folder without its file
                reader = _PhaseReader(tape, file, ChainMap(there, phases), redacted, skipped)
                for run in reader.iter_runs(phases.get(name)):
                    there[name] = run.after
                    yield run
                there.setdefault(name, phases.get(name) or PhaseTally())
    phases.clear()
    phases.update(there)


class _PhaseReader(NamedTuple):
    """One phase being read."""

    tape: WritableTape
    file: PhaseFile
    phases: Mapping[str, PhaseTally]
    redacted: AbstractSet[str]
    skipped: Callable[[str], None]

    def iter_runs(self, before: PhaseTally | None) -> Iterator[LineRun]:
        """Continue where the tally stops, or begin again when its last line is not there."""
        tally = before or PhaseTally()
        # The id of a line covers all before it, so one equal line proves that nothing before it
        # changed; a torn tail that was cut, or a restored folder, gives another line or none.
        _, last = next(self.file.lines(tally.offset), (0, b"")) if tally.entries else (0, b"")
        is_anew = bool(tally.entries) and not last.startswith(encode_id_prefix(tally.last))
        start = tally.offset if tally.entries and not is_anew else 0
        after = PhaseTally() if is_anew else copy(tally)
        lines: list[IndexedLine] = []
        size = 0
        for offset, line in self.file.lines(start):
            if offset <= after.offset or (read := self._read_line(after, offset, line)) is None:
                continue
            lines.append(read)
            size += len(line)
            if len(lines) >= _RUN_LINES or size >= _RUN_BYTES:
                yield LineRun(self.file.name, before, copy(after), lines, is_anew)
                before, lines, size, is_anew = copy(after), [], 0, False
        if lines or is_anew or before is None:
            yield LineRun(self.file.name, before, after, lines, is_anew)

    def _read_line(self, tally: PhaseTally, offset: int, line: bytes) -> IndexedLine | None:
        """Count one line; skip it if it is not an entry of a known format."""
        try:
            header = read_header(line)
        except (Damaged, NewerFormat) as error:
            self._report_skipped(offset, line, str(error))
            return None
        gone = header.id in self.redacted
        if not has_valid_data(line, header):
            # While a redaction is overwriting an entry, its hash does not hold.
            if not (
                gone
                or is_redaction_begun(line, header)
                or header.id in self.tape.phases.read_redacted_ids()
            ):
                self._report_skipped(offset, line, "its data does not match its hash")
            gone = True
        contents = NO_CONTENTS if gone else extract_contents(header, line, self._load_start)
        tally.add(offset, header, contents)
        if tally.entries == 1 and contents.base is not None:
            tally.home = self._find_place_at(*contents.base)
        return IndexedLine(offset, len(line), header, contents, tally.place)

    def _load_start(self, digest: str, limit: int) -> str:
        """Return the first characters of a blob."""
        return decode_start(self.tape.blobs.read_start(digest, limit * BYTES_OF_CHARACTER), limit)

    def _report_skipped(self, offset: int, line: bytes, why: str) -> None:
        entry = line[7:19].decode("ascii", "replace")
        place = f"{self.tape.id[:8]} {self.file.name}: line at byte {offset} skipped"
        self.skipped(f"{place}: entry {entry}: {why}; {FSCK_ADVICE}")

    def _find_place_at(self, phase: str, offset: int) -> str | None:
        """Return the working folder at the base of a phase."""
        tally = self.phases.get(phase)
        if tally is None:
            return None
        if offset >= tally.moved_offset:
            return tally.place
        place = tally.home
        with suppress(NotFound), self.tape.phases.open(phase) as file:
            for at, line in file.lines():
                if at > offset:
                    break
                with suppress(Damaged, NewerFormat):
                    header = read_header(line)
                    if header.type in ("start", "meta") and header.id not in self.redacted:
                        place = extract_contents(header, line).cwd or place
        return place


_DEFAULT_HASHSIZE, _BULK_HASHSIZE = 1 << 20, 1 << 22
"""Bytes of words that a connection keeps before it writes them: SQLite's default, and for many."""
_DEFAULT_AUTOMERGE, _BULK_AUTOMERGE = 4, 16
"""Parts of the full-text index that are merged at once: SQLite's default, and for many lines."""
_TYPES_WITH_WORDS = "'user', 'context', 'assistant', 'tool.result'"
_ASKED_SQL = f"({', '.join(map(repr, sorted(ASKED_OPS)))})"
_MAX_INTEGER = (1 << 63) - 1
"""The highest number that fits into a column; what other programs write may be higher."""


def insert_run(
    db: Connection, tape: str, run: LineRun, key: int | None, known: AbstractSet[str]
) -> bool:
    """Insert a run of lines; `key` is its phase's, None for a new one, `known` was redacted before.

    Returns False if the run redacts entries that were read already: then the whole tape was
    deleted, to be read again.
    """
    whose = bytes.fromhex(tape)
    named = {target for line in run.lines for target in line.contents.targets} - known
    if named:
        db.executemany(
            "INSERT INTO redactions VALUES (?, ?)",
            [(whose, bytes.fromhex(target)) for target in sorted(named)],
        )
    gone = known | named
    # Words, files and sums of an entry are in many tables, and sums cannot be taken apart again.
    if any(line.contents != NO_CONTENTS and line.header.id in gone for line in run.lines) or any(
        _has_indexed_data(db, tape, target) for target in named
    ):
        _reset_tape(db, tape)
        return False
    if run.is_anew and known:  # what redacted the rest may have stood in it
        _reset_tape(db, tape)
        db.execute("DELETE FROM redactions WHERE tape = ?", (whose,))
        return False
    if run.is_anew and key is not None:
        _delete_lines(db, "key = ?", key)
    branch, offset, last, *rest = astuple(run.after)
    values = (branch, offset, bytes.fromhex(last), *rest)
    marks = ", ".join("?" * len(values))
    if key is not None:
        db.execute(f"UPDATE phases SET ({TALLY_COLUMNS}) = ({marks}) WHERE key = ?", (*values, key))
    else:
        key = db.execute(
            f"INSERT INTO phases (tape, name, {TALLY_COLUMNS}) VALUES (?, ?, {marks})",
            (whose, run.phase, *values),
        ).lastrowid
    assert key is not None
    if run.lines:
        rows = _insert_lines(db, run.lines, key)
        _note_range(db, key, rows)
        if run.phase != ORIGIN:  # what was copied counts where it was written
            add_sums(db, key, rows.first, rows.last)
    return True


class _RowRange(NamedTuple):
    """Keys of entries, and of rows of `files`: from the first to the last one of a run."""

    first: int
    last: int
    first_file: int
    last_file: int
    """Less than the first one where there are none."""


_NEAR_ROWS = 10_000
"""How many rows of others may stand between two runs of a phase that are one range."""


def _note_range(db: Connection, phase: int, rows: _RowRange) -> None:
    """Take note of where rows of a phase are: behind those that are near, or apart from them."""
    db.execute(
        "INSERT INTO ranges VALUES (?1, coalesce((SELECT first FROM ranges WHERE phase = ?1 "
        f"AND last BETWEEN ?2 - {_NEAR_ROWS} AND ?2 ORDER BY first DESC LIMIT 1), ?2), "
        "?3, ?4, ?5) ON CONFLICT DO UPDATE SET last = max(last, ?3), "
        "first_file = CASE WHEN first_file > last_file THEN ?4 ELSE min(first_file, ?4) END, "
        "last_file = max(last_file, ?5)",
        (phase, *rows),
    )


def _has_indexed_data(db: Connection, tape: str, entry: str) -> bool:
    """Return whether the index has anything from the data of an entry."""
    rows = db.execute(
        "SELECT 1 FROM entries e JOIN phases p ON p.key = e.phase AND p.tape = ?1 "
        "JOIN types k ON k.key = e.type "
        "WHERE substr(e.id, 1, 4) = substr(?2, 1, 4) AND e.id = ?2 "
        "AND k.name IN ('meta', 'mode', 'custom', 'usage', 'checkpoint', "
        f"{_TYPES_WITH_WORDS})",
        (bytes.fromhex(tape), bytes.fromhex(entry)),
    )
    return rows.fetchone() is not None


def _insert_lines(db: Connection, lines: Sequence[IndexedLine], phase: int) -> _RowRange:
    """Insert lines, and return where their rows are."""
    (highest,) = db.execute(
        "SELECT max((SELECT coalesce(max(key), 0) FROM entries), "
        "(SELECT coalesce(max(key), 0) FROM removed))"
    ).fetchone()
    keyed = list(enumerate(lines, highest + 1))
    types: dict[str, int | None] = dict(db.execute("SELECT name, key FROM types"))
    for name in sorted({line.header.type for line in lines} - types.keys()):
        types[name] = db.execute("INSERT INTO types (name) VALUES (?)", (name,)).lastrowid
    db.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                key,
                bytes.fromhex(head.id),
                phase,
                offset,
                length,
                min(head.n, _MAX_INTEGER),
                parse_timestamp(head.time),
                types[head.type],
            )
            for key, (offset, length, head, _, _) in keyed
        ],
    )
    texts = [(key, line.contents.words) for key, line in keyed if line.contents.words]
    db.executemany(
        "INSERT INTO said (rowid, text) VALUES (?, ?)",
        [(key, space_cjk(words.said)) for key, words in texts if words.said],
    )
    db.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        [(key, space_cjk("\n".join(words))) for key, words in texts],
    )
    spent = [(key, line.contents.spent) for key, line in keyed if line.contents.spent]
    callers = {tuple(names): key for key, *names in db.execute("SELECT * FROM callers")}
    for names in sorted({usage[:3] for _, usage in spent} - callers.keys()):
        callers[names] = db.execute(
            "INSERT INTO callers (purpose, provider, model) VALUES (?, ?, ?)", names
        ).lastrowid
    db.executemany(
        "INSERT INTO model_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(key, callers[usage[:3]], *usage[3:]) for key, usage in spent],
    )
    db.executemany(
        "INSERT INTO calls VALUES (?, ?, ?, ?)",
        [(key, *line.contents.done) for key, line in keyed if line.contents.done],
    )
    return _RowRange(highest + 1, highest + len(keyed), *_insert_files(db, keyed, phase))


def _insert_files(
    db: Connection, keyed: Iterable[tuple[int, IndexedLine]], phase: int
) -> tuple[int, int]:
    """Insert the files that calls are about: what a result says of one replaces what was asked.

    Returns the first and the last of their rows.
    """
    rows: dict[tuple[int, str, str, str], None] = {}
    earlier: dict[tuple[str, str], list[tuple[int, str, str, str]]] = {}
    changed: set[tuple[str, str]] = set()
    for key, line in keyed:
        for place in line.contents.touched:
            row = key, place.call, resolve_path(place.path, line.cwd), place.op
            rows[row] = None
            if place.op in ASKED_OPS:
                earlier.setdefault(row[1:3], []).append(row)
            elif line.contents.done is not None:
                for old in earlier.pop(row[1:3], ()):
                    rows.pop(old, None)
                changed.add(row[1:3])
    db.executemany(
        f"DELETE FROM files WHERE call = ? AND path = ? AND op IN {_ASKED_SQL} "
        "AND (SELECT phase FROM entries WHERE key = files.entry) = ?",
        [(*row, phase) for row in changed],
    )
    (before,) = db.execute("SELECT coalesce(max(rowid), 0) FROM files").fetchone()
    db.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", [*rows])
    return before + 1, before + len(rows)


def _reset_tape(db: Connection, tape: str) -> None:
    """Delete everything of a tape, so that it is read again."""
    _delete_lines(db, "tape = ?", bytes.fromhex(tape))
    db.execute("DELETE FROM phases WHERE tape = ?", (bytes.fromhex(tape),))


def _delete_lines(db: Connection, where: str, *values: object) -> None:
    """Delete the lines of the phases that match `where`; the phases themselves stay."""
    phases = f"SELECT key FROM phases WHERE {where}"
    lines = (  # a range at a time: nothing but that finds the lines of a phase among all
        "SELECT e.key FROM ranges r CROSS JOIN entries e ON e.key BETWEEN r.first AND r.last "
        f"WHERE r.phase IN ({phases}) AND e.phase = r.phase"
    )
    files = (
        "SELECT f.rowid FROM ranges r CROSS JOIN files f "
        f"ON f.rowid BETWEEN r.first_file AND r.last_file WHERE r.phase IN ({phases})"
    )
    db.execute(
        f"INSERT INTO removed {lines} "
        f"AND e.type IN (SELECT key FROM types WHERE name IN ({_TYPES_WITH_WORDS}))",
        values,
    )
    for table in ("model_calls", "calls"):
        db.execute(f"DELETE FROM {table} WHERE entry IN ({lines})", values)
    db.execute(
        f"DELETE FROM files WHERE rowid IN ({files}) AND entry IN ({lines})", (*values, *values)
    )
    delete_sums(db, where, *values)
    db.execute(f"DELETE FROM entries WHERE key IN ({lines})", values)
    db.execute(f"DELETE FROM ranges WHERE phase IN ({phases})", values)


def delete_phases(db: Connection, tape: str, gone: Iterable[str]) -> None:
    """Delete missing phases with their lines; the whole tape if one may have redacted."""
    for name in gone:
        key, _ = select_phase(db, tape, name)
        if key is not None:
            _delete_lines(db, "key = ?", key)
            db.execute("DELETE FROM phases WHERE key = ?", (key,))
            if select_redacted_ids(db, tape):
                _reset_tape(db, tape)
                db.execute("DELETE FROM redactions WHERE tape = ?", (bytes.fromhex(tape),))


def delete_tapes(db: Connection, gone: Iterable[tuple[str, str]]) -> None:
    """Delete tapes, given with their folders; those found in another folder meanwhile stay."""
    for tape, folder in gone:
        key = bytes.fromhex(tape)
        deleted = db.execute(
            "DELETE FROM tapes WHERE id = ? AND folder = CAST(? AS TEXT)",
            (key, os.fsencode(folder)),
        )
        if deleted.rowcount > 0:
            for table in ("branches", "labels", "redactions"):
                db.execute(f"DELETE FROM {table} WHERE tape = ?", (key,))
            _reset_tape(db, tape)


@contextmanager
def load_bulk(db: Connection) -> Iterator[None]:
    """Fill a file that no other process uses, and that is useless until it is complete.

    No rollback journal, larger word buffers, and the id index is created at the end.
    """
    (index,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries_id'").fetchone()
    db.execute("DROP INDEX entries_id")
    _set_fts_options(db, hashsize=_BULK_HASHSIZE, automerge=_BULK_AUTOMERGE)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA journal_mode = OFF")
    try:
        yield
    finally:
        db.execute(index)
    _set_fts_options(db, hashsize=_DEFAULT_HASHSIZE, automerge=_DEFAULT_AUTOMERGE)
    for table in ("said", "words"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
    db.execute("VACUUM")  # merging leaves as many pages free as it fills
    db.execute("PRAGMA journal_mode = WAL")


def _set_fts_options(db: Connection, **options: int) -> None:
    for table in ("said", "words"):
        db.executemany(
            f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)",
            options.items(),
        )
