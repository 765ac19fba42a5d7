"""index.db as a file: opened, made, migrated, and set aside when it is damaged or not ours.

Invariant: a file with our mark and our version has our tables; any other is renamed, never
overwritten. An up-to-date one is opened with one query, and without the library that migrates.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import contextmanager, suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..clock import stamp
from ..disk import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store import Store

NAME = "index.db"
APPLICATION = int.from_bytes(b"tape", "big")
"""The `application_id` of an index."""
SCHEMA = 1
"""The `user_version` of an index: how many steps `migrations/index.py` has."""

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_BESIDE = ("-wal", "-shm", "-journal", "")  # the file itself last: a lost one is only judged again


def open_database(store: Store) -> sqlite3.Connection:
    """Open the index of a store that exists, made, brought up to date or made anew where needed.

    Raises OSError where there is no store, sqlite3.Error or OSError where it cannot be opened.
    """
    db = _ready(store.path) or _made(store)
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def _ready(home: Path) -> sqlite3.Connection | None:
    try:
        db = _connect(home)
    except sqlite3.OperationalError:  # most often: not there yet
        return None
    if _judged(db) == "ready":
        return db
    db.close()
    return None


def _connect(home: Path) -> sqlite3.Connection:
    uri = (home / NAME).absolute().as_uri() + "?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None)


def _judged(db: sqlite3.Connection) -> str:
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
    if mark != APPLICATION:
        return "foreign"
    return "ready" if version == SCHEMA else "old" if version < SCHEMA else "newer"


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether an error means that the file is not a whole index."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _made(store: Store) -> sqlite3.Connection:
    """Open the index with nobody else making, migrating or renaming it meanwhile."""
    store.check()
    store.tapes.stat()  # only a store that is there gets an index
    with _alone(store.path):
        db = _connect_or_create(store.path)
        state = _judged(db)
        if state in ("newer", "foreign", "damaged"):
            db.close()
            _rename(store, state)
            db = _connect_or_create(store.path)
        if state != "ready":
            _migrate(db)
        return db


def _connect_or_create(home: Path) -> sqlite3.Connection:
    """Connect to the file, made empty where none is; what stood beside a lost one goes first."""
    with Folder.open(home) as folder:
        if not folder.has(NAME):
            _remove(folder)
            os.close(folder.file(NAME, os.O_RDWR | os.O_CREAT))
    return _connect(home)


def _migrate(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    with immediate(db):
        _steps().apply(db)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {SCHEMA}")


@contextmanager
def immediate(db: sqlite3.Connection) -> Iterator[None]:
    """Write in one transaction that waits for others at its beginning, where it can still wait."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


def _steps() -> Any:
    """Load `migrations/index.py`, and with it the library it is written for."""
    spec = spec_from_file_location("tape_index_migrations", migrations_dir() / "index.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def migrations_dir() -> Path:
    """Return the folder of migrations: in the installed package, or else beside it in a clone."""
    package = Path(__file__).parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def set_aside(store: Store, file: tuple[int, int] | None) -> None:
    """Rename a damaged index, unless somebody did so first and another `file` stands there."""
    with _alone(store.path):
        if file is not None and identity(store) == file:
            _rename(store, "damaged")


def drop(store: Store) -> None:
    """Remove an index that is behind for good: the next reader makes it anew from the tapes."""
    with _alone(store.path), Folder.open(store.path) as home:
        _remove(home)


def _remove(home: Folder) -> None:
    for suffix in _BESIDE:
        with suppress(FileNotFoundError):
            os.unlink(NAME + suffix, dir_fd=home.fd)


def identity(store: Store) -> tuple[int, int] | None:
    """Return device and inode of the file that is the index now, None where none is."""
    try:
        found = (store.path / NAME).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _rename(store: Store, why: str) -> None:
    time = stamp(store.clock())[:19].replace(":", "")
    stem = to = f"{NAME}.{why}-{time}"
    with Folder.open(store.path) as home:
        names, k = home.names(), 2
        while to in names:
            to, k = f"{stem}.{k}", k + 1
        for suffix in _BESIDE:
            if NAME + suffix in names:
                os.rename(NAME + suffix, to + suffix, src_dir_fd=home.fd, dst_dir_fd=home.fd)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Hold the lock of the store's folder."""
    fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
