"""What callers ask of an index that has caught up: one statement per function, nothing written.

Ids are stored as bytes. Entries are found by the first four bytes of theirs, as the SQL index on
them is small then: a query names both these and the whole id. Folder names are passed as bytes,
because they need not be Unicode.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ..store.phase import ORIGIN
from .reader import TAPE_COLUMNS, TapeRow, compute_id_range, to_tape_row

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection


class EntryLocation(NamedTuple):
    """The place of an entry."""

    folder: str
    """Name of its tape's folder."""
    tape: str
    phase: str
    branch: str | None
    """The branch its phase was written on."""
    offset: int
    entry: str


def select_rows_of(tapes: Iterable[str], db: Connection) -> list[TapeRow]:
    """Return the rows of some tapes, given by their ids, newest first."""
    query = f"SELECT {TAPE_COLUMNS} FROM tapes WHERE folder <> '' AND id = ?"
    values = (db.execute(query, (bytes.fromhex(tape),)).fetchone() for tape in tapes)
    rows = [to_tape_row(*row) for row in values if row is not None]
    return sorted(rows, key=lambda row: (row.updated, row.id), reverse=True)


def select_writing_tapes(db: Connection) -> list[TapeRow]:
    """Return the tapes that a program writes, newest first."""
    writing = [tape.hex() for (tape,) in db.execute("SELECT DISTINCT tape FROM writers")]
    return select_rows_of(writing, db)


def select_tape_rows(
    db: Connection,
    cwd: str | None,
    limit: int | None,
    project: str | None = None,
    root: str | None = None,
) -> list[TapeRow]:
    """Return tapes newest first; those of a project are in it or at its top.

    Those of a `root` are in that project, or in that folder and in no project.
    """
    where = ""
    if cwd is not None:
        where = "AND cwd = :cwd "
    if project is not None:  # by id, so that each place is found by the index on it
        where += (
            "AND id IN (SELECT id FROM tapes WHERE project = :project "
            "UNION SELECT id FROM tapes WHERE cwd = :project) "
        )
    if root is not None:
        where += f"AND {_ROOT} = :root "
    rows = db.execute(
        f"SELECT {TAPE_COLUMNS} FROM tapes WHERE folder <> '' {where}"
        "ORDER BY updated DESC, id DESC LIMIT :limit",
        {
            "cwd": cwd,
            "project": project,
            "root": root,
            "limit": -1 if limit is None else limit,
        },
    )
    return [to_tape_row(*values) for values in rows]


_ROOT = "coalesce(project, cwd)"
_FIRST_ROOT = f"SELECT {_ROOT} FROM tapes WHERE {_ROOT} > '' AND folder <> '' ORDER BY 1 LIMIT 1"
_NEXT_ROOT = f"SELECT {_ROOT} FROM tapes WHERE {_ROOT} > root AND folder <> '' ORDER BY 1 LIMIT 1"


def select_roots(db: Connection) -> list[str]:
    """Return the project of each tape, or else its folder, each once: one step of an index each."""
    rows = db.execute(
        f"WITH RECURSIVE roots (root) AS (SELECT ({_FIRST_ROOT}) "
        f"UNION ALL SELECT ({_NEXT_ROOT}) FROM roots WHERE root IS NOT NULL) "
        "SELECT root FROM roots WHERE root IS NOT NULL"
    )
    return [root for (root,) in rows]


def select_folders(db: Connection, prefix: str) -> list[str]:
    """Return the folders of tapes whose id begins with `prefix`."""
    rows = db.execute(
        "SELECT CAST(folder AS BLOB) FROM tapes WHERE id BETWEEN ? AND ? AND folder <> ''",
        compute_id_range(prefix, 32),
    )
    return [os.fsdecode(folder) for (folder,) in rows]


def select_entries(db: Connection, prefix: str, tape: str | None = None) -> list[EntryLocation]:
    """Return where entries stand whose id begins with `prefix`, in one tape or all; copies last."""
    low, high = compute_id_range(prefix, 40)
    rows = db.execute(
        'SELECT CAST(t.folder AS BLOB), lower(hex(t.id)), p.name, p.branch, e."offset", '
        "lower(hex(e.id)) FROM entries e JOIN phases p ON p.key = e.phase "
        "JOIN tapes t ON t.id = p.tape WHERE substr(e.id, 1, 4) BETWEEN ? AND ? "
        "AND e.id BETWEEN ? AND ? AND t.folder <> '' AND (?5 IS NULL OR t.id = ?5) "
        'ORDER BY p.name = ?6, t.folder, p.name, e."offset"',
        (low[:4], high[:4], low, high, tape and bytes.fromhex(tape), ORIGIN),
    )
    return [EntryLocation(os.fsdecode(folder), *rest) for folder, *rest in rows]


def select_labelled(db: Connection, name: str) -> list[tuple[str, str]]:
    """Return folder and entry of each label of this name."""
    rows = db.execute(
        "SELECT CAST(t.folder AS BLOB), lower(hex(l.entry)) FROM labels l "
        "JOIN tapes t ON t.id = l.tape WHERE l.name = ? AND t.folder <> '' ORDER BY t.folder",
        (name,),
    )
    return [(os.fsdecode(folder), entry) for folder, entry in rows]


def select_children(db: Connection, tapes: Iterable[str]) -> list[str]:
    """Return the folders of the tapes that were forked from one of these."""
    rows = (
        row
        for tape in tapes
        for row in db.execute(
            "SELECT CAST(folder AS BLOB) FROM tapes WHERE origin = ? AND folder <> ''",
            (bytes.fromhex(tape),),
        )
    )
    return [os.fsdecode(folder) for (folder,) in rows]


def select_tapes_mtime(db: Connection) -> int | None:
    """Return the modification time of `tapes/`, in ns, up to which all tapes are known."""
    row = db.execute("SELECT value FROM meta WHERE key = 'tapes_mtime_ns'").fetchone()
    return row and int(row[0])


def count_tapes(db: Connection) -> int:
    """Return how many tapes are known."""
    (count,) = db.execute("SELECT count(*) FROM tapes WHERE folder <> ''").fetchone()
    return int(count)
