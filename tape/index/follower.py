"""The index of one store: it follows writers, catches up with files, and answers from SQLite.

Invariant: what it answers after `catch_up` is what reading all files would answer. Whatever moves
a tape, a writer or one line in its journal, stands in the table of writers from before its first
byte until it was caught up; so a reader knows where to look, also after a kill. Tapes that came or
went show in the time of their common folder. Nothing else is looked at, however many there are.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from sqlite3 import Connection, DatabaseError, Error
from time import time_ns
from typing import TYPE_CHECKING, TypeVar

from ..errors import NotFound, TapeError
from . import tables
from .database import drop, identity, immediate, is_damage, open_database, set_aside
from .tables import Location, Open
from .tally import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store import Store
    from ..tape import Tape
    from .tally import TapeRow

T = TypeVar("T")
_SECOND = 1_000_000
_SETTLED = 100_000_000
"""Nanoseconds after which the next change of a folder surely gives it another time."""

_INTEGER = (1 << 63) - 1
"""What fits into a column; some file systems have inodes that do not."""

_SKIPPED = (Error, OSError, TapeError)
"""What may go wrong under a writer: a derived copy that cannot be written is left to readers."""


class Index:
    """The projection of one store, for one thread; its file is opened at the first use."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._writing: Counter[str] = Counter()
        self._caught: dict[str, int] = {}

    def began(self, tape: str) -> None:
        """Enter a writer, or somebody about to write a line in the journal.

        An index that cannot be told of it, locked for long or full, would never catch up with what
        is written now: it is dropped, and the next reader makes it anew.
        """
        self._writing[tape] += 1
        try:
            self._do(lambda db: self._enter(db, [tape]))
        except TapeError:  # a later version wrote this store: no index is made in it
            return
        except (Error, OSError):
            with suppress(OSError):
                drop(self._store)

    def moved(self, tape: str) -> None:
        """Catch the tape up, at most once a second: while it is being written readers do so too."""
        now = self._store.clock()
        with suppress(*_SKIPPED):
            if abs(now - self._caught.get(tape, -_SECOND)) >= _SECOND or not self._is_current():
                self._caught[tape] = now
                self._do(lambda db: self._read(db, tape))

    def ended(self, tape: str) -> None:
        """Catch the tape up and, when it was the last one's end, take it out of the writers."""
        self._writing[tape] -= 1
        with suppress(*_SKIPPED):
            self._do(lambda db: self._read(db, tape))
            if self._writing[tape] <= 0:
                self._do(lambda db: self._leave(db, [self._entry(tape)]))

    def overwrote(self, tape: str) -> None:
        """Read a tape anew, leaving nothing in the file of what was known before."""
        try:
            self._do(lambda db: self._anew(db, tape))
        except TapeError:  # no index is made in a later version's store, or for a tape that went
            return
        except (Error, OSError):
            with suppress(OSError):
                drop(self._store)

    def _anew(self, db: Connection, tape: str) -> None:
        db.execute("PRAGMA secure_delete = ON")
        where = self._locate(db, tape)
        with self._store.open_folder(where.folder) as opened:
            new = read(opened, where.folder, {})
            with immediate(db):
                tables.forget(db, tape, where.folder)
                tables.keep(db, new, None)
                tables.settle(db, tape, where)
            _keep(db, opened, where)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def catch_up(self) -> None:
        """Read what is new: in tapes being written, and of tapes that came or went.

        Raises sqlite3.Error or OSError when the index cannot be opened or written.
        """
        self._do(self._catch_up)

    def rows(self, cwd: str | None, limit: int | None) -> list[TapeRow]:
        """Return the tapes newest first; raise as `catch_up` does."""
        return self._answer(lambda db: tables.listed(db, cwd, limit))

    def folders(self, prefix: str) -> list[str]:
        """Return the folders of tapes whose id begins with `prefix`; raise as `catch_up` does."""
        return self._answer(lambda db: tables.named(db, prefix))

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        db, self._db, self._file = self._db, None, None
        if db is not None:
            db.close()

    def _answer(self, question: Callable[[Connection], T]) -> T:
        """Catch up and answer on one file: one made anew in between knows nothing yet."""

        def work(db: Connection) -> T:
            self._catch_up(db)
            return question(db)

        return self._do(work)

    def _do(self, work: Callable[[Connection], T]) -> T:
        """Do work that may be done twice: on a damaged index, and again on a new one."""
        try:
            return work(self._open())
        except DatabaseError as error:
            if not is_damage(error):
                raise
        file = self._file or identity(self._store)
        self.close()
        set_aside(self._store, file)
        return work(self._open())

    def _open(self) -> Connection:
        """Return the connection; a file that took the place of ours learns who is writing."""
        if self._db is None or not self._is_current():
            self.close()
            file = identity(self._store)
            self._db = open_database(self._store)
            self._enter(self._db, [tape for tape, count in self._writing.items() if count > 0])
            self._file = file or identity(self._store)
        return self._db

    def _is_current(self) -> bool:
        return self._file is not None and self._file == identity(self._store)

    def _entry(self, tape: str) -> Open:
        return Open(tape, os.getpid(), id(self))

    def _enter(self, db: Connection, tapes: list[str]) -> None:
        if tapes:
            with immediate(db):
                tables.enter(db, map(self._entry, tapes))

    def _leave(self, db: Connection, rows: list[Open]) -> None:
        if rows:
            with immediate(db):
                tables.leave(db, rows)

    def _catch_up(self, db: Connection) -> None:
        """Look at the dead before reading, so that what they wrote last is read."""
        writers = tables.writers(db)
        dead = {writer for writer in writers if not _is_alive(writer.pid)}
        self._look_around(db)
        done = {tape for tape in {writer.tape for writer in writers} if self._follow(db, tape)}
        self._leave(db, [writer for writer in dead if writer.tape in done])

    def _follow(self, db: Connection, tape: str) -> bool:
        """Read a tape that may be being written; tell whether nothing of it is left to read."""
        try:
            self._read(db, tape)
        except NotFound:  # it went
            return True
        except (OSError, TapeError):  # unreadable now: it stays in the table and is tried again
            return False
        return True

    def _read(self, db: Connection, tape: str) -> None:
        where = self._locate(db, tape)
        with self._store.open_folder(where.folder) as opened:
            _keep(db, opened, where)

    def _locate(self, db: Connection, tape: str) -> Location:
        """Return where a tape is: where it was, or in the folder most likely named for it."""
        known = tables.location(db, tape)
        if known is not None and self._store.id_of(known.folder) == tape:
            return known
        names = sorted(self._store.folders(), key=lambda name: not name.endswith(tape[:8]))
        for name in names:
            if self._store.id_of(name) == tape:
                return Location(name, 0)
        raise NotFound(f"tape {tape} is not in the store")

    def _look_around(self, db: Connection) -> None:
        """Take tapes in that came and out that went, if the time of their folder tells of any.

        A time too young to differ after the next change is not kept, nor one with tapes that could
        not be read: then the next reader looks again.
        """
        mtime = self._store.tapes.stat().st_mtime_ns
        if mtime == tables.seen(db):
            return
        there = {name: inode & _INTEGER for name, inode in self._store.inodes().items()}
        known = tables.locations(db)
        held = {tape: at for tape, at in known.items() if there.get(at.folder) == at.inode}
        new = {Location(*item) for item in there.items()} - set(held.values())
        taken = [self._take_in(db, where, held) for where in sorted(new)]
        for tape in known.keys() - held.keys():
            with immediate(db):
                tables.forget(db, tape, known[tape].folder)
        if all(taken) and time_ns() - mtime > _SETTLED:
            with immediate(db):
                tables.see(db, mtime)

    def _take_in(self, db: Connection, where: Location, held: dict[str, Location]) -> bool:
        """Read the tape in a folder and note it in `held`; tell whether that could be done.

        Of a tape that stands in two folders, because somebody copied one, the first counts.
        """
        try:
            with self._store.open_folder(where.folder) as tape:
                if tape.id not in held or where.folder < held[tape.id].folder:
                    _keep(db, tape, where)
                    _settle(db, tape.id, where)
                    held[tape.id] = where
        except (OSError, TapeError):  # a damaged or newer one must not hide the others
            return False
        return True


def _keep(db: Connection, tape: Tape, where: Location) -> None:
    """Bring the record of a tape up to date; locks nobody out while reading, or for nothing new."""
    old = tables.record(db, tape.id)
    new = read(tape, where.folder, old.phases if old else {})
    if new == old:
        return
    with immediate(db):
        now = tables.record(db, tape.id)
        if now != old:  # somebody was faster, and may have read further
            new = read(tape, where.folder, now.phases if now else {})
        tables.keep(db, new, now)
        if now is None:
            tables.settle(db, tape.id, where)


def _settle(db: Connection, tape: str, where: Location) -> None:
    if tables.location(db, tape) != where:
        with immediate(db):
            tables.settle(db, tape, where)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
