"""Which tapes may know a file: told by the index, or else all of them.

The index is asked for every tape that a call on it may name the file, in a path or in a command;
what such a call really did is read from the tape itself.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from ..glance.words import space_cjk

if TYPE_CHECKING:
    from ..index import Index
    from ..store import Store

_TOUCHED_QUERY = """
    SELECT DISTINCT CAST(t.folder AS BLOB) FROM entries e
    JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape
    WHERE e.key IN (
        SELECT f.entry FROM files f
        WHERE f.path = :name OR substr(f.path, -length(:name) - 1) = '/' || :name
        UNION SELECT rowid FROM text WHERE text MATCH :named
    ) ORDER BY 1
"""


def find_candidate_folders(store: Store, index: Index | None, name: str) -> list[str]:
    """Return the folders of the tapes whose calls may have touched a file called `name`."""
    if index is not None and any(map(str.isalnum, name)):  # else it has no words to look for
        with suppress(OSError, sqlite3.Error):  # no index, or one behind: the files say the same
            return index.answer(lambda db: _query_touched_folders(db, name))
    return store.folders()


def _query_touched_folders(db: sqlite3.Connection, name: str) -> list[str]:
    quoted = space_cjk(name).replace('"', '""')
    told = {"name": name, "named": f'called : "{quoted}"'}
    return [os.fsdecode(folder) for (folder,) in db.execute(_TOUCHED_QUERY, told)]
