"""The tables of single entries: runs of lines put in and taken out, in the caller's transaction.

Invariant: a key of `entries` is never given twice while its words stand in `text`. The words of a
line that went can only be taken out when they are known again, so its key waits in `removed`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from ..clock import parse_timestamp
from ..glance.words import space_cjk
from .contents import NO_CONTENTS
from .tally import TALLY_COLUMNS
from .touched import resolve_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from sqlite3 import Connection

    from .reading import IndexedLine, LineRun

_DEFAULT_HASHSIZE, _BULK_HASHSIZE = 1 << 20, 1 << 23
"""Bytes of words that a connection keeps before it writes them: SQLite's default, and for many."""
_DEFAULT_AUTOMERGE, _BULK_AUTOMERGE = 4, 16
"""Parts of the full-text index that are merged at once: SQLite's default, and for many lines."""
_MAX_INTEGER = (1 << 63) - 1
"""The highest number that fits into a column; what other programs write may be higher."""


def insert_run(
    db: Connection, tape: str, run: LineRun, key: int | None, known: AbstractSet[str]
) -> bool:
    """Put a run of lines in; `key` is its phase's, None for a new one, `known` was redacted before.

    Tells whether that was all: if not, the run redacts what had been read, and all of the tape was
    taken out, to be read anew.
    """
    whose = bytes.fromhex(tape)
    named = {target for line in run.lines for target in line.told.targets} - known
    if named:
        db.executemany(
            "INSERT INTO redactions VALUES (?, ?)",
            [(whose, bytes.fromhex(target)) for target in sorted(named)],
        )
    gone = known | named
    if any(line.told != NO_CONTENTS and line.header.id in gone for line in run.lines) or any(
        _has_indexed_data(db, tape, target) for target in named
    ):
        reset_tape(db, tape)
        return False
    if run.is_anew and known:  # what redacted the rest may have stood in it
        reset_tape(db, tape)
        db.execute("DELETE FROM redactions WHERE tape = ?", (whose,))
        return False
    if run.is_anew and key is not None:
        delete_lines(db, "key = ?", key)
    _insert_lines(db, run.lines, _save_phase(db, tape, run, key))
    return True


def _has_indexed_data(db: Connection, tape: str, entry: str) -> bool:
    """Tell whether the index holds anything that only the data of an entry says."""
    found = db.execute(
        "SELECT 1 FROM entries e JOIN phases p ON p.key = e.phase AND p.tape = ?1 "
        "JOIN types k ON k.key = e.type "
        "WHERE substr(e.id, 1, 4) = substr(?2, 1, 4) AND e.id = ?2 AND (k.name = 'meta' "
        "OR EXISTS (SELECT 1 FROM text_docsize d WHERE d.id = e.key) "
        "OR EXISTS (SELECT 1 FROM usage u WHERE u.entry = e.key) "
        "OR EXISTS (SELECT 1 FROM calls c WHERE c.entry = e.key))",
        (bytes.fromhex(tape), bytes.fromhex(entry)),
    )
    return found.fetchone() is not None


def _save_phase(db: Connection, tape: str, run: LineRun, key: int | None) -> int:
    """Write how far a phase was read and return its key."""
    branch, offset, last, *rest = astuple(run.after)
    values = (branch, offset, bytes.fromhex(last), *rest)
    marks = ", ".join("?" * len(values))
    if key is not None:
        db.execute(f"UPDATE phases SET ({TALLY_COLUMNS}) = ({marks}) WHERE key = ?", (*values, key))  # noqa: S608 (ours)
        return key
    made = db.execute(
        f"INSERT INTO phases (tape, name, {TALLY_COLUMNS}) VALUES (?, ?, {marks})",  # noqa: S608 (ours)
        (bytes.fromhex(tape), run.phase, *values),
    ).lastrowid
    assert made is not None
    return made


def _insert_lines(db: Connection, lines: Sequence[IndexedLine], phase: int) -> None:
    (highest,) = db.execute(
        "SELECT max((SELECT coalesce(max(key), 0) FROM entries), "
        "(SELECT coalesce(max(key), 0) FROM removed))"
    ).fetchone()
    keyed = list(enumerate(lines, highest + 1))
    types = _ensure_types(db, {line.header.type for line in lines})
    db.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                key,
                bytes.fromhex(head.id),
                phase,
                offset,
                length,
                min(head.n, _MAX_INTEGER),
                parse_timestamp(head.time),
                types[head.type],
            )
            for key, (offset, length, head, _, _) in keyed
        ],
    )
    db.executemany(
        "INSERT INTO text (rowid, said, called, answered) VALUES (?, ?, ?, ?)",
        [(key, *map(space_cjk, line.told.words)) for key, line in keyed if line.told.words],
    )
    db.executemany(
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(key, *line.told.spent) for key, line in keyed if line.told.spent],
    )
    db.executemany(
        "INSERT INTO calls VALUES (?, ?, ?, ?)",
        [(key, *line.told.done) for key, line in keyed if line.told.done],
    )
    db.executemany(
        "INSERT INTO files VALUES (?, ?, ?, ?)",
        [
            (key, place.call, resolve_path(place.path, line.cwd), place.op)
            for key, line in keyed
            for place in line.told.touched
        ],
    )


def _ensure_types(db: Connection, names: set[str]) -> dict[str, int]:
    """Return the number of each entry type, given to it when it is seen first."""
    found: dict[str, int] = dict(db.execute("SELECT name, key FROM types"))
    for name in sorted(names - found.keys()):
        found[name] = db.execute("INSERT INTO types (name) VALUES (?)", (name,)).lastrowid or 0
    return found


def reset_tape(db: Connection, tape: str) -> None:
    """Forget what was read of a tape, so that it is read anew."""
    delete_lines(db, "tape = ?", bytes.fromhex(tape))
    db.execute("DELETE FROM phases WHERE tape = ?", (bytes.fromhex(tape),))


def delete_lines(db: Connection, where: str, *values: object) -> None:
    """Take out the lines of the phases that `where` describes; the phases themselves stay."""
    lines = f"SELECT key FROM entries WHERE phase IN (SELECT key FROM phases WHERE {where})"  # noqa: S608 (ours)
    db.execute(
        f"INSERT INTO removed SELECT key FROM ({lines}) WHERE key IN (SELECT id FROM text_docsize)",  # noqa: S608 (ours)
        values,
    )
    for table in ("usage", "calls", "files"):
        db.execute(f"DELETE FROM {table} WHERE entry IN ({lines})", values)  # noqa: S608 (ours)
    db.execute(f"DELETE FROM entries WHERE key IN ({lines})", values)  # noqa: S608 (ours)


@contextmanager
def load_bulk(db: Connection) -> Iterator[None]:
    """Let many lines into a file that nobody else uses, and that is of no use until it is whole.

    There is no journal, words are kept longer before they are written, and ids put in order after.
    """
    (index,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries_id'").fetchone()
    db.execute("DROP INDEX entries_id")
    _set_fts_options(db, hashsize=_BULK_HASHSIZE, automerge=_BULK_AUTOMERGE)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA journal_mode = OFF")
    yield
    db.execute(index)
    _set_fts_options(db, hashsize=_DEFAULT_HASHSIZE, automerge=_DEFAULT_AUTOMERGE)
    db.execute("INSERT INTO text (text) VALUES ('optimize')")
    db.execute("PRAGMA journal_mode = WAL")


def _set_fts_options(db: Connection, **options: int) -> None:
    db.executemany("INSERT INTO text (text, rank) VALUES (?, ?)", options.items())
