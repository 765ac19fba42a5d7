"""Words of entries that went, taken out of the full-text index without knowing the entries.

A contentless FTS5 table forgets a row only when it is told the row's text again. That text may be
gone, so it is put together from the words and places that the index itself holds.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from .database import write_transaction

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

_ERASE_BATCH = 500
"""Rows taken out in one transaction: others wait that long."""


def erase_removed_words(db: Connection) -> None:
    """Take the words of all entries in `removed` out; reads the whole full-text index if any are.

    The reading locks nobody out. Raises sqlite3.Error.
    """
    if db.execute("SELECT 1 FROM removed LIMIT 1").fetchone() is None:
        return
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, text, instance)"
    )
    db.execute(
        "CREATE TABLE temp.going (doc, col, place, term, PRIMARY KEY (doc, col, place)) "
        "WITHOUT ROWID"
    )
    try:
        db.execute(
            "INSERT INTO temp.going SELECT doc, col, offset, term FROM temp.words "
            "WHERE doc IN (SELECT key FROM main.removed)"
        )
        while _erase_batch(db):
            pass
    finally:
        db.execute("DROP TABLE temp.going")


def _erase_batch(db: Connection) -> bool:
    """Take some out that nobody else did meanwhile; tell whether there were any."""
    with write_transaction(db):
        keys = [key for (key,) in db.execute("SELECT key FROM removed LIMIT ?", (_ERASE_BATCH,))]
        db.executemany(
            "INSERT INTO text (text, rowid, said, called, answered) VALUES ('delete', ?, ?, ?, ?)",
            [(key, *_collect_words_by_column(db, key)) for key in keys],
        )
        db.executemany("DELETE FROM removed WHERE key = ?", [(key,) for key in keys])
    return bool(keys)


def _collect_words_by_column(db: Connection, key: int) -> tuple[str, str, str]:
    found = db.execute("SELECT col, term FROM temp.going WHERE doc = ? ORDER BY col, place", (key,))
    words = {column: _join_terms(rows) for column, rows in groupby(found, key=lambda row: row[0])}
    return words.get("said", ""), words.get("called", ""), words.get("answered", "")


def _join_terms(rows: Iterable[tuple[str, str]]) -> str:
    return " ".join(term for _, term in rows)


def scrub_index(db: Connection) -> None:
    """Leave nothing in the file of words that were erased: neither their rows nor their marks."""
    db.execute("PRAGMA temp_store = MEMORY")  # not on a disk, however short
    erase_removed_words(db)
    db.execute("INSERT INTO text (text) VALUES ('optimize')")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
