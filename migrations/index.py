"""The schema of index.db, step by step; `tape.index` applies it to a file that is new or old.

Everything here can be rebuilt from the tapes, so a step may also drop what it does not want.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlite_utils import Database, Migrations

if TYPE_CHECKING:
    from sqlite3 import Connection

steps = Migrations("index")


def apply(connection: Connection) -> None:
    """Take the steps that were not taken yet, in the caller's transaction."""
    steps.apply(Database(connection, execute_plugins=False))


@steps()
def m001_tapes(db: Database) -> None:
    """Make the tables behind `tape ls`."""
    db.table("tapes").create(
        {
            "id": bytes,
            "folder": str,
            "inode": int,
            "title": str,
            "cwd": str,
            "project": str,
            "created": str,
            "updated": str,
            "model": str,
            "entries": int,
            "branches": int,
            "cost": float,
        },
        pk="id",
        not_null={"id", "folder", "inode", "cwd", "created", "updated", "entries", "branches"},
        strict=True,
    )
    db.table("tapes").create_index(["updated", "id"])
    db.table("phases").create(
        {
            "tape": bytes,
            "name": str,
            "offset": int,
            "last": bytes,
            "entries": int,
            "time": str,
            "model": str,
            "answered": str,
            "cost": float,
            "cwd": str,
            "moved": str,
            "project": str,
            "prompt": str,
        },
        pk=("tape", "name"),
        not_null={"tape", "name", "offset", "last", "entries", "time", "answered", "moved"},
        strict=True,
    )
    db.table("writers").create(
        {"tape": bytes, "pid": int, "serial": int}, pk=("tape", "pid", "serial"), strict=True
    )
    db.table("meta").create({"key": str, "value": int}, pk="key", strict=True)
