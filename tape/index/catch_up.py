"""What changed in a store, read into its index: by its log of writers, its folders and its files.

Loaded where something has changed, or is being written: a question to an index that is up to date
needs none of it. `projection` has the table of what happened and how a reader knows.
"""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from time import time_ns
from typing import TYPE_CHECKING

from ..errors import NotFound, TapeError
from . import tables
from .database import ManyNewTapes, Stopped, write_transaction
from .lookups import select_tapes_mtime
from .reader import ARCHIVE_SUFFIX, LARGE_LOG, find_changed_tapes, read_tapes_mtime
from .tables import TapeLocation
from .writer_log import ActiveWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager
    from pathlib import Path
    from sqlite3 import Connection

    from ..store.refs import Changes
    from ..store.store import Store
    from ..store.writer import WritableTape
    from .writer_log import FolderChange, WriterLog

    Progress = Callable[[int, int], None]
    """Called with done and total."""
    Telling = Callable[[], AbstractContextManager[Progress]]
    """Starts a progress display for work that may be long."""

_SETTLED_NS = 100_000_000
"""Nanoseconds after which the next change of a folder certainly changes its time."""

_MAX_COLUMN = (1 << 63) - 1
"""Mask for the 63 bits of a column; inodes of some file systems are larger."""

_MANY_TAPES = 100
"""How many new tapes are read one by one; with more of them the index is rebuilt."""


class CatchUp:
    """Reads what changed in a store into the index in the folder `home`.

    `arrivals` holds where this process put new tapes: id → name of the folder.
    """

    def __init__(
        self,
        store: Store,
        home: str,
        log: WriterLog,
        telling: Telling,
        skipped: Callable[[str], None],
    ) -> None:
        self._store, self._home, self._log = store, home, log
        self._telling, self._skipped = telling, skipped
        self.arrivals: dict[str, str] = {}

    def read_changes(self, db: Connection, *, may_stop: bool) -> None:
        """Read what changed; find dead writers before, so that their last entries are read.

        With `may_stop` raises ManyNewTapes where there are.
        """
        if self._log.read_position() != tables.select_log_position(db):
            with write_transaction(db):
                self._fold_log(db)
        writers = tables.select_writers(db)
        dead = {writer for writer in writers if not _is_process_alive(writer.pid)}
        # A process that dies from here on counts as alive: its row stays, so the next reader finds
        # what it wrote while we read.
        self.scan_tapes_folder(db, may_stop=may_stop)
        done = {tape for tape in {writer.tape for writer in writers} if self.try_read(db, tape)}
        self._remove_writers(db, [writer for writer in dead if writer.tape in done])
        self._forget_arrivals(db)
        with suppress(FileNotFoundError):  # no folder of tapes yet
            for tape in [*find_changed_tapes(db, self._store.home)]:
                self.try_read(db, tape, keep_damaged=True)
        self._truncate_log(db)

    def end_writing(self, db: Connection, row: ActiveWriter, lines: set[int]) -> None:
        """Append that a writer ends; `lines` are those of its moves, which are indexed."""
        # One transaction: a reader in between would find a tape that needs reading again.
        with write_transaction(db):
            lines.add(self._log.append(row, begins=False))
            self._fold_log(db, lines)
        moved = [
            other
            for other in tables.select_writers(db)
            if other.tape == row.tape and other.pid == 0
        ]
        if moved and self.try_read(db, row.tape):
            self._remove_writers(db, moved)

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
        mtime = before_mtime = select_tapes_mtime(db)
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
            if where is not None and where.folder not in ("", change.folder):  # a copy
                return None
            # Where another file or folder of that name is known, it was archived or unpacked.
            if where is None or where != TapeLocation(change.folder, self._find_inode(change)):
                tables.insert_arrival(db, change.tape, change.folder)
        elif change.tape:
            from .ingest import delete_tapes

            delete_tapes(db, [(change.tape, change.folder)])
            tables.delete_arrival(db, change.tape)
        return change.after

    def _find_inode(self, change: FolderChange) -> int:
        """Return the inode of what came, as `tables` has it; 0 if it is gone again."""
        path = f"{self._store.home}/tapes/{change.folder}"
        for name in (path, path + ARCHIVE_SUFFIX.decode()):
            with suppress(FileNotFoundError):
                return os.lstat(name).st_ino & _MAX_COLUMN
        return 0

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
                with suppress(OSError):  # the store may only be read
                    self._log.truncate(position)

    def try_read(self, db: Connection, tape: str, *, keep_damaged: bool = False) -> bool:
        """Index a tape that may be being written; return whether nothing of it is left to read.

        With `keep_damaged` one with damage in its journal stays as it is in the index.
        """
        try:
            self.read_tape(db, tape, keep_damaged=keep_damaged)
        except NotFound:  # it went
            return True
        except (OSError, TapeError):  # unreadable now: it stays in the table and is retried
            return False
        return True

    def take_changes(self, db: Connection, tape: WritableTape, changes: Changes | None) -> None:
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
        self.read_tape(db, tape.id)

    def read_tape(self, db: Connection, tape: str, *, keep_damaged: bool = False) -> None:
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
            self.arrivals.pop(tape, ""),
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

    def learn_from(self, db: Connection, other: Path) -> None:
        """Index what another index of this store has and this one lacks, and copy its writers."""
        with tables.attach_index(db, other):
            position = tables.select_log_position(db, "other")  # first: rows may go meanwhile
            writers, behind = tables.select_writers(db, "other"), tables.select_differing_tapes(db)
        with write_transaction(db):
            tables.delete_writers(db, tables.select_writers(db))
            tables.insert_writers(db, writers)
            tables.save_log_position(db, position)
        for tape in behind:
            self.try_read(db, tape)

    def scan_tapes_folder(
        self,
        db: Connection,
        progress: Progress | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        *,
        may_stop: bool = False,
    ) -> None:
        """Add new tapes and remove deleted ones, if the time of their folder changed.

        A time too recent to differ after the next change is not stored, nor one with unreadable
        tapes: then the next reader checks again. With `may_stop` raises ManyNewTapes.
        """
        mtime = read_tapes_mtime(self._store.home)
        if mtime == select_tapes_mtime(db):
            return
        there = {name: inode & _MAX_COLUMN for name, inode in self._store.inodes().items()}
        known = tables.select_locations(db)
        held = {tape: at for tape, at in known.items() if there.get(at.folder) == at.inode}
        new = {TapeLocation(*item) for item in there.items()} - set(held.values())
        if may_stop and len(new) > _MANY_TAPES and 2 * len(new) > len(known):
            raise ManyNewTapes
        taken: list[bool] = []
        with nullcontext(progress) if progress else self._telling() as tell:
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

    def _remove_writers(self, db: Connection, rows: list[ActiveWriter]) -> None:
        if rows:
            with write_transaction(db):
                tables.delete_writers(db, rows)


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
