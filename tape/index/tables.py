"""The tables of index.db, read and written: values in, values out, one statement a function.

Ids are kept binary. Folder names pass as bytes, because they need not be Unicode.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import astuple

from .tally import Record, Tally, TapeRow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

_ROW = (
    "lower(hex(id)), CAST(folder AS BLOB), title, cwd, project, created, updated, model, entries, "
    "branches, cost"
)
_TALLY = (
    'name, "offset", lower(hex(last)), entries, time, model, answered, cost, cwd, moved, project, '
    "prompt"
)


class Location(NamedTuple):
    """Where a tape is: the name of its folder, and that folder's inode, 0 when not looked up."""

    folder: str
    inode: int


class Open(NamedTuple):
    """One who may be writing: the tape, the process, and which index in that process says so."""

    tape: str
    pid: int
    serial: int


def listed(db: Connection, cwd: str | None, limit: int | None) -> list[TapeRow]:
    """Return tapes newest first."""
    found = db.execute(
        f"SELECT {_ROW} FROM tapes WHERE ?1 IS NULL OR cwd = ?1 "  # noqa: S608 (our own names)
        "ORDER BY updated DESC, id DESC LIMIT ?2",
        (cwd, -1 if limit is None else limit),
    )
    return [_row(*values) for values in found]


def _row(identity: str, folder: bytes, *rest: object) -> TapeRow:
    return TapeRow(identity, os.fsdecode(folder), *rest)  # type: ignore[arg-type]  # STRICT table


def named(db: Connection, prefix: str) -> list[str]:
    """Return the folders of tapes whose id begins with `prefix`."""
    ends = bytes.fromhex(prefix.ljust(32, "0")), bytes.fromhex(prefix.ljust(32, "f"))
    found = db.execute("SELECT CAST(folder AS BLOB) FROM tapes WHERE id BETWEEN ? AND ?", ends)
    return [os.fsdecode(folder) for (folder,) in found]


def locations(db: Connection) -> dict[str, Location]:
    """Return where each tape was seen last."""
    found = db.execute("SELECT lower(hex(id)), CAST(folder AS BLOB), inode FROM tapes")
    return {tape: Location(os.fsdecode(folder), inode) for tape, folder, inode in found}


def location(db: Connection, tape: str) -> Location | None:
    """Return where a tape was seen last."""
    found = db.execute(
        "SELECT CAST(folder AS BLOB), inode FROM tapes WHERE id = ?", (bytes.fromhex(tape),)
    ).fetchone()
    return found and Location(os.fsdecode(found[0]), found[1])


def record(db: Connection, tape: str) -> Record | None:
    """Return what is known of a tape."""
    key = (bytes.fromhex(tape),)
    row = db.execute(f"SELECT {_ROW} FROM tapes WHERE id = ?", key).fetchone()  # noqa: S608 (ours)
    found = db.execute(f"SELECT {_TALLY} FROM phases WHERE tape = ?", key)  # noqa: S608 (ours)
    phases = {name: Tally(*values) for name, *values in found}
    return row and Record(_row(*row), phases)


def keep(db: Connection, new: Record, old: Record | None) -> None:
    """Put a record in the place of the old one; phases that stayed as they were are not touched."""
    key, before = bytes.fromhex(new.row.id), old.phases if old else {}
    if old is None:
        db.execute(
            "INSERT INTO tapes (id, folder, inode, cwd, created, updated, entries, branches) "
            "VALUES (?, '', 0, '', '', '', 0, 0)",
            (key,),
        )
    db.execute(
        "UPDATE tapes SET (title, cwd, project, created, updated, model, entries, branches, cost) "
        "= (?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?",
        (*astuple(new.row)[2:], key),
    )
    db.executemany(
        "DELETE FROM phases WHERE tape = ? AND name = ?",
        [(key, name) for name in before.keys() - new.phases.keys()],
    )
    changed = [(name, tally) for name, tally in new.phases.items() if tally != before.get(name)]
    db.executemany(
        'INSERT OR REPLACE INTO phases (tape, name, "offset", last, entries, time, model, '
        "answered, cost, cwd, moved, project, prompt) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(key, name, *_values(tally)) for name, tally in changed],
    )


def settle(db: Connection, tape: str, where: Location) -> None:
    """Note where a tape is now."""
    db.execute(
        "UPDATE tapes SET folder = CAST(? AS TEXT), inode = ? WHERE id = ?",
        (os.fsencode(where.folder), where.inode, bytes.fromhex(tape)),
    )


def _values(tally: Tally) -> tuple[object, ...]:
    offset, last, *rest = astuple(tally)
    return offset, bytes.fromhex(last), *rest


def forget(db: Connection, tape: str, folder: str) -> None:
    """Leave a tape out, unless it was seen in another folder meanwhile."""
    key = bytes.fromhex(tape)
    where = "id = ? AND folder = CAST(? AS TEXT)"
    if db.execute(f"DELETE FROM tapes WHERE {where}", (key, os.fsencode(folder))).rowcount:  # noqa: S608 (ours)
        db.execute("DELETE FROM phases WHERE tape = ?", (key,))


def writers(db: Connection) -> list[Open]:
    """Return all who entered and did not leave."""
    return [Open(*row) for row in db.execute("SELECT lower(hex(tape)), pid, serial FROM writers")]


def enter(db: Connection, rows: Iterable[Open]) -> None:
    """Note that these may be writing."""
    keys = [(bytes.fromhex(row.tape), row.pid, row.serial) for row in rows]
    db.executemany("INSERT OR IGNORE INTO writers VALUES (?, ?, ?)", keys)


def leave(db: Connection, rows: Iterable[Open]) -> None:
    """Note that these no longer write."""
    keys = [(bytes.fromhex(row.tape), row.pid, row.serial) for row in rows]
    db.executemany("DELETE FROM writers WHERE tape = ? AND pid = ? AND serial = ?", keys)


def seen(db: Connection) -> int | None:
    """Return the modification time of `tapes/`, in ns, up to which all came and went."""
    found = db.execute("SELECT value FROM meta WHERE key = 'tapes_mtime_ns'").fetchone()
    return found and int(found[0])


def see(db: Connection, mtime_ns: int) -> None:
    """Keep that time."""
    db.execute("INSERT OR REPLACE INTO meta VALUES ('tapes_mtime_ns', ?)", (mtime_ns,))
