"""The databases in which other agents keep their sessions: opened, listed and read.

How a session in one becomes lines is in the reader of its agent, as `DATABASE`. A database is
opened for reading only, also while its agent writes.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import msgspec

from ..errors import NotFound, UsageError
from ..formats.sessions.database import has_table
from ..formats.sessions.loading import load_databases

if TYPE_CHECKING:
    from pathlib import Path

_MAX_VALUE_BYTES = 64 * 1024 * 1024
"""Of one value in a database: a message with its pictures is far below that."""
_DAMAGE = (sqlite3.Error, UnicodeError, msgspec.MsgspecError, LookupError, TypeError)
"""What a damaged database raises, or one whose tables are not those that are known."""


def find_database_tool(file: Path) -> str | None:
    """Return the agent whose database a file is; None if it is none that is known, or damaged."""
    try:
        with closing(_open_database(file)) as database:
            for tool, kind in load_databases().items():
                columns = database.execute(f"PRAGMA table_info({kind.table})").fetchall()
                if kind.column in {column[1] for column in columns}:
                    return tool
    except _DAMAGE:
        return None
    return None


def list_database_sessions(file: Path, tool: str) -> list[tuple[str, str]] | None:
    """Return id and version of the sessions in a database, by id; None if it is damaged.

    A version changes when the session does; "" is unknown.
    """
    kind = load_databases()[tool]
    if kind.has_one:
        return [(file.absolute().parent.name, "")]
    for version in (kind.version, "''"):
        with suppress(*_DAMAGE), closing(_open_database(file)) as database:
            tables = [
                table for table in (kind.table, kind.also) if table and has_table(database, table)
            ]
            query = " UNION ".join(f"SELECT s.id, {version} FROM {table} s" for table in tables)  # noqa: S608
            rows = database.execute(f"{query} ORDER BY 1")
            return [(str(row), str(changed or "")) for row, changed in rows]
    return None


def read_database_session(file: Path, tool: str, session: str) -> list[bytes]:
    """Return the lines of a session in a database. Raises NotFound, UsageError."""
    try:
        with closing(_open_database(file)) as database:
            lines = load_databases()[tool].read(database, session, file)
    except _DAMAGE as error:
        is_refused = str(error) == "not authorized" or "prohibited" in str(error)
        why = "it has a view in place of a table" if is_refused else str(error)
        raise UsageError(f"the database {file} cannot be read: {why}") from error
    if lines is None:
        raise NotFound(f"no session {session!r} in {file}")
    return lines


def _open_database(file: Path) -> sqlite3.Connection:
    """Open a database for reading. A file of a stranger is read, and not asked to compute.

    A view may have no end, and a value may be larger than the memory: both are refused, as damage.
    """
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    database.text_factory = lambda text: text.decode("utf-8", "replace")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.set_authorizer(_allow_plain_reading)
    return database


def _allow_plain_reading(
    action: int, _first: str | None, _second: str | None, _file: str | None, view: str | None
) -> int:
    is_plain = view is None and action != sqlite3.SQLITE_RECURSIVE
    return sqlite3.SQLITE_OK if is_plain else sqlite3.SQLITE_DENY
