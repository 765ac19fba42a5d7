"""The schema of index.db, step by step; `tape.index` applies it to new and old files.

Everything in it can be rebuilt from the tapes, so a step may also drop data; one whose new columns
hold what older rows lack calls `_read_everything_again`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlite_utils import Database, Migrations

if TYPE_CHECKING:
    from sqlite3 import Connection

steps = Migrations("index")


def apply(connection: Connection) -> None:
    """Apply the steps that are missing, in the caller's transaction."""
    steps.apply(Database(connection, execute_plugins=False))


@steps()
def m001_tapes(db: Database) -> None:
    """Create the tables for `tape ls`."""
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


@steps()
def m002_entries(db: Database) -> None:
    """Create the tables of single entries, and delete what was read without them."""
    db.execute("DELETE FROM meta")
    db.execute("DELETE FROM tapes")
    db.table("phases").drop()
    db.table("phases").create(
        {
            "key": int,
            "tape": bytes,
            "name": str,
            "branch": str,
            "offset": int,
            "last": bytes,
            "n": int,
            "entries": int,
            "time": str,
            "model": str,
            "answered": str,
            "cost": float,
            "home": str,
            "cwd": str,
            "moved": str,
            "moved_offset": int,
            "project": str,
            "prompt": str,
        },
        pk="key",
        not_null={"tape", "name", "offset", "last", "n", "entries", "time", "answered"}
        | {"moved", "moved_offset"},
        strict=True,
    )
    db.table("phases").create_index(["tape", "name"], unique=True)
    db.table("types").create({"key": int, "name": str}, pk="key", not_null={"name"}, strict=True)
    db.table("types").create_index(["name"], unique=True)
    db.table("entries").create(
        {
            "key": int,
            "id": bytes,
            "phase": int,
            "offset": int,
            "length": int,
            "n": int,
            "time": int,
            "type": int,
        },
        pk="key",
        not_null={"id", "phase", "offset", "length", "n", "time", "type"},
        strict=True,
    )
    db.table("entries").create_index(["id"], index_name="entries_id")
    _make_facts(db)
    _make_names(db)
    db.execute("CREATE VIRTUAL TABLE text USING fts5(said, called, answered, content='')")
    db.table("removed").create({"key": int}, pk="key", strict=True)
    _make_views(db)


@steps()
def m003_short_ids(db: Database) -> None:
    """Index entries by a prefix of their ids: a quarter of the size, and nearly as selective."""
    db.execute("DROP INDEX entries_id")
    db.execute("CREATE INDEX entries_id ON entries (substr(id, 1, 4))")


@steps()
def m004_words(db: Database) -> None:
    """Keep places only of words that people and models said, and each caller's names once.

    Everything is read again.
    """
    for table in ("meta", "tapes", "phases", "entries", "calls", "files", "branches", "labels"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
    for table in ("redactions", "removed"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
    db.execute("DROP TABLE text")
    db.execute("CREATE VIRTUAL TABLE said USING fts5(text, content='')")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, columnsize=0)")
    db.execute("DROP VIEW costs")
    db.execute("DROP TABLE usage")
    names = ("purpose", "provider", "model")
    db.table("callers").create(
        {"key": int, **dict.fromkeys(names, str)}, pk="key", not_null={*names}, strict=True
    )
    db.table("callers").create_index(names, unique=True)
    counts = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
    db.table("model_calls").create(
        {"entry": int, "caller": int, **dict.fromkeys(counts, int), "cost": float}
        | {"duration_ms": int},
        pk="entry",
        not_null={"caller", "input", "output", "total"},
        strict=True,
    )
    db.create_view(
        "usage",
        f"SELECT m.entry, c.purpose, c.provider, c.model, m.{', m.'.join(counts)}, m.cost, "  # noqa: S608 (ours)
        "m.duration_ms FROM model_calls m JOIN callers c ON c.key = m.caller",
    )
    _make_costs_view(db)


@steps()
def m005_stamps(db: Database) -> None:
    """Note size and time of the files that were read, so that any other writer is noticed."""
    db.execute("ALTER TABLE tapes ADD COLUMN stamps TEXT")


@steps()
def m006_one_row_for_a_change(db: Database) -> None:
    """Keep of a call that changed a file what its result says of it, and the files of restores."""
    _read_everything_again(db)


@steps()
def m007_facts_of_sessions(db: Database) -> None:
    """Keep provider, tokens, branch of git, permission mode and todos of each tape."""
    _read_everything_again(db)
    for table in ("tapes", "phases"):
        for name in ("tokens", "input_tokens", "output_tokens"):
            db.execute(f"ALTER TABLE {table} ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0")
        for name in ("provider", "git_branch", "mode", "todos"):
            db.execute(f"ALTER TABLE {table} ADD COLUMN {name} TEXT")
    db.execute("DROP VIEW sessions")
    db.create_view(
        "sessions",
        "SELECT lower(hex(id)) AS tape, title, folder, cwd, project, git_branch, created, "
        "updated, provider, model, mode, entries, branches, tokens, input_tokens, output_tokens, "
        "cost, todos FROM tapes",
    )


@steps()
def m008_many_tapes(db: Database) -> None:
    """Find tapes by folder, project and origin; keep where tapes came, and sums of calls."""
    _read_everything_again(db)
    db.execute("ALTER TABLE tapes ADD COLUMN origin BLOB")
    db.execute("CREATE INDEX tapes_origin ON tapes (origin) WHERE origin IS NOT NULL")
    db.execute("CREATE INDEX tapes_cwd ON tapes (cwd, updated, id)")
    db.execute("CREATE INDEX tapes_project ON tapes (project, updated, id)")
    db.execute("CREATE INDEX tapes_root ON tapes (coalesce(project, cwd), updated, id)")
    db.table("arrivals").create({"tape": bytes, "folder": bytes}, pk="tape", strict=True)


@steps()
def m009_words_of_large_results(db: Database) -> None:
    """Index the words of results that are kept beside their entries."""
    _read_everything_again(db)


@steps()
def m010_facts_that_travel(db: Database) -> None:
    """Keep of each tape its repository, wherever it is checked out, its person and its machine."""
    _read_everything_again(db)
    for name in ("repository", "person", "machine"):
        for table in ("tapes", "phases"):
            db.execute(f"ALTER TABLE {table} ADD COLUMN {name} TEXT")
        db.execute(
            f"CREATE INDEX tapes_{name} ON tapes ({name}, updated, id) WHERE {name} IS NOT NULL"
        )
    db.execute("DROP VIEW sessions")
    db.create_view(
        "sessions",
        "SELECT lower(hex(id)) AS tape, title, folder, cwd, project, repository, git_branch, "
        "person, machine, created, updated, provider, model, mode, entries, branches, tokens, "
        "input_tokens, output_tokens, cost, todos FROM tapes",
    )


@steps()
def m011_agents(db: Database) -> None:
    """Keep of each tape which program made the session."""
    _read_everything_again(db)
    db.execute("ALTER TABLE tapes ADD COLUMN agent TEXT")
    db.execute("CREATE INDEX tapes_agent ON tapes (agent, updated, id) WHERE agent IS NOT NULL")
    db.execute("DROP VIEW sessions")
    db.create_view(
        "sessions",
        "SELECT lower(hex(id)) AS tape, title, folder, cwd, project, repository, git_branch, "
        "person, machine, agent, created, updated, provider, model, mode, entries, branches, "
        "tokens, input_tokens, output_tokens, cost, todos FROM tapes",
    )


@steps()
def m012_sums(db: Database) -> None:
    """Keep sums of the calls of each phase by day and model.

    `phases.asked` is the caller of the newest answer, which made the tool calls behind it.
    """
    _read_everything_again(db)
    known = ("input", "output", "reasoning", "cache_read", "cache_write", "total", "duration_ms")
    counts = ("calls", "unpriced", "tool_calls", "tool_errors", "tool_ms", "first", "last")
    columns = ["phase INTEGER", "day TEXT", "caller INTEGER", "cost REAL"]
    columns += [f"{name} INTEGER" for name in known]
    columns += [f"{name} INTEGER NOT NULL" for name in counts]
    db.execute(
        f"CREATE TABLE sums ({', '.join(columns)}, PRIMARY KEY (phase, day, caller)) "
        "STRICT, WITHOUT ROWID"
    )
    db.execute("ALTER TABLE phases ADD COLUMN asked INTEGER")
    db.execute("CREATE INDEX phases_origin ON phases (tape) WHERE name = '0000-origin'")


@steps()
def m013_ranges(db: Database) -> None:
    """Keep where the rows of each phase are, so that those of one tape are found among many.

    Rows of other phases may be in between. The sums of a day stand together, so that they are added
    up without sorting.
    """
    names = ("phase", "first", "last", "first_file", "last_file")
    columns = ", ".join(f"{name} INTEGER NOT NULL" for name in names)
    db.execute(f"CREATE TABLE ranges ({columns}, PRIMARY KEY (phase, first)) STRICT, WITHOUT ROWID")
    db.execute(
        "INSERT INTO ranges SELECT phase, min(key), max(key), coalesce(min(f.rowid), 1), "
        "coalesce(max(f.rowid), 0) FROM entries LEFT JOIN files f ON f.entry = key GROUP BY phase"
    )
    (made,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'sums'").fetchone()
    db.execute("ALTER TABLE sums RENAME TO sums_of_phases")
    db.execute(made.replace("(phase, day, caller)", "(day, caller, phase)"))
    db.execute("INSERT INTO sums SELECT * FROM sums_of_phases")
    db.execute("DROP TABLE sums_of_phases")
    db.execute("CREATE INDEX sums_phase ON sums (phase)")


def _read_everything_again(db: Database) -> None:
    """Delete all rows, in the tables that are there at this step, so that tapes are read again."""
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    for table in there & _TABLES:
        db.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
    for table in ("said", "words"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")  # noqa: S608 (ours)


_TABLES = frozenset({
    "meta", "tapes", "phases", "entries", "calls", "files", "branches", "labels", "redactions",
    "removed", "model_calls", "callers", "sums", "ranges",
})  # fmt: skip
"""The tables with rows that come from tapes, but for the words."""


def _make_facts(db: Database) -> None:
    """Create the tables of usage, tool calls and files."""
    db.table("usage").create(
        {
            "entry": int,
            "purpose": str,
            "provider": str,
            "model": str,
            "input": int,
            "output": int,
            "reasoning": int,
            "cache_read": int,
            "cache_write": int,
            "total": int,
            "cost": float,
            "duration_ms": int,
        },
        pk="entry",
        not_null={"purpose", "provider", "model", "input", "output", "total"},
        strict=True,
    )
    db.table("calls").create(
        {"entry": int, "name": str, "is_error": int, "duration_ms": int},
        pk="entry",
        not_null={"name", "is_error", "duration_ms"},
        strict=True,
    )
    db.table("files").create(
        {"entry": int, "call": str, "path": str, "op": str},
        not_null={"entry", "call", "path", "op"},
        strict=True,
    )
    db.table("files").create_index(["path"])


def _make_names(db: Database) -> None:
    """Create the tables of labels and of redactions."""
    db.table("branches").create(
        {
            "tape": bytes,
            "name": str,
            "phase": str,
            "entry": bytes,
            "n": int,
            "time": str,
            "current": int,
            "pinned": int,
        },
        pk=("tape", "name"),
        not_null={"tape", "name", "phase", "current", "pinned"},
        strict=True,
    )
    db.table("labels").create(
        {"tape": bytes, "name": str, "entry": bytes},
        pk=("tape", "name"),
        not_null={"tape", "name", "entry"},
        strict=True,
    )
    db.table("labels").create_index(["name"])
    db.table("redactions").create(
        {"tape": bytes, "entry": bytes}, pk=("tape", "entry"), strict=True
    )


_PLACE = """
    FROM entries e JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape
    JOIN types k ON k.key = e.type
"""
_WHERE = """
    lower(hex(t.id)) AS tape, t.title, p.branch, p.name AS phase, lower(hex(e.id)) AS entry, e.n,
    strftime('%Y-%m-%dT%H:%M:%S', e.time / 1000000, 'unixepoch')
        || printf('.%06dZ', e.time % 1000000) AS time
"""


def _make_costs_view(db: Database) -> None:
    db.create_view(
        "costs",
        f"SELECT {_WHERE}, u.purpose, u.provider, u.model, u.input, u.output, u.reasoning, "
        "u.cache_read, u.cache_write, u.total, u.cost, u.duration_ms "
        f"{_PLACE} JOIN usage u ON u.entry = e.key",
    )


def _make_views(db: Database) -> None:
    """Create views for people: ids in hex, times as text. A copied past is in its own tape too."""
    db.create_view(
        "sessions",
        "SELECT lower(hex(id)) AS tape, title, folder, cwd, project, created, updated, model, "
        "entries, branches, cost FROM tapes",
    )
    db.create_view(
        "messages",
        f"SELECT {_WHERE}, k.name AS type, e.length {_PLACE}",
    )
    _make_costs_view(db)
    db.create_view(
        "tool_calls",
        f"SELECT {_WHERE}, c.name AS tool, c.is_error, c.duration_ms "
        f"{_PLACE} JOIN calls c ON c.entry = e.key",
    )
    db.create_view(
        "file_changes",
        f"SELECT {_WHERE}, f.path, f.op, f.call {_PLACE} JOIN files f ON f.entry = e.key",
    )
