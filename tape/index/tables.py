"""Reading and writing the tables of index.db: values in, values out, one statement per function.

Ids are stored as bytes. Entries are found by the first four bytes of theirs, as the SQL index on
them is small then: a query names both these and the whole id. Folder names are passed as bytes,
because they need not be Unicode.

What is stored of one tape itself, and written when it is read, is in `tape_record`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from .writer_log import ActiveWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from sqlite3 import Connection


class TapeLocation(NamedTuple):
    """Where a tape is: the name of its folder, and that folder's inode, 0 if not looked up."""

    folder: str
    inode: int


def select_locations(db: Connection) -> dict[str, TapeLocation]:
    """Return where each tape was seen last."""
    rows = db.execute("SELECT lower(hex(id)), CAST(folder AS BLOB), inode FROM tapes")
    return {tape: TapeLocation(os.fsdecode(folder), inode) for tape, folder, inode in rows}


def select_location(db: Connection, tape: str) -> TapeLocation | None:
    """Return where a tape was seen last."""
    row = db.execute(
        "SELECT CAST(folder AS BLOB), inode FROM tapes WHERE id = ?", (bytes.fromhex(tape),)
    ).fetchone()
    return row and TapeLocation(os.fsdecode(row[0]), row[1])


def update_location(db: Connection, tape: str, where: TapeLocation) -> None:
    """Store the current folder of a tape."""
    db.execute(
        "UPDATE tapes SET folder = CAST(? AS TEXT), inode = ? WHERE id = ?",
        (os.fsencode(where.folder), where.inode, bytes.fromhex(tape)),
    )


def select_writers(db: Connection, schema: str = "main") -> list[ActiveWriter]:
    """Return all writers that entered and did not leave."""
    rows = db.execute(f"SELECT lower(hex(tape)), pid, serial FROM {schema}.writers")
    return [ActiveWriter(*row) for row in rows]


def insert_writers(db: Connection, rows: Iterable[ActiveWriter]) -> None:
    """Add possible writers."""
    keys = [(bytes.fromhex(row.tape), row.pid, row.serial) for row in rows]
    db.executemany("INSERT OR IGNORE INTO writers VALUES (?, ?, ?)", keys)


def delete_writers(db: Connection, rows: Iterable[ActiveWriter]) -> None:
    """Remove writers."""
    keys = [(bytes.fromhex(row.tape), row.pid, row.serial) for row in rows]
    db.executemany("DELETE FROM writers WHERE tape = ? AND pid = ? AND serial = ?", keys)


def save_tapes_mtime(db: Connection, mtime_ns: int | None) -> None:
    """Store that time; with None all folders are compared at the next question."""
    if mtime_ns is None:
        db.execute("DELETE FROM meta WHERE key = 'tapes_mtime_ns'")
    else:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('tapes_mtime_ns', ?)", (mtime_ns,))


def insert_arrival(db: Connection, tape: str, folder: str) -> None:
    """Note the folder that a tape came to, until it is read."""
    db.execute(
        "INSERT OR REPLACE INTO arrivals VALUES (?, ?)", (bytes.fromhex(tape), os.fsencode(folder))
    )


def select_arrival(db: Connection, tape: str) -> str:
    """Return the folder that a tape came to; "" where it is not known."""
    rows = db.execute("SELECT folder FROM arrivals WHERE tape = ?", (bytes.fromhex(tape),))
    row = rows.fetchone()
    return os.fsdecode(row[0]) if row else ""


def select_arrivals(db: Connection) -> set[str]:
    """Return the ids of the tapes that came and are not read yet."""
    return {tape for (tape,) in db.execute("SELECT lower(hex(tape)) FROM arrivals")}


def delete_arrival(db: Connection, tape: str) -> None:
    """Forget where a tape came."""
    db.execute("DELETE FROM arrivals WHERE tape = ?", (bytes.fromhex(tape),))


def select_log_position(db: Connection, schema: str = "main") -> tuple[int, int]:
    """Return the position up to which the log of writers was read; 0, 0 before its first line."""
    values: dict[str, int] = dict(
        db.execute(f"SELECT key, value FROM {schema}.meta WHERE key LIKE 'log_%'")
    )
    return values.get("log_number", 0), values.get("log_offset", 0)


def save_log_position(db: Connection, position: tuple[int, int]) -> None:
    """Store that position."""
    rows = zip(("log_number", "log_offset"), position, strict=True)
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def select_tape_ids(db: Connection) -> list[str]:
    """Return the ids of all known tapes."""
    return [tape for (tape,) in db.execute("SELECT lower(hex(id)) FROM tapes")]


@contextmanager
def attach_index(db: Connection, other: Path) -> Iterator[None]:
    """Attach another index under the name `other`."""
    db.execute("ATTACH ? AS other", (other.absolute().as_uri() + "?mode=ro",))
    try:
        yield
    finally:
        db.execute("DETACH other")


def select_differing_tapes(db: Connection) -> list[str]:
    """Return the tapes of which `other` has facts that this index lacks."""
    parts = (
        ("tapes", "id, title, cwd, updated, model, entries, branches, cost"),
        ("phases", 'tape, name, "offset", last'),
        ("branches", "tape, name, phase, entry, current"),
        ("labels", "tape, name, entry"),
        ("redactions", "tape, entry"),
    )
    differing = " UNION ".join(
        f"SELECT {columns.partition(',')[0]} AS tape FROM "
        f"(SELECT {columns} FROM other.{table} EXCEPT SELECT {columns} FROM main.{table})"
        for table, columns in parts
    )
    return [tape for (tape,) in db.execute(f"SELECT lower(hex(tape)) FROM ({differing})")]
