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
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from sqlite3 import Connection, DatabaseError, Error
from typing import TYPE_CHECKING, TypeVar

from ..errors import Busy, TapeError, WriteFailed
from ..store.refs import Changes
from . import lookups
from .database import (
    ManyNewTapes,
    drop_index,
    get_file_identity,
    hold_interrupts,
    is_damage,
    is_scrub_wanted,
    open_database,
    rename_damaged,
    request_scrub,
    scrub_index,
)
from .reader import TapeRow, find_changed_tapes, is_caught_up, read_tapes_mtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..store.store import Store
    from ..store.writer import WritableTape
    from .catch_up import CatchUp, Progress, Telling
    from .lookups import EntryLocation
    from .writer_log import ActiveWriter, WriterLog

T = TypeVar("T")
_CATCH_UP_EVERY = 1_000_000

_SKIPPED_ERRORS = (Error, OSError, TapeError)
"""Errors that a writer ignores: an index that cannot be written is left to readers."""


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
        self._has_store = self._has_written = self._has_filled = False
        self._writing: Counter[str] = Counter()
        self._caught: dict[str, int] = {}
        self._moved: dict[str, tuple[set[int], Changes]] = {}

    @cached_property
    def _log(self) -> WriterLog:
        from .writer_log import WriterLog  # as below

        return WriterLog(self._store.home)

    @cached_property
    def _catch_up(self) -> CatchUp:
        from .catch_up import CatchUp  # where nothing changed, a question needs none

        return CatchUp(self._store, self._home, self._log, self.telling, self._skipped)

    @contextmanager
    def on_folder_change(
        self, tapes: int, tape: str = "", folder: str = "", *, comes: bool = False
    ) -> Iterator[None]:
        """Note in the log of writers what the block changes in the open folder `tapes/`."""
        with self._log.hold_for_change(tapes, tape, folder, comes=comes):
            yield
        if tape and comes:
            self._catch_up.arrivals[tape] = folder

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

    def find_holder(self, _tape: WritableTape, _branch: str, /) -> str | None:
        """Return None: an index knows of nobody elsewhere."""
        return None

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
                self._run_with_recovery(lambda db: self._catch_up.take_changes(db, tape, changes))
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
            self._catch_up.take_changes(db, tape, changes)
            if self._writing[tape.id] <= 0:
                self._catch_up.end_writing(db, self._build_writer_row(tape.id), lines)

        with suppress(*_SKIPPED_ERRORS):
            self._run_with_recovery(work)

    def on_redact(self, tape: str, *, scrubs: bool) -> None:
        """Read a redaction, leaving nothing in the file of what was known before.

        Without `scrubs` that is done when this is closed, or at the end of a later writer.
        """

        def work(db: Connection) -> None:
            request_scrub(db)
            self._catch_up.read_tape(db, tape)
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
        *,
        waits: bool = True,
    ) -> list[TapeRow]:
        """Return the tapes newest first; raise as `answer` does."""
        return self.answer(
            lambda db: lookups.select_tape_rows(db, cwd, limit, project, root), waits=waits
        )

    def folders(self, prefix: str) -> list[str]:
        """Return the folders of tapes whose id begins with `prefix`; raise as `answer` does."""
        return self.answer(lambda db: lookups.select_folders(db, prefix))

    def places(self, prefix: str, tape: str | None = None) -> list[EntryLocation]:
        """Return where entries stand whose id begins with `prefix`, in one tape or in all.

        Raises as `answer` does.
        """
        return self.answer(lambda db: lookups.select_entries(db, prefix, tape))

    def find_labelled(self, name: str) -> list[tuple[str, str]]:
        """Return folder and entry of each label of this name; raise as `answer` does."""
        return self.answer(lambda db: lookups.select_labelled(db, name))

    def is_complete(self) -> bool:
        """Return whether everything in `tapes/` was read after its last change.

        False also for the tenth of a second after a change. Raises as `answer` does.
        """
        home = self._store.home
        return self.answer(lambda db: lookups.select_tapes_mtime(db) == read_tapes_mtime(home))

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

    def answer(self, question: Callable[[Connection], T], *, waits: bool = True) -> T:
        """Catch up and answer on one file: one created in between is empty.

        Indexes what is new: in tapes being written, and of tapes that were added or removed. A
        question may be called twice. Raises sqlite3.Error or OSError if the index cannot be opened
        or written, NewerFormat or Damaged of the store itself; without `waits` ManyNewTapes where
        it would have to be rebuilt first.
        """
        may_stop = self._rebuild is not None and not self._has_filled

        def work(db: Connection) -> T:
            if not self._is_caught_up(db):
                self._catch_up.read_changes(db, may_stop=may_stop)
            return question(db)

        try:
            return self._run_with_recovery(work)
        except ManyNewTapes:
            if not waits:
                raise
            may_stop = False
            self._fill_at_once()
            return self._run_with_recovery(work)

    def _is_caught_up(self, db: Connection) -> bool:
        """Return whether nothing changed since; False where the store cannot be read."""
        with suppress(OSError):
            return is_caught_up(db, self._store.home)
        return False

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
        except (DatabaseError, UnicodeDecodeError) as error:
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
        from .writer_log import ActiveWriter  # as above

        return ActiveWriter(tape, os.getpid(), id(self))

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
                        self._catch_up.try_read(db, tape)
                with hold_interrupts() as is_stopped:
                    db.execute("BEGIN IMMEDIATE")
                    try:
                        self._catch_up.scan_tapes_folder(db, progress, is_stopped)
                    finally:  # without a rollback journal there is no way back
                        db.execute("COMMIT")

        self._run_with_recovery(work)

    def learn_from(self, other: Path) -> None:
        """Index what another index of this store has and this one lacks, and copy its writers."""
        self._catch_up.learn_from(self._open_current(), other)
