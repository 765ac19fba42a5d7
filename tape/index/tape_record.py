"""What the index holds of a tape itself: its row, branches, labels, and the sums over its phases.

What lists say of a tape is summed over its phases. A `PhaseTally` holds one phase's part, counted
line by line and continued where it stopped.

Invariant: reading a phase in parts gives the same tally as reading it at once, also to the last bit
of a cost.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from msgspec import Struct

from ..ids import is_id_prefix
from ..store.phase import ORIGIN
from ..text import extract_title
from .reader import TAPE_COLUMNS, TapeRow, to_tape_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from sqlite3 import Connection

    from ..model.line import Header
    from ..store.refs import Refs
    from .contents import CallUsage, LineContents

_ENTRY_ID_DIGITS, _TAPE_ID_DIGITS = 40, 32
TALLY_COLUMNS = (
    'branch, "offset", last, n, entries, time, model, answered, cost, home, cwd, moved, '
    "moved_offset, project, prompt, provider, tokens, input_tokens, output_tokens, git_branch, "
    "mode, todos, repository, person, machine"
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
    repository: str | None = None
    """Of the newest folder, as `project` is."""
    person: str | None = None
    machine: str | None = None

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
                    self.project, self.repository = contents.project, contents.repository
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
        self.person = contents.person or self.person
        self.machine = contents.machine or self.machine


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


_FACT_COLUMNS = ", ".join(TapeRow._fields[2:-1])  # whether it is archived follows from `stamps`


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
    (project, repository) = (
        SELECT project, repository {_OWN_PHASES} ORDER BY moved DESC, {_NUMBERED} LIMIT 1
    ),
    git_branch = {_build_newest_query("git_branch")},
    mode = {_build_newest_query("mode")},
    todos = {_build_newest_query("todos")},
    person = {_build_newest_query("person")},
    machine = {_build_newest_query("machine")}
    WHERE id = ?1
"""
_UPDATE_TITLE = f"""
    UPDATE tapes SET title = coalesce(
        ?2, (SELECT prompt {_OWN_PHASES} AND prompt <> '' {_OLDEST_FIRST})
    ) WHERE id = ?1
"""


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
    row = db.execute(
        "SELECT lower(hex(origin)) FROM tapes WHERE id = ? AND origin IS NOT NULL",
        (bytes.fromhex(tape),),
    ).fetchone()
    origin: str | None = row[0] if row else None
    return origin


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
        f"UPDATE tapes SET ({_FACT_COLUMNS}, origin) = ({', '.join('?' * len(new.row[2:]))}) "
        "WHERE id = ?",
        (*new.row[2:-1], new.origin and bytes.fromhex(new.origin), key),
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


def select_stamps(db: Connection, tape: str) -> str | None:
    """Return size and time of a tape's files when they were read: see `reader.describe_stamps`."""
    row = db.execute("SELECT stamps FROM tapes WHERE id = ?", (bytes.fromhex(tape),)).fetchone()
    stamps: str | None = row[0] if row else None
    return stamps


def select_stamps_where(db: Connection, first: int, last: int) -> dict[str, str | None]:
    """Return the stamps of the tapes in some rows, by id."""
    query = "SELECT lower(hex(id)), stamps FROM tapes WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    return dict(db.execute(query, (first, last)).fetchall())


def select_joined_stamps(db: Connection, first: int, last: int) -> str | None:
    """Return ids and stamps of the tapes in some rows as one text; None if one is unknown."""
    query = (
        "SELECT group_concat(hex(id) || stamps), count(*) = count(stamps) "
        "FROM tapes WHERE rowid BETWEEN ? AND ?"
    )
    text, is_known = db.execute(query, (first, last)).fetchone()
    return (text or "") if is_known else None


def select_last_row(db: Connection) -> int:
    """Return the highest number of a row of tapes; 0 for none."""
    (last,) = db.execute("SELECT coalesce(max(rowid), 0) FROM tapes").fetchone()
    return int(last)


def save_stamps(db: Connection, tape: str, stamps: str | None) -> None:
    """Store those; with None the tape counts as changed."""
    db.execute("UPDATE tapes SET stamps = ? WHERE id = ?", (stamps, bytes.fromhex(tape)))
