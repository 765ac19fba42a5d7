"""Databases in which agents keep sessions: what a reader says of one, and how it reads rows.

A reader whose agent has a database has its `DATABASE`: where the sessions are, and how one becomes
the lines that its files have. Rows after a damaged page are lost, and count as one damaged line.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..wire import WireObject

DAMAGED_LINE = b"{"
"""A line in place of rows that could not be read: it is counted as damaged."""


class SessionDatabase(NamedTuple):
    """The database of one agent."""

    table: str
    """Table of its sessions, whose `id` names one."""
    column: str
    """A column that tells the table from those of other agents."""
    read: Callable[[sqlite3.Connection, str, Path], list[bytes] | None]
    """Returns the lines of a session in a file; None if it is not there."""
    version: str = "''"
    """What changes when a session `s` is written, in SQL; newer and older tables may lack it."""
    also: str = ""
    """Another table of sessions, in newer versions."""
    has_one: bool = False
    """Whether a database is one session, named by its folder."""


def select_objects(
    database: sqlite3.Connection, query: str, *values: object
) -> tuple[list[WireObject], bool]:
    """Return the rows as objects, and whether all could be read."""
    rows: list[WireObject] = []
    cursor = database.execute(query, values)
    names = [column[0] for column in cursor.description]
    try:
        rows.extend(dict(zip(names, row, strict=True)) for row in cursor)
    except sqlite3.OperationalError:  # such as a lock: another time all can be read
        raise
    except sqlite3.DatabaseError:
        return rows, False
    return rows, True


def read_session_row(database: sqlite3.Connection, table: str, session: str) -> WireObject | None:
    """Return the row of a session; None if it is not there."""
    query = f"SELECT * FROM {table} WHERE id = ?"  # noqa: S608
    rows, _ = select_objects(database, query, session)
    return rows[0] if rows else None


def has_table(database: sqlite3.Connection, table: str) -> bool:
    """Return whether a database has a table of this name."""
    return bool(database.execute(f"PRAGMA table_info({table})").fetchall())


def decode_column(data: Any) -> dict[str, Any]:
    """Return the object that is JSON in a column; what is damaged as an object that says so."""
    try:
        value = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except msgspec.DecodeError:
        return {"type": "damaged", "text": str(data)}
    return value if isinstance(value, dict) else {}
