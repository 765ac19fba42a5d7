"""index.db as a file: opened, made, migrated, and set aside when it is damaged or not ours.

Invariant: a file with our mark and our version has our tables; any other is renamed, never
overwritten. An up-to-date one is opened with one query, and without the library that migrates.

Words of entries that went, taken out of the full-text index without knowing the entries.

A contentless FTS5 table forgets a row only when it is told the row's text again. That text may be
gone, so it is put together from the words and places that the index itself holds.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from ..clock import format_timestamp
from ..store.disk import Folder, open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from sqlite3 import Connection

    from ..store.store import Store


INDEX_NAME = "index.db"
APPLICATION_ID = int.from_bytes(b"tape", "big")
"""The `application_id` of an index."""
SCHEMA_VERSION = 3
"""The `user_version` of an index: how many steps `migrations/index.py` has."""

_DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_MISSING_MESSAGES = ("no such ", "table ", "vtable ")
"""How SQLite begins to say that a table, or a column of it, is not there."""
_DAMAGED_COPIES = 3
"""Damaged files that are kept, the newest."""
_DAMAGED_NAME = re.compile(
    rf"({re.escape(INDEX_NAME)}\.damaged-[0-9T-]+(?:\.[0-9]+)?)(?:-wal|-shm|-journal)?\Z"
)
_READ_BYTES = 1 << 20
_FILE_SUFFIXES = (
    "-wal",
    "-shm",
    "-journal",
    "",
)  # the file itself last: a lost one is only judged again


def open_database(store: Store, home: Path) -> sqlite3.Connection:
    """Open the index of a store that exists, in the folder `home`; made or mended where needed.

    Raises OSError where there is no store, sqlite3.Error or OSError where it cannot be opened.
    """
    db = _open_ready(home) or _create_database(store, home)
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA wal_autocheckpoint = 4000")
    db.execute("PRAGMA secure_delete = ON")  # what is redacted later may stand in a page freed now
    return db


def _open_ready(home: Path) -> sqlite3.Connection | None:
    try:
        db = connect_index(home)
    except sqlite3.OperationalError:  # most often: not there yet
        return None
    if _classify_file(db) == "ready":
        return db
    db.close()
    return None


def connect_index(home: Path) -> sqlite3.Connection:
    """Connect to the file there, whatever it is; raise sqlite3.OperationalError where none is."""
    with suppress(FileNotFoundError):
        if not S_ISREG((home / INDEX_NAME).stat().st_mode):  # a FIFO, say
            raise sqlite3.OperationalError(f"{INDEX_NAME} is not a file")
    uri = (home / INDEX_NAME).absolute().as_uri() + "?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None)


def _classify_file(db: sqlite3.Connection) -> str:
    """Return ready, old (or empty), newer, foreign or damaged."""
    try:
        mark, version = db.execute(
            "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if mark == 0 and db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            return "old"
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return "damaged"
        raise
    if mark != APPLICATION_ID:
        return "foreign"
    return "ready" if version == SCHEMA_VERSION else "old" if version < SCHEMA_VERSION else "newer"


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether an error means that the file is not a whole index."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGE_CODES or (
        code == sqlite3.SQLITE_ERROR and str(error).startswith(_MISSING_MESSAGES)
    )


def _create_database(store: Store, home: Path) -> sqlite3.Connection:
    """Open the index with nobody else making, migrating or renaming it meanwhile."""
    store.check()
    if home == store.path:
        store.tapes.stat()  # only a store that is there gets an index
    with lock_index_folder(home):
        db = _connect_or_create(home)
        state = _classify_file(db)
        if state in ("newer", "foreign", "damaged"):
            db.close()
            require_readable(home)
            _rename_index_files(home, state, store.clock)
            db = _connect_or_create(home)
        if state != "ready":
            _migrate_schema(db)
        return db


def _connect_or_create(home: Path) -> sqlite3.Connection:
    """Connect to the file, made empty where none is; what stood beside a lost one goes first."""
    with Folder.open(home) as folder:
        if not folder.has(INDEX_NAME):
            remove_index_files(folder)
            os.close(folder.file(INDEX_NAME, os.O_RDWR | os.O_CREAT))
    return connect_index(home)


def _migrate_schema(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    with write_transaction(db):
        _load_migrations().apply(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


@contextmanager
def write_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Write in one transaction that waits for others at its beginning, where it can still wait.

    Inside another one it is a part of that.
    """
    if db.in_transaction:
        yield
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


def _load_migrations() -> Any:
    """Load `migrations/index.py`, and with it the library it is written for."""
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415 (rare)

    spec = spec_from_file_location("tape_index_migrations", find_migrations() / "index.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_migrations() -> Path:
    """Return the folder of migrations: in the installed package, or else beside it in a clone."""
    package = Path(__file__).parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def rename_damaged(home: Path, file: tuple[int, int] | None, clock: Callable[[], int]) -> None:
    """Rename a damaged index, unless somebody did so first and another `file` stands there."""
    with lock_index_folder(home):
        if file is not None and get_file_identity(home) == file:
            require_readable(home)
            _rename_index_files(home, "damaged", clock)


def require_readable(home: Path) -> None:
    """Raise OSError where the disk does not give the file back: SQLite may call that damage."""
    fd = open_file(home / INDEX_NAME)
    try:
        while os.read(fd, _READ_BYTES):
            pass
    finally:
        os.close(fd)


def drop_index(home: Path) -> None:
    """Remove an index that is behind for good: the next reader makes it anew from the tapes."""
    with lock_index_folder(home), Folder.open(home) as folder:
        remove_index_files(folder)


def remove_index_files(home: Folder) -> None:
    """Remove the files of an index; whoever calls holds `alone`."""
    for suffix in _FILE_SUFFIXES:
        with suppress(FileNotFoundError):
            os.unlink(INDEX_NAME + suffix, dir_fd=home.fd)


def get_file_identity(home: Path) -> tuple[int, int] | None:
    """Return device and inode of the file that is the index now, None where none is."""
    try:
        found = (home / INDEX_NAME).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _rename_index_files(home: Path, why: str, clock: Callable[[], int]) -> None:
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
    """Delete old damaged copies: all they held is made from the tapes again."""
    kept: dict[str, list[str]] = {}
    for name in home.names():
        found = _DAMAGED_NAME.match(name)
        if found:
            kept.setdefault(found[1], []).append(name)
    times = {
        stem: max(_get_change_time(home, name) for name in names) for stem, names in kept.items()
    }
    for stem in sorted(kept, key=lambda one: (one.split(".")[2], times[one]))[:-_DAMAGED_COPIES]:
        for name in kept[stem]:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=home.fd)


def _get_change_time(home: Folder, name: str) -> int:
    return os.stat(name, dir_fd=home.fd, follow_symlinks=False).st_ctime_ns


@contextmanager
def lock_index_folder(home: Path) -> Iterator[None]:
    """Hold the lock of the store's folder."""
    fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


_ERASE_BATCH = 500
"""Rows taken out in one transaction: others wait that long."""


def erase_removed_words(db: Connection) -> None:
    """Take the words of all entries in `removed` out; reads the whole full-text index if any are.

    The reading locks nobody out. Raises sqlite3.Error.
    """
    if db.execute("SELECT 1 FROM removed LIMIT 1").fetchone() is None:
        return
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, text, instance)"
    )
    db.execute(
        "CREATE TABLE temp.going (doc, col, place, term, PRIMARY KEY (doc, col, place)) "
        "WITHOUT ROWID"
    )
    try:
        db.execute(
            "INSERT INTO temp.going SELECT doc, col, offset, term FROM temp.words "
            "WHERE doc IN (SELECT key FROM main.removed)"
        )
        while _erase_batch(db):
            pass
    finally:
        db.execute("DROP TABLE temp.going")


def _erase_batch(db: Connection) -> bool:
    """Take some out that nobody else did meanwhile; tell whether there were any."""
    with write_transaction(db):
        keys = [key for (key,) in db.execute("SELECT key FROM removed LIMIT ?", (_ERASE_BATCH,))]
        db.executemany(
            "INSERT INTO text (text, rowid, said, called, answered) VALUES ('delete', ?, ?, ?, ?)",
            [(key, *_collect_words_by_column(db, key)) for key in keys],
        )
        db.executemany("DELETE FROM removed WHERE key = ?", [(key,) for key in keys])
    return bool(keys)


def _collect_words_by_column(db: Connection, key: int) -> tuple[str, str, str]:
    found = db.execute("SELECT col, term FROM temp.going WHERE doc = ? ORDER BY col, place", (key,))
    words = {column: _join_terms(rows) for column, rows in groupby(found, key=lambda row: row[0])}
    return words.get("said", ""), words.get("called", ""), words.get("answered", "")


def _join_terms(rows: Iterable[tuple[str, str]]) -> str:
    return " ".join(term for _, term in rows)


def scrub_index(db: Connection) -> None:
    """Leave nothing in the file of words that were erased: neither their rows nor their marks."""
    db.execute("PRAGMA temp_store = MEMORY")  # not on a disk, however short
    erase_removed_words(db)
    db.execute("INSERT INTO text (text) VALUES ('optimize')")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
