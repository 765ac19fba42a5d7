"""Which tapes changed since all of them was at a remote, without looking at each that did not.

The index has the stamps of a tape's files (`index.reader`), the cursor those that it had when it
was pushed. Tapes are compared in groups of neighbouring rows: a group of which all was pushed has a
digest in the cursor, and is skipped while it is the same.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from ..index.library import ask_index, list_tapes
from ..index.tape_record import select_joined_stamps, select_last_row, select_stamps_where

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

    from ..index.library import Library
    from .cursor import Cursor

    Stamps = dict[str, str | None]

_GROUP_ROWS = 1_000


def find_changed(
    library: Library, cursor: Cursor, *, group_rows: int = _GROUP_ROWS
) -> dict[str, str | None]:
    """Return the tapes that changed since all of them was pushed, with their stamps.

    The stamps are those of now, or None where they are not known.
    """
    gone = cursor.read_gone()

    def compare(stamps: Stamps) -> Stamps:
        pushed = cursor.read_stamps([*stamps])
        return {
            tape: text
            for tape, text in stamps.items()
            if tape not in gone and (text is None or pushed.get(tape) != text)
        }

    def question(db: Connection) -> Stamps:
        before = cursor.read_digests()
        digests: dict[int, bytes] = {}
        changed: Stamps = {}
        for group in range(select_last_row(db) // group_rows + 1):
            rows = (group * group_rows, (group + 1) * group_rows - 1)
            text = select_joined_stamps(db, *rows)
            digest = None if text is None else blake2b(text.encode(), digest_size=16).digest()
            if digest is not None and digest == before.get(group):
                digests[group] = digest
            elif new := compare(select_stamps_where(db, *rows)):
                changed |= new
            elif digest is not None:
                digests[group] = digest
        if digests != before:
            cursor.save_digests(digests)
        return changed

    def scan() -> Stamps:
        return compare({row.id: None for row in list_tapes(library.store, None)})

    return ask_index(library.index, lambda index: index.answer(question), scan)


def read_stamps(library: Library, tapes: Iterable[str]) -> dict[str, str | None]:
    """Return the stamps of the files of some tapes, None where they are not known."""
    identities = dict.fromkeys(tapes)

    def question(db: Connection) -> Stamps:
        query = "SELECT stamps FROM tapes WHERE id = ?"
        rows = {tape: db.execute(query, (bytes.fromhex(tape),)).fetchone() for tape in identities}
        return {tape: row[0] if row else None for tape, row in rows.items()}

    return ask_index(library.index, lambda index: index.answer(question), lambda: {**identities})
