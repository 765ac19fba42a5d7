"""Fast queries of the index file alone, without importing the rest of the store.

Invariant: nothing is written and no tape is opened. If the index alone cannot answer, the result is
None and the caller uses `tape.index`.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from stat import S_ISREG

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

APPLICATION_ID = int.from_bytes(b"tape", "big")
"""The application id and the schema version of an index, as in `tape.index.database`."""
SCHEMA_VERSION = 3

_STORE_MARK = b'{"format":1,'
_INDEX_ERRORS = (sqlite3.Error, OSError, ValueError, OverflowError)


def query_fast(home: str, question: Callable[[sqlite3.Connection], T]) -> T | None:
    """Return the index's answer to a question, for the store at `home`; None if it is not ready."""
    with suppress(*_INDEX_ERRORS), closing(_connect_fast(home)) as db:
        mark = "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
        if db.execute(mark).fetchone() == (APPLICATION_ID, SCHEMA_VERSION):
            return question(db)
    return None


def _connect_fast(home: str) -> sqlite3.Connection:
    path = os.path.abspath(home)  # noqa: PTH100 (at once)
    for special in "%?#":
        path = path.replace(special, f"%{ord(special):02x}")
    if not S_ISREG(os.stat(f"{home}/index.db").st_mode):  # noqa: PTH116 (at once)
        raise OSError("index.db is not a file")
    return sqlite3.connect(f"file:{path}/index.db?mode=rw", uri=True, timeout=1)


def fetch_newest_tapes(home: str, most: int) -> list[tuple[Any, ...]] | None:
    """Return the newest tapes as (id, updated, title, model, entries, branches, cost).

    None if the index has to catch up first: a tape is being written, was added, or removed.
    """

    def question(db: sqlite3.Connection) -> list[tuple[Any, ...]] | None:
        if not is_caught_up(db, home):
            return None
        return db.execute(
            "SELECT lower(hex(id)), updated, title, model, entries, branches, cost FROM tapes "
            "ORDER BY updated DESC, id DESC LIMIT ?",
            (most,),
        ).fetchall()

    return query_fast(home, question)


def is_caught_up(db: sqlite3.Connection, home: str) -> bool:
    """Return whether no tape is being written, and none was added or removed since."""
    fd = os.open(os.path.join(home, "store.json"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # noqa: PTH118 (at once)
    try:
        if os.read(fd, len(_STORE_MARK)) != _STORE_MARK:
            return False
    finally:
        os.close(fd)
    seen = db.execute("SELECT value FROM meta WHERE key = 'tapes_mtime_ns'").fetchone()
    now = os.stat(os.path.join(home, "tapes")).st_mtime_ns  # noqa: PTH116, PTH118 (at once)
    writing = db.execute("SELECT 1 FROM writers LIMIT 1").fetchone()
    return writing is None and seen is not None and int(seen[0]) == now


def fetch_tapes(db: sqlite3.Connection, prefix: str, most: int) -> list[tuple[str, str]]:
    """Return id and title of the newest tapes whose id begins with `prefix`."""
    ends = bytes.fromhex(prefix.ljust(32, "0")), bytes.fromhex(prefix.ljust(32, "f"))
    return db.execute(
        "SELECT lower(hex(id)), coalesce(title, '') FROM tapes WHERE id BETWEEN ? AND ? "
        "ORDER BY updated DESC LIMIT ?",
        (*ends, most),
    ).fetchall()


def find_tape_id(db: sqlite3.Connection, word: str, cwd: str) -> bytes | None:
    """Return the id of the only tape with this id prefix; without one, of the newest in `cwd`."""
    if word:
        found = [bytes.fromhex(tape) for tape, _ in fetch_tapes(db, word, 2)]
        return found[0] if len(found) == 1 else None
    newest = "SELECT id FROM tapes WHERE cwd = ? ORDER BY updated DESC LIMIT 1"
    row: tuple[bytes] | None = db.execute(newest, (cwd,)).fetchone()
    return row and row[0]


def fetch_branches(db: sqlite3.Connection, tape: bytes) -> list[tuple[str, str]]:
    """Return the name of each branch of a tape, and the time of its head."""
    found = "SELECT name, coalesce(time, '') FROM branches WHERE tape = ? ORDER BY time DESC"
    return db.execute(found, (tape,)).fetchall()


def fetch_labels(db: sqlite3.Connection, tape: bytes) -> list[tuple[str, str]]:
    """Return the labels of a tape and the ids of their entries."""
    found = "SELECT name, lower(hex(entry)) FROM labels WHERE tape = ? ORDER BY name"
    return db.execute(found, (tape,)).fetchall()


def fetch_entries(
    db: sqlite3.Connection, tape: bytes, branch: str, most: int
) -> list[tuple[str, str]]:
    """Return id, and depth with type, of entries before a branch's head, newest first.

    "" is the current branch. Only entries that were indexed shortly before the head are searched.
    """
    return db.execute(
        "SELECT DISTINCT lower(hex(e.id)), e.n || ' ' || t.name "
        "FROM branches b JOIN entries h ON substr(h.id, 1, 4) = substr(b.entry, 1, 4) "
        "JOIN entries e ON e.key BETWEEN h.key - 500 AND h.key AND e.phase = h.phase "
        "JOIN types t ON t.key = e.type "
        "WHERE h.id = b.entry AND b.tape = ?1 AND (b.name = ?2 OR (?2 = '' AND b.current)) "
        "ORDER BY e.n DESC LIMIT ?3",
        (tape, branch, most),
    ).fetchall()
