"""Reading and writing the tables of index.db: values in, values out, one statement per function.

Ids are stored as bytes. Entries are found by the first four bytes of theirs, as the SQL index on
them is small then: a query names both these and the whole id. Folder names are passed as bytes,
because they need not be Unicode.

What lists say of a tape is summed over its phases. A `PhaseTally` holds one phase's part, counted
line by line and continued where it stopped.

Invariant: reading a phase in parts gives the same tally as reading it at once, also to the last bit
of a cost.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from math import fsum
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from msgspec import Struct

from ..ids import is_id_prefix
from ..store.phase import ORIGIN
from ..text import extract_title

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from sqlite3 import Connection

    from ..model.line import Header
    from ..store.refs import Refs
    from .contents import CallUsage, LineContents
from .reader import TAPE_COLUMNS, TapeRow, compute_id_range, to_tape_row
from .writer_log import ActiveWriter

_ENTRY_ID_DIGITS, _TAPE_ID_DIGITS = 40, 32
TALLY_COLUMNS = (
    'branch, "offset", last, n, entries, time, model, answered, cost, home, cwd, moved, '
    "moved_offset, project, prompt, provider, tokens, input_tokens, output_tokens, git_branch, "
    "mode, todos"
)
"""Columns of `phases` that hold a Tally, in its order."""


class PhaseTally(Struct, gc=False):
    """The sums over the lines of one phase so far."""

    branch: str | None = None
    """The branch its first entry says it was written on."""
    offset: int = -1
    """Offset of the last line read, −1 before the first."""
    last: str = ""
    """Id of that line's entry."""
    n: int = 0
    """Depth of that entry."""
    entries: int = 0
    time: str = ""
    """Time of the last line."""
    model: str | None = None
    answered: str = ""
    cost: float | None = None
    home: str | None = None
    """The working folder at the start of the phase, if its first entry does not give it."""
    cwd: str | None = None
    moved: str = ""
    moved_offset: int = -1
    project: str | None = None
    prompt: str | None = None
    provider: str | None = None
    """Of the newest answer, as `model` is."""
    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    git_branch: str | None = None
    mode: str | None = None
    todos: str | None = None

    @property
    def place(self) -> str | None:
        """The working folder after the last line; None if unknown."""
        return self.home if self.cwd is None else self.cwd

    def add(self, offset: int, header: Header, contents: LineContents) -> None:
        """Count one line."""
        self.offset, self.last, self.n, self.time = offset, header.id, header.n, header.time
        self.entries += 1
        match header.type:
            case "user" if self.prompt is None and contents.words:
                self.prompt = extract_title(contents.words.said)
            case "assistant" | "usage" if spent := contents.spent:
                self._add_call(header, spent)
            case "start" | "meta" | "branch" | "anchor":
                if self.entries == 1:
                    self.branch = contents.branch
                if contents.cwd is not None and header.type in ("start", "meta"):
                    self.cwd, self.moved, self.moved_offset = contents.cwd, header.time, offset
                    self.project = contents.project
                self._add_facts(contents)
            case "mode" | "custom":
                self._add_facts(contents)

    def _add_call(self, header: Header, spent: CallUsage) -> None:
        if header.type == "assistant" and spent.model:
            self.model, self.answered = spent.model, header.time
            self.provider = spent.provider or None
        if spent.cost is not None:
            self.cost = (self.cost or 0.0) + spent.cost
        self.tokens += spent.total
        self.input_tokens += spent.input
        self.output_tokens += spent.output

    def _add_facts(self, contents: LineContents) -> None:
        if contents.git_branch is not None:
            self.git_branch = contents.git_branch
        if contents.mode is not None:
            self.mode = contents.mode
        if contents.todos is not None:
            self.todos = contents.todos


class TapeRecord(NamedTuple):
    """Everything the index stores of a tape itself: its row, heads, labels and phases."""

    row: TapeRow
    branches: tuple[IndexedBranch, ...]
    labels: tuple[tuple[str, str], ...]
    """Name and entry id of each."""
    phases: dict[str, PhaseTally]
    origin: str | None = None
    """Id of the tape it was forked from."""


class IndexedBranch(NamedTuple):
    """The head of a branch; entry, depth and time are None if it is damaged."""

    name: str
    phase: str
    entry: str | None
    n: int | None
    time: str | None
    current: bool
    pinned: bool


def is_entry_id(text: str | None) -> TypeGuard[str]:
    """Return whether a label names an entry by its whole id."""
    return text is not None and len(text) == _ENTRY_ID_DIGITS and is_id_prefix(text)


_FACT_COLUMNS = ", ".join(TapeRow._fields[2:])


def is_tape_id(text: str | None) -> TypeGuard[str]:
    """Return whether a text is the whole id of a tape."""
    return text is not None and len(text) == _TAPE_ID_DIGITS and is_id_prefix(text)


_SELECT_TALLY = TALLY_COLUMNS.replace(" last", " lower(hex(last))")

_NUMBERED = "CAST(name AS INTEGER), name"
"""The order of phases; two copies of a store may have given two of them one number."""
_OWN_PHASES = f"FROM phases WHERE tape = ?1 AND name <> '{ORIGIN}'"


def _build_newest_query(fact: str) -> str:
    """Return the query for a fact in the phase that was written last, of those that have it."""
    newest = f"{_OWN_PHASES} AND {fact} IS NOT NULL ORDER BY time DESC, {_NUMBERED}"
    return f"(SELECT {fact} {newest} LIMIT 1)"


# The facts of `build_tape_record`, from the tables instead of all phases.
_UPDATE_HEADS = """
    UPDATE tapes SET branches = ?2,
    updated = coalesce((SELECT max(time) FROM branches WHERE tape = ?1), created) WHERE id = ?1
"""
_OLDEST_FIRST = f"ORDER BY {_NUMBERED} LIMIT 1"
_UPDATE_COUNTS = f"""
    UPDATE tapes SET cost = ?2,
    (entries, tokens, input_tokens, output_tokens) = (
        SELECT coalesce(sum(entries), 0), coalesce(sum(tokens), 0),
        coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) {_OWN_PHASES}
    ),
    (model, provider) = (
        SELECT model, provider {_OWN_PHASES} ORDER BY answered DESC, {_NUMBERED} LIMIT 1
    ),
    cwd = coalesce(
        (SELECT cwd {_OWN_PHASES} ORDER BY moved DESC, {_NUMBERED} LIMIT 1), ''
    ),
    project = (SELECT project {_OWN_PHASES} ORDER BY moved DESC, {_NUMBERED} LIMIT 1),
    git_branch = {_build_newest_query("git_branch")},
    mode = {_build_newest_query("mode")},
    todos = {_build_newest_query("todos")}
    WHERE id = ?1
"""
_UPDATE_TITLE = f"""
    UPDATE tapes SET title = coalesce(
        ?2, (SELECT prompt {_OWN_PHASES} AND prompt <> '' {_OLDEST_FIRST})
    ) WHERE id = ?1
"""


class TapeLocation(NamedTuple):
    """Where a tape is: the name of its folder, and that folder's inode, 0 if not looked up."""

    folder: str
    inode: int


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


def select_tape_record(db: Connection, tape: str) -> TapeRecord | None:
    """Return the stored facts of a tape; None if it is unknown or only partly read."""
    key = (bytes.fromhex(tape),)
    row = db.execute(f"SELECT {TAPE_COLUMNS} FROM tapes WHERE id = ?", key).fetchone()
    if row is None:
        return None
    branches = db.execute(
        "SELECT name, phase, lower(hex(entry)), n, time, current | (pinned << 1) FROM branches "
        "WHERE tape = ? ORDER BY name",
        key,
    )
    labels = db.execute(
        "SELECT name, lower(hex(entry)) FROM labels WHERE tape = ? ORDER BY name", key
    )
    return TapeRecord(
        to_tape_row(*row),
        tuple(
            [
                IndexedBranch._make((*at, bool(marks & 1), bool(marks & 2)))
                for *at, marks in branches
            ]
        ),
        tuple([(name, entry) for name, entry in labels]),
        select_tallies(db, tape),
        select_origin(db, tape),
    )


def select_origin(db: Connection, tape: str) -> str | None:
    """Return the id of the tape that a tape was forked from."""
    found = db.execute(
        "SELECT lower(hex(origin)) FROM tapes WHERE id = ? AND origin IS NOT NULL",
        (bytes.fromhex(tape),),
    ).fetchone()
    origin: str | None = found[0] if found else None
    return origin


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


def select_tallies(
    db: Connection, tape: str, names: Iterable[str] | None = None
) -> dict[str, PhaseTally]:
    """Return how far each phase of a tape, or each of these, was read, and its sums."""
    if names is not None:
        pairs = [(name, select_phase(db, tape, name)[1]) for name in names]
        return {name: tally for name, tally in pairs if tally is not None}
    rows = db.execute(
        f"SELECT name, {_SELECT_TALLY} FROM phases WHERE tape = ? ORDER BY key",
        (bytes.fromhex(tape),),
    )
    return {name: PhaseTally(*values) for name, *values in rows}


def select_phase(db: Connection, tape: str, name: str) -> tuple[int | None, PhaseTally | None]:
    """Return the key of a phase and how far it was read; None for an unknown one."""
    row = db.execute(
        f"SELECT key, {_SELECT_TALLY} FROM phases WHERE tape = ? AND name = ?",
        (bytes.fromhex(tape), name),
    ).fetchone()
    return (row[0], PhaseTally(*row[1:])) if row else (None, None)


def select_redacted_ids(db: Connection, tape: str) -> set[str]:
    """Return the ids that redactions in a tape name."""
    rows = db.execute(
        "SELECT lower(hex(entry)) FROM redactions WHERE tape = ?", (bytes.fromhex(tape),)
    )
    return {entry for (entry,) in rows}


def save_tape_record(db: Connection, new: TapeRecord, old: TapeRecord | None) -> None:
    """Replace the stored facts of a tape; `old` are those, as `select_tape_record` gave them."""
    key = bytes.fromhex(new.row.id)
    db.execute(
        "INSERT INTO tapes (id, folder, inode, cwd, created, updated, entries, branches) "
        "VALUES (?, '', 0, '', '', '', 0, 0) ON CONFLICT DO NOTHING",
        (key,),
    )
    db.execute(
        f"UPDATE tapes SET ({_FACT_COLUMNS}, origin) = ({', '.join('?' * len(new.row[1:]))}) "
        "WHERE id = ?",
        (*new.row[2:], new.origin and bytes.fromhex(new.origin), key),
    )
    known = old.branches if old else ()
    names = {row.name for row in known} - {row.name for row in new.branches}
    db.executemany(
        "DELETE FROM branches WHERE tape = ? AND name = ?", [(key, name) for name in names]
    )
    _insert_branches(db, key, sorted(set(new.branches) - set(known)))
    db.execute("DELETE FROM labels WHERE tape = ?", (key,))
    db.executemany(
        "INSERT INTO labels VALUES (?, ?, ?)",
        [(key, name, bytes.fromhex(entry)) for name, entry in new.labels],
    )


def _insert_branches(db: Connection, tape: bytes, rows: Iterable[IndexedBranch]) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO branches VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (tape, name, phase, entry and bytes.fromhex(entry), n, *rest)
            for name, phase, entry, n, *rest in rows
        ],
    )


def update_tape(
    db: Connection,
    tape: str,
    refs: Refs,
    branches: Iterable[IndexedBranch],
    labels: Mapping[str, str | None],
    tallies: Iterable[tuple[PhaseTally, PhaseTally]],
) -> None:
    """Update only the changed facts of a tape.

    `labels` maps names to entry ids, None for a removed label; `tallies` has the old and the new
    state of each phase that was read. The result is the same as of `keep`.
    """
    key = bytes.fromhex(tape)
    _insert_branches(db, key, branches)
    db.execute(
        "UPDATE branches SET current = (name = ?2) WHERE tape = ?1 AND current <> (name = ?2)",
        (key, refs.current),
    )
    db.executemany(
        "DELETE FROM labels WHERE tape = ? AND name = ?", [(key, name) for name in labels]
    )
    db.executemany(
        "INSERT INTO labels VALUES (?, ?, ?)",
        [(key, name, bytes.fromhex(entry)) for name, entry in labels.items() if is_entry_id(entry)],
    )
    db.execute(_UPDATE_HEADS, (key, len(refs.branches)))
    if any(old != new for old, new in tallies):
        costs = db.execute(f"SELECT cost {_OWN_PHASES} AND cost IS NOT NULL", (key,))
        amounts = [amount for (amount,) in costs]
        db.execute(_UPDATE_COUNTS, (key, fsum(amounts) if amounts else None))
    db.execute(_UPDATE_TITLE, (key, refs.title))


def update_location(db: Connection, tape: str, where: TapeLocation) -> None:
    """Store the current folder of a tape."""
    db.execute(
        "UPDATE tapes SET folder = CAST(? AS TEXT), inode = ? WHERE id = ?",
        (os.fsencode(where.folder), where.inode, bytes.fromhex(tape)),
    )


def select_stamps(db: Connection, tape: str) -> str | None:
    """Return size and time of a tape's files when they were read: see `reader.describe_stamps`."""
    row = db.execute("SELECT stamps FROM tapes WHERE id = ?", (bytes.fromhex(tape),)).fetchone()
    stamps: str | None = row[0] if row else None
    return stamps


def save_stamps(db: Connection, tape: str, stamps: str | None) -> None:
    """Store those; with None the tape counts as changed."""
    db.execute("UPDATE tapes SET stamps = ? WHERE id = ?", (stamps, bytes.fromhex(tape)))


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


def select_tapes_mtime(db: Connection) -> int | None:
    """Return the modification time of `tapes/`, in ns, up to which all tapes are known."""
    row = db.execute("SELECT value FROM meta WHERE key = 'tapes_mtime_ns'").fetchone()
    return row and int(row[0])


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
    found = db.execute("SELECT folder FROM arrivals WHERE tape = ?", (bytes.fromhex(tape),))
    row = found.fetchone()
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


def count_tapes(db: Connection) -> int:
    """Return how many tapes are known."""
    (count,) = db.execute("SELECT count(*) FROM tapes WHERE folder <> ''").fetchone()
    return int(count)


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
