"""The index of one store: it follows writers, catches up with files, and answers from SQLite.

Invariant: what it answers is what reading all files would answer, and a reader looks at few tapes
to get there, however many there are:

    what happened          how a reader knows, and what it does
    a process writes,      a line in the log of writers, from before the first byte, and so a row in
    or was killed          `writers`: read that tape on, and delete the rows of dead processes
    a branch, label or     the same, and a line when it is done: read that tape once more
    title moved
    tapes came or went     lines in the log of writers that lead from the mtime of `tapes/` in
                           `meta` to the one it has: read those that they name
    somebody else changed  no such lines: compare the names and inodes of folders with the rows of
    that folder            `tapes`
    index.db was replaced  another device or inode: open it; it reads the whole log of writers
    index.db is damaged    SQLite says so: rename it, make a new one, ask again
    entries were redacted  an entry of type `redact`: delete the tape's rows and read it again

A writer itself adds what it wrote at most once a second (`on_barrier`), and at its end. A move adds
nothing: its cost is that of two lines in the log, and the next reader or writer adds it.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from sqlite3 import Connection, DatabaseError, Error
from time import time_ns
from typing import TYPE_CHECKING, TypeVar

from ..errors import Busy, NotFound, TapeError, WriteFailed
from ..store.refs import Changes
from . import tables
from .database import (
    Stopped,
    drop_index,
    get_file_identity,
    hold_interrupts,
    is_damage,
    is_scrub_wanted,
    open_database,
    rename_damaged,
    request_scrub,
    scrub_index,
    write_transaction,
)
from .reader import TapeRow, find_changed_tapes
from .tables import TapeLocation
from .writer_log import LARGE_LOG, ActiveWriter, WriterLog

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..store.store import Store
    from ..store.writer import WritableTape
    from .writer_log import FolderChange

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

_MANY_TAPES = 100
"""How many new tapes are read one by one; with more of them the index is rebuilt."""

_SKIPPED_ERRORS = (Error, OSError, TapeError)
"""Errors that a writer ignores: an index that cannot be written is left to readers."""


class _ManyNewTapes(Exception):
    """With this number of new tapes the index is rebuilt."""


@contextmanager
def report_nothing() -> Iterator[Progress]:
    """Yield a progress callback that does nothing."""
    yield lambda _done, _total: None


def require_store(store: Store, home: str) -> None:
    """Raise OSError or NewerFormat unless the store exists: only an existing one gets an index."""
    store.check()
    if home == store.home:
        store.tapes.stat()


class Index:
    """The projection of one store, for one thread; its file is opened at the first use.

    `telling` is called for a progress callback when new tapes have to be read. `skipped` gets one
    message for each line of these that changed on the disk. `rebuild` rebuilds the index where
    very many tapes are new.
    """

    def __init__(
        self,
        store: Store,
        folder: str | os.PathLike[str] | None = None,
        telling: Telling = report_nothing,
        skipped: Callable[[str], None] = lambda _: None,
        rebuild: Callable[[Progress], object] | None = None,
    ) -> None:
        self._store, self.telling, self._skipped = store, telling, skipped
        self._rebuild = rebuild
        self._home = store.home if folder is None else os.fspath(folder)
        self._db: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._log = WriterLog(store.home)
        self._has_store = self._has_written = self._has_filled = False
        self._writing: Counter[str] = Counter()
        self._caught: dict[str, int] = {}
        self._came: dict[str, str] = {}
        self._moved: dict[str, tuple[set[int], Changes]] = {}

    @contextmanager
    def on_folder_change(
        self, tapes: int, tape: str = "", folder: str = "", *, comes: bool = False
    ) -> Iterator[None]:
        """Note in the log of writers what the block changes in the open folder `tapes/`."""
        with self._log.hold_for_change(tapes, tape, folder, comes=comes):
            yield
        if tape and comes:
            self._came[tape] = folder

    def on_begin(self, tape: str) -> None:
        """Note a writer, or a process about to write a line in the journal, in the log of writers.

        Where that cannot be written, as on a full disk, the index would miss these changes: it is
        deleted, and the next reader rebuilds it.
        """
        self._writing[tape] += 1
        self._has_written = True
        if self._writing[tape] == 1 or self._log.is_replaced():
            self._note_writer(tape)

    def _note_writer(self, tape: str) -> None:
        try:
            if not self._has_store:
                require_store(self._store, self._store.home)
                self._has_store = True
            self._log.append(self._build_writer_row(tape), begins=True)
        except WriteFailed:
            self._drop_index()
        except TapeError:  # a later version wrote this store: it gets no file of ours
            return
        except OSError:
            self._drop_index()

    def _drop_index(self) -> None:
        with suppress(OSError):
            drop_index(self._home)

    def on_barrier(self, tape: WritableTape, changes: Changes) -> None:
        """Index the tape's new entries, at most once a second: readers do so too meanwhile."""
        now = self._store.clock()
        # Somebody deleted the log, and our line with it.
        if self._log.is_replaced():
            self._note_writer(tape.id)
        # `abs`: after the clock was set back, the difference would be negative for long.
        if abs(now - self._caught.setdefault(tape.id, now)) >= _CATCH_UP_EVERY:
            with suppress(*_SKIPPED_ERRORS):
                self._caught[tape.id] = now
                self._run_with_recovery(lambda db: self._take_changes(db, tape, changes))
                changes.clear()

    def on_move(self, tape: str, changes: Changes) -> None:
        """Note that a branch, a label or the title moved: whoever comes next reads it.

        If that is a writer of ours, it needs to read only the changes.
        """
        self._writing[tape] -= 1
        lines, moved = self._moved.setdefault(tape, (set(), Changes()))
        moved.add(changes)
        if self._writing[tape] <= 0:
            with suppress(OSError, WriteFailed):  # then it counts as being written until we end
                lines.add(self._log.append(self._build_writer_row(tape), begins=False))

    def on_end(self, tape: WritableTape, changes: Changes | None) -> None:
        """Index the tape's new entries and, after its last writer, note that none writes."""
        self._writing[tape.id] -= 1

        lines, moved = self._moved.pop(tape.id, (set[int](), Changes()))
        if changes is not None:
            changes.add(moved)

        def work(db: Connection) -> None:
            self._take_changes(db, tape, changes)
            if self._writing[tape.id] <= 0:
                # One transaction: a reader in between would find a tape that needs reading again.
                with write_transaction(db):
                    lines.add(self._log.append(self._build_writer_row(tape.id), begins=False))
                    self._fold_log(db, lines)
                rows = tables.select_writers(db)
                moved = [row for row in rows if row.tape == tape.id and row.pid == 0]
                if moved and self._try_read(db, tape.id):
                    self._remove_writers(db, moved)

        with suppress(*_SKIPPED_ERRORS):
            self._run_with_recovery(work)

    def on_redact(self, tape: str, *, scrubs: bool) -> None:
        """Read a redaction, leaving nothing in the file of what was known before.

        Without `scrubs` that is done when this is closed, or at the end of a later writer.
        """

        def work(db: Connection) -> None:
            request_scrub(db)
            self._read_tape(db, tape)
            if scrubs:
                scrub_index(db)

        try:
            self._run_with_recovery(work)
        except TapeError:  # no index is made in a later version's store, or for a tape that went
            return
        except (Error, OSError):
            self._drop_index()

    def rows(
        self,
        cwd: str | None,
        limit: int | None,
        project: str | None = None,
        root: str | None = None,
    ) -> list[TapeRow]:
        """Return the tapes newest first; raise as `answer` does."""
        return self.answer(lambda db: tables.select_tape_rows(db, cwd, limit, project, root))

    def folders(self, prefix: str) -> list[str]:
        """Return the folders of tapes whose id begins with `prefix`; raise as `answer` does."""
        return self.answer(lambda db: tables.select_folders(db, prefix))

    def places(self, prefix: str, tape: str | None = None) -> list[tables.EntryLocation]:
        """Return where entries stand whose id begins with `prefix`, in one tape or in all.

        Raises as `answer` does.
        """
        return self.answer(lambda db: tables.select_entries(db, prefix, tape))

    def find_labelled(self, name: str) -> list[tuple[str, str]]:
        """Return folder and entry of each label of this name; raise as `answer` does."""
        return self.answer(lambda db: tables.select_labelled(db, name))

    def is_complete(self) -> bool:
        """Return whether everything in `tapes/` was read after its last change.

        False also for the tenth of a second after a change. Raises as `answer` does.
        """
        return self.answer(
            lambda db: tables.select_tapes_mtime(db) == _get_tapes_mtime(self._store)
        )

    def close(self) -> None:
        """Close the file; the next use opens it again.

        After writing, what a redaction left in the file is scrubbed first, under nobody's lock.
        """
        has_written, self._has_written = self._has_written, False
        if self._db is not None and has_written:
            with suppress(Error):  # a later writer does it
                if is_scrub_wanted(self._db):
                    scrub_index(self._db)
        self._close_file()

    def _close_file(self) -> None:
        db, self._db, self._file = self._db, None, None
        if db is not None:
            db.close()

    def answer(self, question: Callable[[Connection], T]) -> T:
        """Catch up and answer on one file: one created in between is empty.

        Indexes what is new: in tapes being written, and of tapes that were added or removed. A
        question may be called twice. Raises sqlite3.Error or OSError if the index cannot be opened
        or written, NewerFormat or Damaged of the store itself.
        """

        def work(db: Connection) -> T:
            self._read_changed_tapes(db)
            return question(db)

        try:
            return self._run_with_recovery(work)
        except _ManyNewTapes:
            self._fill_at_once()
            return self._run_with_recovery(work)

    def _is_filled_at_once(self, new: int, known: int) -> bool:
        """Return whether rebuilding the index takes less time than reading the new tapes."""
        is_many = new > _MANY_TAPES and 2 * new > known
        return is_many and self._rebuild is not None and not self._has_filled

    def _fill_at_once(self) -> None:
        """Rebuild the index; where that fails, or another does it, tapes are read singly."""
        self._has_filled = True
        self._close_file()
        with self.telling() as tell, suppress(OSError, Error, Busy):
            if self._rebuild is not None:
                self._rebuild(tell)

    def _run_with_recovery(self, work: Callable[[Connection], T]) -> T:
        """Do work that may be repeated: on a damaged index, and again on a new one."""
        try:
            return work(self._open_current())
        except DatabaseError as error:
            if not is_damage(error):
                raise
        file = self._file or get_file_identity(self._home)
        self._close_file()
        rename_damaged(self._home, file, self._store.clock)
        return work(self._open_current())

    def _open_current(self) -> Connection:
        """Return the connection to the file that is there now."""
        if self._db is None or self._file is None or self._file != get_file_identity(self._home):
            self._close_file()
            file = get_file_identity(self._home)
            self._db = open_database(
                self._home, partial(require_store, self._store, self._home), self._store.clock
            )
            self._file = file or get_file_identity(self._home)
        return self._db

    def _build_writer_row(self, tape: str) -> ActiveWriter:
        return ActiveWriter(tape, os.getpid(), id(self))

    def _remove_writers(self, db: Connection, rows: list[ActiveWriter]) -> None:
        if rows:
            with write_transaction(db):
                tables.delete_writers(db, rows)

    def _read_changed_tapes(self, db: Connection) -> None:
        """Read what changed; find dead writers before, so that their last entries are read."""
        if self._log.read_position() != tables.select_log_position(db):
            with write_transaction(db):
                self._fold_log(db)
        writers = tables.select_writers(db)
        dead = {writer for writer in writers if not _is_process_alive(writer.pid)}
        # A process that dies from here on counts as alive: its row stays, so the next reader finds
        # what it wrote while we read.
        self._scan_tapes_folder(db)
        done = {tape for tape in {writer.tape for writer in writers} if self._try_read(db, tape)}
        self._remove_writers(db, [writer for writer in dead if writer.tape in done])
        self._forget_arrivals(db)
        with suppress(FileNotFoundError):  # no folder of tapes yet
            for tape in [*find_changed_tapes(db, self._store.home)]:
                self._try_read(db, tape, keep_damaged=True)
        self._truncate_log(db)

    def _forget_arrivals(self, db: Connection) -> None:
        """Forget where tapes came that were read; where one cannot be, all folders are compared."""
        arrived = tables.select_arrivals(db)
        if arrived:
            places = [tables.select_location(db, tape) for tape in arrived]
            with write_transaction(db):
                for tape in arrived:
                    tables.delete_arrival(db, tape)
                if not all(place and place.folder for place in places):
                    tables.save_tapes_mtime(db, None)

    def _fold_log(self, db: Connection, known: Collection[int] = ()) -> None:
        """Turn the new lines of the log into rows, in the caller's transaction.

        The changes that end at the lines at `known` offsets are indexed.
        """
        before = tables.select_log_position(db)
        position, lines = self._log.read_lines(*before)
        entered: dict[ActiveWriter, None] = {}
        ended: list[ActiveWriter] = []
        changed: dict[str, ActiveWriter] = {}
        mtime = before_mtime = tables.select_tapes_mtime(db)
        for offset, begins, writer, change in lines:
            serial = (position[0] + offset) & _MAX_COLUMN  # no two changes share a row
            if change is not None:
                mtime = self._take_folder_change(db, mtime, change)
                if change.tape and tables.select_arrival(db, change.tape):
                    changed[change.tape] = ActiveWriter(change.tape, 0, serial)
            elif writer is None:  # a damaged line may have named any tape
                every = tables.select_tape_ids(db)
                changed |= {tape: ActiveWriter(tape, 0, serial) for tape in every}
            elif begins:
                entered[writer] = None
            else:
                entered.pop(writer, None)
                ended.append(writer)
                if offset not in known:
                    changed[writer.tape] = ActiveWriter(writer.tape, 0, serial)
        tables.delete_writers(db, ended)
        tables.insert_writers(db, [*entered, *changed.values()])
        if mtime != before_mtime:
            tables.save_tapes_mtime(db, mtime)
        if position != before:
            tables.save_log_position(db, position)

    def _take_folder_change(
        self, db: Connection, mtime: int | None, change: FolderChange
    ) -> int | None:
        """Note what came or went, and return the time of `tapes/` up to which all is known.

        None where something else changed in between: then all folders are compared.
        """
        if mtime is None or (change.before != mtime and change.after > mtime):
            return None
        if change.before != mtime:  # seen when all were compared
            return mtime
        if change.comes:
            where = tables.select_location(db, change.tape)
            if where is None or not where.folder:
                tables.insert_arrival(db, change.tape, change.folder)
            elif where.folder != change.folder:  # a copy
                return None
        elif change.tape:
            from .ingest import delete_tapes

            delete_tapes(db, [(change.tape, change.folder)])
            tables.delete_arrival(db, change.tape)
        return change.after

    def _truncate_log(self, db: Connection) -> None:
        """Empty a large log that nobody needs; first its consequences go to the disk."""
        position = tables.select_log_position(db)
        if (
            position[1] >= LARGE_LOG
            and self._home == self._store.home
            and not tables.select_writers(db)
        ):
            busy, pages, moved = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and pages == moved:
                self._log.truncate(position)

    def _try_read(self, db: Connection, tape: str, *, keep_damaged: bool = False) -> bool:
        """Index a tape that may be being written; return whether nothing of it is left to read.

        With `keep_damaged` one with damage in its journal stays as it is in the index.
        """
        try:
            self._read_tape(db, tape, keep_damaged=keep_damaged)
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
        from .tape_sync import apply_changes  # only writers have changes

        place = tables.select_location(db, tape.id)
        if changes is not None and place is not None and place.folder:
            is_same = False  # somebody may have copied it
            with suppress(OSError):
                there = (self._store.tapes / place.folder).stat()
                is_same = os.path.samestat(there, os.fstat(tape.folder.fd))
            if is_same and apply_changes(db, tape, changes):
                return
        self._read_tape(db, tape.id)

    def _read_tape(self, db: Connection, tape: str, *, keep_damaged: bool = False) -> None:
        """Read a tape where it was, or in another folder, the likeliest by its name first."""
        from .tape_sync import sync_tape  # a question may read none

        with self._store.open_folder(self._find_folder(db, tape)) as opened:
            if not (keep_damaged and opened.refs().damage):
                inode = os.fstat(opened.folder.fd).st_ino & _MAX_COLUMN
                where = TapeLocation(opened.folder.name, inode)
                sync_tape(db, opened, where, lambda _: None)

    def _find_folder(self, db: Connection, tape: str) -> str:
        """Return the folder of a tape; raise NotFound where the store does not have it."""
        where = tables.select_location(db, tape)
        likely = [
            where.folder if where else "",
            self._came.pop(tape, ""),
            tables.select_arrival(db, tape),
        ]
        for name in filter(None, likely):
            if self._store.read_tape_id(name) == tape:
                return name
        names = sorted(self._store.folders(), key=lambda name: not name.endswith(tape[:8]))
        for name in names:
            if self._store.read_tape_id(name) == tape:
                return name
        raise NotFound(f"tape {tape} is not in the store")

    def fill(self, progress: Progress, *, is_begun: bool = False) -> None:
        """Index all tapes into an unused file; `progress` is called with done and total.

        Faster than catching up, but not safe against a power failure. Stopped by Ctrl+C, the file
        holds what was read until then, to continue with (`is_begun`). Raises as `answer` does.
        """

        def work(db: Connection) -> None:
            from . import ingest  # rare

            with ingest.load_bulk(db):
                if is_begun:
                    for tape in [*find_changed_tapes(db, self._store.home, every=True)]:
                        self._try_read(db, tape)
                with hold_interrupts() as is_stopped:
                    db.execute("BEGIN IMMEDIATE")
                    try:
                        self._scan_tapes_folder(db, progress, is_stopped)
                    finally:  # without a rollback journal there is no way back
                        db.execute("COMMIT")

        self._run_with_recovery(work)

    def learn_from(self, other: Path) -> None:
        """Index what another index of this store has and this one lacks, and copy its writers."""
        db = self._open_current()
        with tables.attach_index(db, other):
            position = tables.select_log_position(db, "other")  # first: rows may go meanwhile
            writers, behind = tables.select_writers(db, "other"), tables.select_differing_tapes(db)
        with write_transaction(db):
            tables.delete_writers(db, tables.select_writers(db))
            tables.insert_writers(db, writers)
            tables.save_log_position(db, position)
        for tape in behind:
            self._try_read(db, tape)

    def _scan_tapes_folder(
        self,
        db: Connection,
        progress: Progress | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
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
        if progress is None and self._is_filled_at_once(len(new), len(known)):
            raise _ManyNewTapes
        taken: list[bool] = []
        with nullcontext(progress) if progress else self.telling() as tell:
            for where in sorted(new):
                if is_stopped():
                    raise Stopped
                tell(len(taken), len(new))
                taken.append(self._take_in_folder(db, where, held))
            tell(len(new), len(new))
        gone = [(tape, known[tape].folder) for tape in known.keys() - held.keys()]
        if gone:
            from .ingest import delete_tapes

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
                    from .tape_sync import sync_tape  # as above

                    sync_tape(db, tape, where, self._skipped)
                    if tables.select_location(db, tape.id) != where:
                        with write_transaction(db):
                            tables.update_location(db, tape.id, where)
                    held[tape.id] = where
        except (OSError, TapeError):  # skip a damaged or newer one
            return False
        return before is None


def _get_tapes_mtime(store: Store) -> int:
    try:
        return os.stat(f"{store.home}/tapes").st_mtime_ns
    except FileNotFoundError:  # the first tape creates it
        return 0


def _is_process_alive(pid: int) -> bool:
    if pid == 0:  # no process: see `ActiveWriter`
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's: also where the number was given to a new one
        return True
    return True
