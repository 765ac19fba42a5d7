"""The index of one store: it follows writers, catches up with files, and answers from SQLite.

Invariant: what it answers after `catch_up` is what reading all files would answer, and a reader
looks at few tapes to get there, however many there are:

    what happened          how a reader knows, and what it does
    a process writes,      a row in `writers`, from before the first byte until it was caught up:
    or was killed          read that tape on, and delete the rows of dead processes
    tapes came or went     the mtime of `tapes/` is not the one in `meta`: compare the names and
                           inodes of folders with the rows of `tapes`
    index.db was replaced  another device or inode: open it, and enter our own writers there
    index.db is damaged    SQLite says so: rename it, make a new one, ask again
    entries were redacted  an entry of type `redact`: delete the tape's rows and read it again

A writer itself adds what it wrote at most once a second (`on_barrier`), and at its end.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from math import fsum
from sqlite3 import Connection, DatabaseError, Error
from time import time_ns
from typing import TYPE_CHECKING, TypeVar

from ..errors import NotFound, TapeError
from ..store.phase import ORIGIN
from ..store.refs import read_head_at
from . import tables
from .database import (
    drop_index,
    get_file_identity,
    is_damage,
    open_database,
    rename_damaged,
    scrub_index,
    write_transaction,
)
from .tables import (
    ActiveWriter,
    IndexedBranch,
    PhaseTally,
    TapeLocation,
    TapeRecord,
    TapeRow,
    is_entry_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..store.phase import Phases
    from ..store.refs import Changes, Move, Refs
    from ..store.store import Store
    from ..store.tape import Tape
    from ..store.writer import WritableTape
    from .ingest import LineRun

    Progress = Callable[[int, int], None]
    """Called with done and total."""
    Telling = Callable[[], AbstractContextManager[Progress]]
    """Starts a progress display for work that may be long."""

T = TypeVar("T")
_CATCH_UP_EVERY = 1_000_000
_SETTLED_NS = 100_000_000
"""Nanoseconds after which the next change of a folder certainly changes its time."""

_MAX_COLUMN = (1 << 63) - 1
"""Mask for the 63 bits of a column; inodes of some file systems are larger."""

_SKIPPED_ERRORS = (Error, OSError, TapeError)
"""Errors that a writer ignores: an index that cannot be written is left to readers."""


@contextmanager
def report_nothing() -> Iterator[Progress]:
    """Yield a progress callback that does nothing."""
    yield lambda _done, _total: None


def require_store(store: Store, home: Path) -> None:
    """Raise OSError or NewerFormat unless the store exists: only an existing one gets an index."""
    store.check()
    if home == store.path:
        store.tapes.stat()


class Index:
    """The projection of one store, for one thread; its file is opened at the first use.

    `telling` is called for a progress callback when new tapes have to be read. `skipped` gets one
    message for each line of these that changed on the disk.
    """

    def __init__(
        self,
        store: Store,
        folder: Path | None = None,
        telling: Telling = report_nothing,
        skipped: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store, self.telling, self._skipped = store, telling, skipped
        self._home = folder or store.path
        self._db: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._writing: Counter[str] = Counter()
        self._caught: dict[str, int] = {}

    def on_begin(self, tape: str) -> None:
        """Register a writer, or a process about to write a line in the journal.

        An index that cannot be written now, because it is locked for long or full, would miss these
        changes: it is deleted, and the next reader rebuilds it.
        """
        self._writing[tape] += 1
        try:
            self._run_with_recovery(lambda db: self._enter_writers(db, [tape]))
            while not self._is_current():  # the file was replaced meanwhile
                self._open_current()
        except TapeError:  # a later version wrote this store: no index is created in it
            return
        except (Error, OSError):
            with suppress(OSError):
                drop_index(self._home)

    def on_barrier(self, tape: WritableTape, changes: Changes) -> None:
        """Index the tape's new entries, at most once a second: readers do so too meanwhile."""
        now = self._store.clock()
        with suppress(*_SKIPPED_ERRORS):
            if (
                abs(now - self._caught.get(tape.id, -_CATCH_UP_EVERY)) >= _CATCH_UP_EVERY
                or not self._is_current()
            ):
                self._caught[tape.id] = now
                self._run_with_recovery(lambda db: self._take_changes(db, tape, changes))
                changes.clear()

    def on_end(self, tape: WritableTape, changes: Changes | None) -> None:
        """Index the tape's new entries and, after its last writer, remove it from the table."""
        self._writing[tape.id] -= 1

        def work(db: Connection) -> None:  # both on one file, which may be replaced meanwhile
            self._take_changes(db, tape, changes)
            if self._writing[tape.id] <= 0:
                self._remove_writers(db, [self._build_writer_row(tape.id)])

        with suppress(*_SKIPPED_ERRORS):
            self._run_with_recovery(work)

    def on_redact(self, tape: str) -> None:
        """Read a redaction, leaving nothing in the file of what was known before."""

        def work(db: Connection) -> None:
            self._read_tape(db, tape)
            scrub_index(db)

        try:
            self._run_with_recovery(work)
        except TapeError:  # no index is made in a later version's store, or for a tape that went
            return
        except (Error, OSError):
            with suppress(OSError):
                drop_index(self._home)

    def catch_up(self) -> None:
        """Index what is new: in tapes being written, and of tapes that were added or removed.

        Raises sqlite3.Error or OSError if the index cannot be opened or written.
        """
        self._run_with_recovery(self._read_changed_tapes)

    def rows(self, cwd: str | None, limit: int | None) -> list[TapeRow]:
        """Return the tapes newest first; raise as `catch_up` does."""
        return self.answer(lambda db: tables.select_tape_rows(db, cwd, limit))

    def folders(self, prefix: str) -> list[str]:
        """Return the folders of tapes whose id begins with `prefix`; raise as `catch_up` does."""
        return self.answer(lambda db: tables.select_folders(db, prefix))

    def places(self, prefix: str, tape: str | None = None) -> list[tables.EntryLocation]:
        """Return where entries stand whose id begins with `prefix`, in one tape or in all.

        Raises as `catch_up` does.
        """
        return self.answer(lambda db: tables.select_entries(db, prefix, tape))

    def find_labelled(self, name: str) -> list[tuple[str, str]]:
        """Return folder and entry of each label of this name; raise as `catch_up` does."""
        return self.answer(lambda db: tables.select_labelled(db, name))

    def is_complete(self) -> bool:
        """Return whether everything in `tapes/` was read after its last change.

        False also for the tenth of a second after a change. Raises as `catch_up` does.
        """
        return self.answer(
            lambda db: tables.select_tapes_mtime(db) == _get_tapes_mtime(self._store)
        )

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        db, self._db, self._file = self._db, None, None
        if db is not None:
            db.close()

    def answer(self, question: Callable[[Connection], T]) -> T:
        """Catch up and answer on one file: one created in between is empty.

        Raises as `catch_up` does. A question may be called twice.
        """

        def work(db: Connection) -> T:
            self._read_changed_tapes(db)
            return question(db)

        return self._run_with_recovery(work)

    def _run_with_recovery(self, work: Callable[[Connection], T]) -> T:
        """Do work that may be repeated: on a damaged index, and again on a new one."""
        try:
            return work(self._open_current())
        except DatabaseError as error:
            if not is_damage(error):
                raise
        file = self._file or get_file_identity(self._home)
        self.close()
        rename_damaged(self._home, file, self._store.clock)
        return work(self._open_current())

    def _open_current(self) -> Connection:
        """Return the connection; a file that replaced ours gets our writers."""
        if self._db is None or not self._is_current():
            self.close()
            file = get_file_identity(self._home)
            self._db = open_database(
                self._home, partial(require_store, self._store, self._home), self._store.clock
            )
            self._enter_writers(
                self._db, [tape for tape, count in self._writing.items() if count > 0]
            )
            self._file = file or get_file_identity(self._home)
        return self._db

    def _is_current(self) -> bool:
        return self._file is not None and self._file == get_file_identity(self._home)

    def _build_writer_row(self, tape: str) -> ActiveWriter:
        return ActiveWriter(tape, os.getpid(), id(self))

    def _enter_writers(self, db: Connection, tapes: list[str]) -> None:
        if tapes:
            with write_transaction(db):
                tables.insert_writers(db, map(self._build_writer_row, tapes))

    def _remove_writers(self, db: Connection, rows: list[ActiveWriter]) -> None:
        if rows:
            with write_transaction(db):
                tables.delete_writers(db, rows)

    def _read_changed_tapes(self, db: Connection) -> None:
        """Find dead writers before reading, so that their last entries are read."""
        writers = tables.select_writers(db)
        dead = {writer for writer in writers if not _is_process_alive(writer.pid)}
        self._scan_tapes_folder(db)
        done = {tape for tape in {writer.tape for writer in writers} if self._try_read(db, tape)}
        self._remove_writers(db, [writer for writer in dead if writer.tape in done])

    def _try_read(self, db: Connection, tape: str) -> bool:
        """Index a tape that may be being written; return whether nothing of it is left to read."""
        try:
            self._read_tape(db, tape)
        except NotFound:  # it went
            return True
        except (OSError, TapeError):  # unreadable now: it stays in the table and is retried
            return False
        return True

    def _take_changes(self, db: Connection, tape: WritableTape, changes: Changes | None) -> None:
        """Index the changes, or else everything of the tape that is not indexed yet.

        So a move costs the same in a tape of a thousand branches as in a tape of two. Changes by
        other processes meanwhile are indexed by them, or by the next reader.
        """
        place = tables.select_location(db, tape.id)
        if changes is not None and place is not None and place.folder:
            is_same = False  # somebody may have copied it
            with suppress(OSError):
                there = (self._store.tapes / place.folder).stat()
                is_same = os.path.samestat(there, os.fstat(tape.folder.fd))
            if is_same and _apply_changes(db, tape, changes):
                return
        self._read_tape(db, tape.id)

    def _read_tape(self, db: Connection, tape: str) -> None:
        """Read a tape where it was, or in another folder, the likeliest by its name first."""
        where = tables.select_location(db, tape)
        if where is None or self._store.read_tape_id(where.folder) != tape:
            names = sorted(self._store.folders(), key=lambda name: not name.endswith(tape[:8]))
            found = (name for name in names if self._store.read_tape_id(name) == tape)
            where = next((TapeLocation(name, 0) for name in found), None)
        if where is None:
            raise NotFound(f"tape {tape} is not in the store")
        with self._store.open_folder(where.folder) as opened:
            _sync_tape(db, opened, where, lambda _: None)

    def fill(self, progress: Progress) -> None:
        """Index all tapes into an unused file; `progress` is called with done and total.

        Faster than `catch_up`, but not safe against a power failure. Raises as that does.
        """

        def work(db: Connection) -> None:
            from . import ingest  # noqa: PLC0415 (rare)

            with ingest.load_bulk(db), write_transaction(db):
                self._scan_tapes_folder(db, progress)

        self._run_with_recovery(work)

    def learn_from(self, other: Path) -> None:
        """Index what another index of this store has and this one lacks, and copy its writers."""
        db = self._open_current()
        with tables.attach_index(db, other):
            writers, behind = tables.select_writers(db, "other"), tables.select_differing_tapes(db)
        with write_transaction(db):
            tables.insert_writers(db, writers)
        for tape in behind:
            self._try_read(db, tape)

    def _scan_tapes_folder(self, db: Connection, progress: Progress | None = None) -> None:
        """Add new tapes and remove deleted ones, if the time of their folder changed.

        A time too recent to differ after the next change is not stored, nor one with unreadable
        tapes: then the next reader checks again.
        """
        mtime = _get_tapes_mtime(self._store)
        if mtime == tables.select_tapes_mtime(db):
            return
        there = {name: inode & _MAX_COLUMN for name, inode in self._store.inodes().items()}
        known = tables.select_locations(db)
        held = {tape: at for tape, at in known.items() if there.get(at.folder) == at.inode}
        new = {TapeLocation(*item) for item in there.items()} - set(held.values())
        taken: list[bool] = []
        with nullcontext(progress) if progress else self.telling() as tell:
            for where in sorted(new):
                tell(len(taken), len(new))
                taken.append(self._take_in_folder(db, where, held))
            tell(len(new), len(new))
        gone = [(tape, known[tape].folder) for tape in known.keys() - held.keys()]
        if gone:
            from .ingest import delete_tapes  # noqa: PLC0415 (as below)

            with write_transaction(db):
                delete_tapes(db, gone)
        if all(taken) and time_ns() - mtime > _SETTLED_NS and not self._store.links():
            with write_transaction(db):
                tables.save_tapes_mtime(db, mtime)

    def _take_in_folder(
        self, db: Connection, where: TapeLocation, held: dict[str, TapeLocation]
    ) -> bool:
        """Index the tape in a folder and note it in `held`; return whether that succeeded.

        Of a tape in two folders, because one was copied, the first counts, and the other one is
        read each time.
        """
        try:
            with self._store.open_folder(where.folder) as tape:
                before = held.get(tape.id)
                if before is None or where.folder < before.folder:
                    _sync_tape(db, tape, where, self._skipped)
                    if tables.select_location(db, tape.id) != where:
                        with write_transaction(db):
                            tables.update_location(db, tape.id, where)
                    held[tape.id] = where
        except (OSError, TapeError):  # skip a damaged or newer one
            return False
        return before is None


def _sync_tape(
    db: Connection,
    tape: Tape,
    where: TapeLocation,
    skipped: Callable[[str], None],
) -> None:
    """Update everything that is indexed of a tape, run by run.

    Takes no lock while reading, or if nothing is new; continues after the changes of another
    process that was faster.
    """
    while not _try_sync(db, tape, where, skipped):
        pass


def _try_sync(
    db: Connection, tape: Tape, where: TapeLocation, skipped: Callable[[str], None]
) -> bool:
    """Index what is new; return whether no other process did so meanwhile."""
    from .ingest import delete_phases, read_runs  # noqa: PLC0415 (a list may need none of it)

    refs, old = tape.refs(), tables.select_tape_record(db, tape.id)
    phases = tables.select_tallies(db, tape.id)
    before, last = set(phases), None
    for run in read_runs(
        tape, refs, phases, tables.select_redacted_ids(db, tape.id), skipped=skipped
    ):
        if last is not None:
            with write_transaction(db):
                if not _insert_next_run(db, tape.id, last):
                    return False
        last = run
    new, gone = build_tape_record(tape, where.folder, refs, phases), before - phases.keys()
    if last is None and not gone and new == old:
        return True
    with write_transaction(db):
        if last is not None and not _insert_next_run(db, tape.id, last):
            return False
        delete_phases(db, tape.id, gone)
        if tables.select_tallies(db, tape.id) != phases:
            return False
        tables.save_tape_record(db, new)
        if old is None or not old.row.folder:
            tables.update_location(db, tape.id, where)
    return True


def build_tape_record(
    tape: Tape, folder: str, refs: Refs, phases: dict[str, PhaseTally]
) -> TapeRecord:
    """Return the facts of a tape whose phases were read."""
    branches = tuple(
        build_branch_row(tape.phases, moves[-1], refs, phases) for moves in refs.branches.values()
    )
    own = {name: tally for name, tally in phases.items() if name != ORIGIN}
    row = _build_tape_row(tape, folder, refs, own, branches)
    labels = ((name, entry) for name, entry in refs.labels.items() if is_entry_id(entry))
    return TapeRecord(row, tuple(sorted(branches)), tuple(sorted(labels)), phases)


def _build_tape_row(
    tape: Tape,
    folder: str,
    refs: Refs,
    phases: dict[str, PhaseTally],
    branches: tuple[IndexedBranch, ...],
) -> TapeRow:
    tallies = [*phases.values()] or [PhaseTally()]
    costs = [tally.cost for tally in tallies if tally.cost is not None]
    return TapeRow(
        id=tape.id,
        folder=folder,
        title=refs.title or next((tally.prompt for tally in tallies if tally.prompt), None),
        cwd=max(tallies, key=lambda tally: tally.moved).cwd or "",
        project=next((tally.project for tally in tallies if tally.project), None),
        created=tape.info.created,
        updated=max((branch.time or "" for branch in branches), default="") or tape.info.created,
        model=max(tallies, key=lambda tally: tally.answered).model,
        entries=sum(tally.entries for tally in tallies),
        branches=len(refs.branches),
        cost=fsum(costs) if costs else None,
    )


def build_branch_row(
    files: Phases, move: Move, refs: Refs, phases: Mapping[str, PhaseTally]
) -> IndexedBranch:
    """Return the row of the branch that made this move last."""
    current, entry, n, time = move.branch == refs.current, None, None, None
    if move.pin is None:
        tally = phases.get(move.phase)
        if tally is not None and tally.entries:
            entry, n, time = tally.last, tally.n, tally.time
    else:
        with suppress(TapeError):  # `tape verify` reports damage; show the other branches
            pinned = read_head_at(files, move.branch, move.phase, move.pin.offset, move.pin.entry)
            entry, n, time = pinned.entry, pinned.header.n, pinned.header.time
    return IndexedBranch(move.branch, move.phase, entry, n, time, current, move.pin is not None)


def _apply_changes(db: Connection, tape: WritableTape, changes: Changes) -> bool:
    """Index the changes in a tape; return whether that is complete.

    It is not for a tape or a phase whose beginning is not indexed, nor if another process was
    faster.
    """
    from .ingest import read_runs  # noqa: PLC0415 (most commands write nothing)

    before = tables.select_tallies(db, tape.id, changes.phases)
    phases = dict(before)
    if not changes.phases <= before.keys() | changes.begun:
        return False
    redacted = tables.select_redacted_ids(db, tape.id)
    for run in read_runs(tape, tape.journal.read(), phases, redacted, only=changes.phases):
        with write_transaction(db):
            if not _insert_next_run(db, tape.id, run):
                return False
    with write_transaction(db):
        refs = tape.journal.read()  # under the lock, so that the newest move is stored last
        if tables.select_tallies(db, tape.id, changes.phases) != phases:
            return False
        moves = [refs.branches[name][-1] for name in changes.branches & refs.branches.keys()]
        tables.update_tape(
            db,
            tape.id,
            refs,
            [build_branch_row(tape.phases, move, refs, phases) for move in moves],
            {name: refs.labels.get(name) for name in changes.labels},
            [(before.get(name, PhaseTally()), tally) for name, tally in phases.items()],
        )
    return True


def _insert_next_run(db: Connection, tape: str, run: LineRun) -> bool:
    """Insert a run, in the caller's transaction; return False if it does not follow."""
    from . import ingest  # noqa: PLC0415 (as above)

    key, tally = tables.select_phase(db, tape, run.phase)
    redacted = tables.select_redacted_ids(db, tape)
    return tally == run.before and ingest.insert_run(db, tape, run, key, redacted)


def _get_tapes_mtime(store: Store) -> int:
    try:
        return store.tapes.stat().st_mtime_ns
    except FileNotFoundError:  # the first tape creates it
        return 0


def _is_process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
