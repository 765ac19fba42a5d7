"""What this store knows of a remote: how far each tape was pushed and pulled.

A cursor is derived: when it is lost, the next push and pull read the remote, and find again what
was pushed. It is saved after the remote has it, never before.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from ..errors import WriteFailed
from ..store.disk import Folder
from ..store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

REMOTES_NAME = "remotes"
"""The folder in a store with a cursor for each remote."""
_VERSION = 1
EVENTS_TABLE = (
    "CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, event TEXT NOT NULL) STRICT"
)
_SCHEMA = f"""
{EVENTS_TABLE};
CREATE TABLE IF NOT EXISTS tapes (
    tape TEXT PRIMARY KEY, seq INTEGER NOT NULL, sizes TEXT NOT NULL, journal TEXT NOT NULL,
    stamps TEXT, wanted INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS wanted ON tapes (tape) WHERE wanted > seq;
CREATE TABLE IF NOT EXISTS digests (bucket INTEGER PRIMARY KEY, digest BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS erasures (tape TEXT PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS gone (tape TEXT PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS growing (tape TEXT PRIMARY KEY, since REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS waiting (
    tape TEXT PRIMARY KEY, since REAL NOT NULL, last REAL NOT NULL,
    complaint TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE IF NOT EXISTS unlogged (tape TEXT PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS shared (tape TEXT PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS log (name TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;
"""
GROWING_SECONDS = 24 * 3600
"""How long a tape is taken for growing of which nothing more was heard."""
_H = 16  # characters of the hash of a line of the journal


class TapeCursor(NamedTuple):
    """What a remote has of one tape, as far as this store knows."""

    seq: int = 0
    """The number of its newest chunk that is here; 0 for none."""
    sizes: Mapping[str, int] = {}
    """Bytes of each phase that the chunks hold."""
    journal: tuple[str, ...] = ()
    """The hashes `h` of the lines of its journal, in the order of the chunks."""


class Cursor:
    """The cursor of one remote, held by one process at a time. A context manager."""

    def __init__(self, database: sqlite3.Connection, lock: Lock) -> None:
        self._db, self._lock = database, lock

    @classmethod
    def open(cls, store: Path, remote: str, *, wait: float = 0) -> Self:
        """Open the cursor of the remote of this name; raise Busy while another process has it."""
        with Folder.open(store) as home, home.make(REMOTES_NAME) as folder:
            lock = Lock.take_in(folder, remote, wait=wait)
        try:
            return cls(_open_database(locate_cursor(store, remote)), lock)
        except BaseException:
            lock.close()
            raise

    def read_tape(self, tape: str) -> TapeCursor:
        """Return what is known of a tape."""
        row = self._ask("SELECT seq, sizes, journal FROM tapes WHERE tape = ?", (tape,)).fetchone()
        if row is None:
            return TapeCursor()
        seq, sizes, journal = row
        hashes = tuple(journal[at : at + _H] for at in range(0, len(journal), _H))
        return TapeCursor(seq, msgspec.json.decode(sizes, type=dict[str, int]), hashes)

    def save_tape(self, tape: str, known: TapeCursor, stamps: str | None = None) -> None:
        """Save what is known of a tape; `stamps` are those of its files, if all of it is pushed."""
        sizes = msgspec.json.encode(known.sizes).decode()
        self._ask(
            "INSERT INTO tapes (tape, seq, sizes, journal, stamps) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (tape) DO UPDATE SET seq = excluded.seq, sizes = excluded.sizes, "
            "journal = excluded.journal, stamps = excluded.stamps",
            (tape, known.seq, sizes, "".join(known.journal), stamps),
        )

    def read_stamps(self, tapes: Sequence[str]) -> dict[str, str]:
        """Return the stamps of those of these tapes of which all was pushed."""
        query = (
            "SELECT tape, stamps FROM tapes WHERE stamps IS NOT NULL "
            "AND tape IN (SELECT value FROM json_each(?))"
        )
        return dict(self._ask(query, (msgspec.json.encode(tapes).decode(),)).fetchall())

    def read_digests(self) -> dict[int, bytes]:
        """Return the digests of groups of tapes of which all was pushed (`changed`)."""
        return dict(self._ask("SELECT bucket, digest FROM digests").fetchall())

    def save_digests(self, digests: Mapping[int, bytes]) -> None:
        """Save the digests of groups of which all was pushed, and delete all others."""
        with self.transaction():
            self._ask("DELETE FROM digests")
            for item in digests.items():
                self._ask("INSERT INTO digests VALUES (?, ?)", item)

    def want(self, tape: str, seq: int) -> None:
        """Record that a chunk of this number is at the remote; kept until it is here."""
        self._ask(
            "INSERT INTO tapes (tape, seq, sizes, journal, wanted) VALUES (?, 0, '{}', '', ?) "
            "ON CONFLICT (tape) DO UPDATE SET wanted = max(wanted, excluded.wanted)",
            (tape, seq),
        )

    def list_wanted(self) -> dict[str, int]:
        """Return the tapes with chunks that are not here, and the number of the newest of them."""
        return dict(self._ask("SELECT tape, wanted FROM tapes WHERE wanted > seq").fetchall())

    def read_waiting(self) -> dict[str, float]:
        """Return the tapes that wait for a push (`behind`), and when each was written last."""
        return dict(self._ask("SELECT tape, last FROM waiting").fetchall())

    def end_waiting(self, tape: str, last: float) -> None:
        """Record that a tape was pushed, as it was written until then."""
        self._ask("DELETE FROM waiting WHERE tape = ? AND last <= ?", (tape, last))

    def save_complaint(self, tape: str, complaint: str) -> None:
        """Record why a tape that waits was not pushed."""
        self._ask("UPDATE waiting SET complaint = ? WHERE tape = ?", (complaint, tape))

    def list_events(self) -> list[tuple[int, str]]:
        """Return the events that the remote does not have yet (`audit`), each with its number."""
        return self._ask("SELECT number, event FROM events ORDER BY number").fetchall()

    def end_event(self, number: int) -> None:
        """Record that an event is at the remote."""
        self._ask("DELETE FROM events WHERE number = ?", (number,))

    def request_erasure(self, tape: str) -> None:
        """Record that redacted data of a tape has to be erased at the remote."""
        self._ask("INSERT OR IGNORE INTO erasures (tape) VALUES (?)", (tape,))

    def list_erasures(self) -> list[str]:
        """Return the tapes with data to erase at the remote."""
        return [tape for (tape,) in self._ask("SELECT tape FROM erasures ORDER BY tape")]

    def end_erasure(self, tape: str) -> None:
        """Record that the redacted data of a tape is erased."""
        self._ask("DELETE FROM erasures WHERE tape = ?", (tape,))

    def save_gone(self, tape: str) -> None:
        """Record that a tape was taken from the remote: it is not pushed again."""
        self._ask("INSERT OR IGNORE INTO gone (tape) VALUES (?)", (tape,))

    def read_gone(self) -> set[str]:
        """Return the tapes that were taken from the remote."""
        return {tape for (tape,) in self._ask("SELECT tape FROM gone")}

    def save_unlogged(self, tape: str) -> None:
        """Record that the push log may not name the newest chunk of a tape."""
        self._ask("INSERT OR IGNORE INTO unlogged (tape) VALUES (?)", (tape,))

    def list_unlogged(self) -> list[str]:
        """Return the tapes of which the push log may not name the newest chunk."""
        return [tape for (tape,) in self._ask("SELECT tape FROM unlogged ORDER BY tape")]

    def end_unlogged(self, tape: str) -> None:
        """Record that the push log names the newest chunk of a tape."""
        self._ask("DELETE FROM unlogged WHERE tape = ?", (tape,))

    def save_shared(self, tape: str) -> None:
        """Record that another copy of the store pushed a tape as well."""
        self._ask("INSERT OR IGNORE INTO shared (tape) VALUES (?)", (tape,))

    def save_growing(self, tape: str, *, grows: bool, now: float) -> None:
        """Record whether a writer publishes a tape as it writes; `now` is in seconds since 1970."""
        if grows:
            self._ask("INSERT OR REPLACE INTO growing VALUES (?, ?)", (tape, now))
        else:
            self._ask("DELETE FROM growing WHERE tape = ?", (tape,))

    def list_growing(self, now: float) -> list[str]:
        """Return the tapes that grow, but for those of which nothing was heard for a day."""
        query = "SELECT tape FROM growing WHERE since > ? ORDER BY tape"
        return [tape for (tape,) in self._ask(query, (now - GROWING_SECONDS,))]

    def forget(self, tape: str) -> None:
        """Delete what is known of a tape."""
        self._ask("DELETE FROM tapes WHERE tape = ?", (tape,))

    def read_log_number(self, name: str) -> int:
        """Return a number of the push log: `read` up to there, or `end`, the newest known; 0.

        `time` is when a line was written from here last, in µs since 1970.
        """
        row = self._ask("SELECT number FROM log WHERE name = ?", (name,)).fetchone()
        return row[0] if row else 0

    def save_log_number(self, name: str, number: int) -> None:
        """Save a number of the push log."""
        self._ask(
            "INSERT INTO log (name, number) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET number = excluded.number",
            (name, number),
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Save all that the block saves, or nothing."""
        self._ask("BEGIN IMMEDIATE")
        try:
            yield
            self._ask("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk ends it
                self._ask("ROLLBACK")
            raise

    def _ask(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except sqlite3.Error as error:
            what = "what is known of a remote cannot be read or written"
            raise WriteFailed(f"{what}: {error}") from error

    def close(self) -> None:
        """Close the file and release it for other processes; closing twice is allowed."""
        self._db.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def locate_cursor(store: Path, remote: str) -> Path:
    """Return the path of the file of a cursor."""
    return store / REMOTES_NAME / f"{remote}.db"


def is_at_remote(store: Path, remote: str, tape: str, *, is_shared: bool = False) -> bool:
    """Return whether chunks of a tape are at a remote, as far as its cursor knows.

    With `is_shared` whether another copy of the store pushed some of them.
    """
    path = locate_cursor(store, remote)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            query = "SELECT 1 FROM tapes WHERE tape = ? AND seq > 0"
            if is_shared:
                query = "SELECT 1 FROM shared WHERE tape = ?"
            return database.execute(query, (tape,)).fetchone() is not None
    except sqlite3.Error:
        return False


def _open_database(path: Path) -> sqlite3.Connection:
    """Open the file of a cursor; one that cannot be read is renamed, as it is only derived."""
    for is_last in (False, True):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            database = sqlite3.connect(path, isolation_level=None)
            database.execute("PRAGMA synchronous = NORMAL")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version > _VERSION:
                raise sqlite3.DatabaseError(f"it has version {version}")
            database.executescript(f"BEGIN; {_SCHEMA} COMMIT")
            if version < _VERSION:
                database.execute(f"PRAGMA user_version = {_VERSION}")
        except (OSError, sqlite3.Error) as error:
            # A full disk, or a busy file, is no damage: what has to be erased is in it.
            if is_last or isinstance(error, OSError | sqlite3.OperationalError):
                raise WriteFailed(f"{path} cannot be written: {error}") from error
            path.replace(path.with_suffix(".damaged"))
        else:
            return database
    raise AssertionError
