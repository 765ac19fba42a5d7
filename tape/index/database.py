"""index.db as a file: opened, created, migrated, and renamed when it is damaged or not ours.

Invariant: a file with our application id and version has our tables; any other is renamed, never
overwritten. An up-to-date one is opened with one query, without the migration library.

    what is there         what `open_database` does
    ready                 uses it
    nothing, empty, old   creates it or migrates it in place, under a lock on the folder
    newer, foreign        renames it to index.db.newer-TIME or .foreign-TIME, creates a new one
    damaged               the same, if the disk gives all its bytes back; the last three are kept

Words of deleted entries are taken out of the full-text tables here too. A contentless FTS5 table
forgets a row only when it is given the row's text again. That text may be gone, so it is put
together from the words, and places where there are any, that the table itself holds.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..clock import format_timestamp
from ..damage import warn_of_damage
from ..store.disk import Folder, open_file
from .reader import APPLICATION_ID, INDEX_NAME, SCHEMA_VERSION, connect_index, read_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from sqlite3 import Connection


_DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_MISSING_MESSAGES = ("no such ", "table ", "vtable ")
"""How SQLite's message about a missing table or column begins."""
_DAMAGED_COPIES = 3
"""How many damaged files are kept, the newest ones."""
_DAMAGED_NAME = (
    rf"({re.escape(INDEX_NAME)}\.damaged-[0-9T-]+(?:\.[0-9]+)?)(?:-wal|-shm|-journal)?\Z"
)
_READ_BYTES = 1 << 20
_FILE_SUFFIXES = ("-wal", "-shm", "-journal", "")
"""The file itself is last: one that lost the others is only judged again."""
WAIT_SECONDS = 5
"""How long one waits for another process that writes."""


def open_database(
    home: str, require_store: Callable[[], None], clock: Callable[[], int]
) -> sqlite3.Connection:
    """Open the index in the folder `home`; create it after `require_store`, where needed.

    `clock` gives microseconds since 1970. Raises what `require_store` does, and sqlite3.Error or
    OSError if the index cannot be opened.
    """
    db: sqlite3.Connection | None = None
    # Most often the file is ready, or not there yet. Everything else is looked at under a lock.
    with suppress(sqlite3.OperationalError):
        db = connect_index(home, timeout=WAIT_SECONDS)
    if db is None or _classify_file(db) != "ready":
        if db is not None:
            db.close()
        require_store()
        db = _create_database(home, clock)
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA wal_autocheckpoint = 4000")
    db.execute(
        "PRAGMA secure_delete = ON"
    )  # data that is redacted later may be in a page freed now
    return db


def _classify_file(db: sqlite3.Connection) -> str:
    """Return ready, old (or empty), newer, foreign or damaged."""
    try:
        mark, version = read_marks(db)
        if mark == 0 and db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            return "old"
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if is_damage(error):
            return "damaged"
        raise
    if mark != APPLICATION_ID:
        return "foreign"
    return "ready" if version == SCHEMA_VERSION else "old" if version < SCHEMA_VERSION else "newer"


def is_damage(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Return whether an error means that the file is not an intact index.

    Where SQLite's own message quotes a damaged schema, Python cannot decode it.
    """
    if isinstance(error, UnicodeDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGE_CODES or (
        code == sqlite3.SQLITE_ERROR and str(error).startswith(_MISSING_MESSAGES)
    )


def _create_database(home: str, clock: Callable[[], int]) -> sqlite3.Connection:
    """Open the index while no other process creates, migrates or renames it."""
    with lock_index_folder(home):
        db = _connect_or_create(home)
        state = _classify_file(db)
        if state in ("newer", "foreign", "damaged"):
            db.close()
            # A disk that fails makes SQLite report damage; renaming would not help, only lose.
            require_readable(home)
            _rename_index_files(home, state, clock)
            db = _connect_or_create(home)
        if state != "ready":
            db.execute("PRAGMA journal_mode = WAL")
            with write_transaction(db):
                _load_migrations().apply(db)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return db


def _connect_or_create(home: str) -> sqlite3.Connection:
    """Connect to the file; create it if missing, after deleting the lost one's side files."""
    with Folder.open(home) as folder:
        if not folder.has(INDEX_NAME):
            remove_index_files(folder)
            os.close(folder.file(INDEX_NAME, os.O_RDWR | os.O_CREAT))
    return connect_index(home, timeout=WAIT_SECONDS)


@contextmanager
def write_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Write in one transaction that waits for others at its beginning, where it still can.

    Inside another transaction it is part of that.
    """
    if db.in_transaction:
        yield
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


class ManyNewTapes(Exception):
    """So many tapes are new that rebuilding the index takes less time than reading them."""


class Stopped(KeyboardInterrupt):
    """Ctrl+C was pressed, and the work ended at a place where it can be continued."""


@contextmanager
def hold_interrupts() -> Iterator[Callable[[], bool]]:
    """Let Ctrl+C wait for the block, which asks whether it was pressed; twice ends it at once.

    Outside of the main thread nothing is held.
    """
    import signal

    pressed: list[int] = []

    def note(number: int, _: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:
        yield lambda: False
        return
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _load_migrations() -> Any:
    """Load `migrations/index.py`, and with it the library it is written for."""
    from importlib.util import module_from_spec, spec_from_file_location  # rare

    spec = spec_from_file_location("tape_index_migrations", find_migrations() / "index.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_migrations() -> Path:
    """Return the folder of migrations: in the installed package, or else beside it in a clone."""
    from pathlib import Path  # only a new or older index needs them

    package = Path(__file__).parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def rename_damaged(home: str, file: tuple[int, int] | None, clock: Callable[[], int]) -> None:
    """Rename a damaged index, unless it was replaced by another file than `file` meanwhile."""
    with lock_index_folder(home):
        if file is not None and get_file_identity(home) == file:
            require_readable(home)
            _rename_index_files(home, "damaged", clock)


def require_readable(home: str) -> None:
    """Raise OSError if the disk cannot read the file: SQLite may report that as damage."""
    fd = open_file(f"{home}/{INDEX_NAME}")
    try:
        while os.read(fd, _READ_BYTES):
            pass
    finally:
        os.close(fd)


def drop_index(home: str) -> None:
    """Remove an index that can no longer catch up: the next reader rebuilds it from the tapes."""
    with lock_index_folder(home), Folder.open(home) as folder:
        remove_index_files(folder)


def remove_index_files(home: Folder) -> None:
    """Remove the files of an index; the caller holds `alone`."""
    for suffix in _FILE_SUFFIXES:
        with suppress(FileNotFoundError):
            os.unlink(INDEX_NAME + suffix, dir_fd=home.fd)


def get_file_identity(home: str) -> tuple[int, int] | None:
    """Return device and inode of the current index file; None if there is none."""
    try:
        status = os.stat(f"{home}/{INDEX_NAME}")
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _rename_index_files(home: str, why: str, clock: Callable[[], int]) -> None:
    time = format_timestamp(clock())[:19].replace(":", "")
    stem = to = f"{INDEX_NAME}.{why}-{time}"
    with Folder.open(home) as folder:
        names, k = folder.names(), 2
        while to in names:
            to, k = f"{stem}.{k}", k + 1
        for suffix in _FILE_SUFFIXES:
            if INDEX_NAME + suffix in names:
                os.rename(
                    INDEX_NAME + suffix, to + suffix, src_dir_fd=folder.fd, dst_dir_fd=folder.fd
                )
        if why == "damaged":
            _delete_old_copies(folder)


def _delete_old_copies(home: Folder) -> None:
    """Delete old damaged copies: their content is rebuilt from the tapes."""
    copies: dict[str, list[str]] = {}
    for name in home.names():
        match = re.match(_DAMAGED_NAME, name)
        if match:
            copies.setdefault(match[1], []).append(name)
    times = {
        stem: max(
            os.stat(name, dir_fd=home.fd, follow_symlinks=False).st_ctime_ns for name in names
        )
        for stem, names in copies.items()
    }
    for stem in sorted(copies, key=lambda stem_: (stem_.split(".")[2], times[stem_]))[
        :-_DAMAGED_COPIES
    ]:
        for name in copies[stem]:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=home.fd)


@contextmanager
def lock_index_folder(home: str) -> Iterator[None]:
    """Hold the lock of the store's folder."""
    fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


_TEXT_TABLES = ("said", "words")
"""The full-text tables; each has one column, `text`."""
_ERASE_BATCH = 500
"""Rows erased in one transaction, which blocks other writers."""
_MERGE_PAGES = 200
"""Pages of the full-text index that are merged in one transaction."""
_PATIENCE_SECONDS = 2.0
"""After so long a person is told what takes so long."""


def erase_removed_words(db: Connection) -> None:
    """Erase the words of all entries in `removed`; reads the whole full-text index for it.

    Reading blocks no other process. Raises sqlite3.Error.
    """
    if db.execute("SELECT 1 FROM removed WHERE key > 0 LIMIT 1").fetchone() is None:
        return
    db.execute("CREATE TABLE temp.going (source, doc, place, term)")
    try:
        for source in _TEXT_TABLES:
            db.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{source}_places "
                f"USING fts5vocab(main, {source}, instance)"
            )
            db.execute(
                f"INSERT INTO temp.going SELECT '{source}', doc, offset, term "
                f"FROM temp.{source}_places WHERE doc IN (SELECT key FROM main.removed)"
            )
        db.execute("CREATE INDEX temp.going_doc ON going (doc, source, place)")
        while _erase_batch(db):
            pass
    finally:
        db.execute("DROP TABLE temp.going")


def _erase_batch(db: Connection) -> bool:
    """Erase some rows that no other process erased meanwhile; return whether there were any."""
    with write_transaction(db):
        rows_found = db.execute("SELECT key FROM removed WHERE key > 0 LIMIT ?", (_ERASE_BATCH,))
        keys = [key for (key,) in rows_found]
        for key in keys:
            rows_found = db.execute(
                "SELECT source, term FROM temp.going WHERE doc = ? ORDER BY source, place", (key,)
            )
            texts = {
                source: " ".join(term for _, term in rows)
                for source, rows in groupby(rows_found, key=itemgetter(0))
            }
            if db.execute("SELECT 1 FROM said_docsize WHERE id = ?", (key,)).fetchone():
                texts.setdefault("said", "")  # a text without a word has a row too
            for source, text in texts.items():
                db.execute(
                    f"INSERT INTO {source} ({source}, rowid, text) VALUES ('delete', ?, ?)",
                    (key, text),
                )
        db.executemany("DELETE FROM removed WHERE key = ?", [(key,) for key in keys])
    return bool(keys)


def request_scrub(db: Connection) -> None:
    """Record that traces of erased words have to go from the file, until `scrub_index` is done.

    It is a row of `removed` below 0, where no entry has its key.
    """
    with write_transaction(db):
        db.execute(
            "INSERT OR IGNORE INTO removed VALUES (?)", (-1 - (int.from_bytes(os.urandom(8)) >> 2),)
        )


def is_scrub_wanted(db: Connection) -> bool:
    """Return whether traces of erased words have to go from the file."""
    return db.execute("SELECT 1 FROM removed WHERE key < 0 LIMIT 1").fetchone() is not None


def scrub_index(db: Connection) -> None:
    """Remove all traces of erased words from the file: rows and delete markers.

    It works in slices, so that other writers wait for one of them at most. If it takes long, it
    says so. Raises sqlite3.Error.
    """
    markers = db.execute("SELECT key FROM removed WHERE key < 0").fetchall()
    db.execute("PRAGMA temp_store = MEMORY")  # never on a disk
    started_at, has_reported = monotonic(), False
    erase_removed_words(db)
    for source in _TEXT_TABLES:
        pages = -_MERGE_PAGES  # below 0: of all segments
        is_left = True
        while is_left:
            before = db.total_changes
            with write_transaction(db):
                db.execute(f"INSERT INTO {source} ({source}, rank) VALUES ('merge', ?)", (pages,))
            # fts5: fewer than two changes mean that nothing was left to merge
            is_left, pages = db.total_changes - before > 1, _MERGE_PAGES
            if not has_reported and monotonic() - started_at > _PATIENCE_SECONDS:
                has_reported = True
                warn_of_damage("erasing redacted words from the index; this may take a minute")
    with write_transaction(db):
        db.executemany("DELETE FROM removed WHERE key = ?", markers)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
