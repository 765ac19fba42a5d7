"""Statistics: tokens, cost, calls and time, summed by tape, branch, model, day or tool.

Every entry counts once, however many branches share it; what a tape copied from its origin counts
where it was written, as long as that is there. Days are UTC. An unknown cost stays unknown.

`usage` has one row for each model call, `calls` one for each tool call, `files` one for each file
that a result says its call changed. A tool call belongs to the
model whose answer asked for it: the newest answer before its result in the same phase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..clock import format_timestamp, parse_timestamp
from .reader import ORIGIN_PHASE, is_caught_up, query_index_file
from .tape_filter import EVERY_TAPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from sqlite3 import Connection

    from ..store.store import Store
    from .projection import Index
    from .tape_filter import TapeFilter

By = Literal[
    "all", "tape", "branch", "model", "day", "tool", "repository", "person", "machine", "agent"
]  # fmt: skip
"""What is summed together."""

_COST_DIGITS = 9
"""Decimals of a cost: sums do not depend on the order beyond them."""


class UsageTotals(NamedTuple):
    """Sums over model calls; None if unknown for all calls."""

    calls: int = 0
    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    total: int | None = None
    cost: float | None = None
    """USD of the calls with a known cost."""
    unpriced: int = 0
    """Number of calls of unknown cost."""
    model_ms: int | None = None


class ToolTotals(NamedTuple):
    """Sums over tool calls."""

    tool_calls: int = 0
    tool_errors: int = 0
    tool_ms: int = 0
    files_changed: int = 0
    """Files that results say their calls changed, each once."""

    @property
    def error_rate(self) -> float | None:
        """The part of the calls that failed, 0 to 1; None without calls."""
        return self.tool_errors / self.tool_calls if self.tool_calls else None


class StatsRow(NamedTuple):
    """One row: what it is of, and the sums."""

    key: str | None
    """Id of a tape, name of a model or tool, a day; None if unknown."""
    branch: str | None
    """With a tape's id, of rows by branch."""
    title: str | None
    """Of the tape, of rows by tape or branch."""
    spent: UsageTotals
    ran: ToolTotals
    first: str
    """Time of the first call counted, and of the last; a tool's is that of its result."""
    last: str


class StatsFilter(NamedTuple):
    """Filters of what is counted; None means all."""

    tape: str | None = None
    """32 hex digits: without what it copied from its origin."""
    branch: str | None = None
    project: str | None = None
    """Absolute path of a folder: tapes whose cwd or project is there or below."""
    model: str | None = None
    """Part of a provider's and model's name, in any case."""
    since: str | None = None
    """Tape time of the first moment."""
    until: str | None = None
    """Tape time of the first moment after."""
    tapes: TapeFilter = EVERY_TAPE
    """What their tapes have to say of themselves."""


class _StatsKey(NamedTuple):
    key: str | None
    branch: str | None


class _StatsPart(NamedTuple):
    """Sums of one kind."""

    title: str | None
    first: int
    last: int
    sums: tuple[Any, ...]


_MODEL_SQL = "nullif(ltrim(u.provider || '/' || u.model, '/'), '')"
_KEY_SQL = {
    "all": ("NULL", "NULL"),
    "tape": ("lower(hex(t.id))", "NULL"),
    "branch": ("lower(hex(t.id))", "p.branch"),
    "model": (_MODEL_SQL, "NULL"),
    "day": ("date(e.time / 1000000, 'unixepoch')", "NULL"),
    "tool": ("c.name", "NULL"),
    "repository": ("t.repository", "NULL"),
    "person": ("t.person", "NULL"),
    "machine": ("t.machine", "NULL"),
    "agent": ("t.agent", "NULL"),
}
_COUNTED_SQL = f"""
    JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape
    WHERE (:tape IS NULL OR t.id = :tape) AND (:branch IS NULL OR p.branch = :branch)
    AND (p.name <> '{ORIGIN_PHASE}' OR (:tape IS NULL AND NOT EXISTS (
        SELECT 1 FROM entries o JOIN phases q ON q.key = o.phase
        WHERE substr(o.id, 1, 4) = substr(e.id, 1, 4) AND o.id = e.id
        AND (q.name <> '{ORIGIN_PHASE}' OR o.key < e.key))))
    AND (:root IS NULL OR substr(t.cwd || '/', 1, length(:root)) = :root
        OR substr(t.project || '/', 1, length(:root)) = :root)
    AND e.time >= :since AND e.time < :until
    AND (:model IS NULL OR instr(lower({_MODEL_SQL}), lower(:model)))
"""
_USAGE_SQL = "FROM usage u JOIN entries e ON e.key = u.entry"


def _build_integer_sum(column: str) -> str:
    """Return the sum of a column: exact to 2^53, and never more than a column holds."""
    return f"CASE WHEN count({column}) THEN CAST(total({column}) AS INTEGER) END"


_TOKEN_COLUMNS = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
_USAGE_SUMS_SQL = (
    f"count(*), {', '.join(_build_integer_sum(f'u.{name}') for name in _TOKEN_COLUMNS)}, "
    f"sum(u.cost), sum(u.cost IS NULL), {_build_integer_sum('u.duration_ms')}"
)
_CALLS_SQL = """
    FROM calls c JOIN entries e ON e.key = c.entry
    LEFT JOIN (SELECT NULL AS provider, NULL AS model) u
"""
_CALLS_WITH_MODEL_SQL = """
    FROM calls c JOIN entries e ON e.key = c.entry JOIN (
        SELECT f.key, max(CASE WHEN a.purpose = 'answer' THEN f.key END)
            OVER (PARTITION BY f.phase ORDER BY f.key) AS asked
        FROM entries f LEFT JOIN usage a ON a.entry = f.key
        WHERE f.key IN (SELECT entry FROM calls UNION ALL SELECT entry FROM usage)
    ) w ON w.key = c.entry LEFT JOIN usage u ON u.entry = w.asked
"""
"""Calls with the usage of the newest answer before them in their phase, which made them."""
_CHANGES_SQL = " JOIN files f ON f.entry = c.entry AND f.op <> 'moved'"
"""The files that the results of these calls say were changed."""
_TOOL_SUMS_SQL = f"count(*), sum(c.is_error), {_build_integer_sum('c.duration_ms')}"


def compute_statistics(
    store: Store, index: Index | None, by: By = "all", narrow: StatsFilter | None = None
) -> list[StatsRow]:
    """Return the sums, days in order, others by tokens, largest first; empty if there are none.

    Raises NewerFormat or Damaged of the store itself.
    """
    from .library import query_index  # most sums read no tape

    return query_index(store, index, lambda db: select_statistics(db, by, narrow or StatsFilter()))


def compute_caught_up(
    home: str, groupings: Sequence[By], narrow: StatsFilter
) -> list[list[StatsRow]] | None:
    """Return what `compute_statistics` does by each, from the index of the store at `home`.

    None if the index has to catch up first.
    """

    def question(db: Connection) -> list[list[StatsRow]] | None:
        if not is_caught_up(db, home):
            return None
        return [select_statistics(db, by, narrow) for by in groupings]

    return query_index_file(home, question)


def select_statistics(db: Connection, by: By, narrow: StatsFilter) -> list[StatsRow]:
    """Return the sums of what is indexed, in the order of `compute_statistics`."""
    values = {
        "tape": narrow.tape and bytes.fromhex(narrow.tape),
        "branch": narrow.branch,
        "root": narrow.project and f"{narrow.project.rstrip('/')}/",
        "model": narrow.model,
        "since": parse_timestamp(narrow.since) if narrow.since else -(1 << 63),
        "until": parse_timestamp(narrow.until) if narrow.until else (1 << 63) - 1,
    }
    condition, parts = narrow.tapes.build_condition()
    for at, part in enumerate(parts):
        condition = condition.replace("?", f":part_{at}", 1)
        values[f"part_{at}"] = part
    counted = _COUNTED_SQL
    if condition:
        counted += f"AND t.id IN (SELECT id FROM tapes WHERE {condition})"
    has_model = by == "model" or narrow.model is not None
    calls = _CALLS_WITH_MODEL_SQL if has_model else _CALLS_SQL

    usage = (
        _fetch_parts(db, by, _USAGE_SQL + counted, _USAGE_SUMS_SQL, values) if by != "tool" else ()
    )
    spent = dict(usage)
    ran = dict(_fetch_parts(db, by, calls + counted, _TOOL_SUMS_SQL, values))
    files = calls + _CHANGES_SQL + counted
    changed = dict(_fetch_parts(db, by, files, "count(DISTINCT f.path)", values))
    rows = [
        _build_stats_row(key, spent.get(key), ran.get(key), changed.get(key))
        for key in {**spent, **ran}
    ]
    if by == "day":
        return sorted(rows, key=lambda row: row.key or "")
    return sorted(
        rows,
        key=lambda row: (
            *(-(row.spent.total or 0), -row.ran.tool_calls),
            *(row.key or "", row.branch or ""),
        ),
    )


def _fetch_parts(
    db: Connection, by: By, source: str, sums: str, values: dict[str, Any]
) -> Iterator[tuple[_StatsKey, _StatsPart]]:
    key, branch = _KEY_SQL[by]
    rows = db.execute(
        f"SELECT {key}, {branch}, max(t.title), min(e.time), max(e.time), {sums} "
        f"{source} GROUP BY 1, 2 HAVING count(*) > 0",
        values,
    )
    for name, on, title, first, last, *counts in rows:
        yield (
            _StatsKey(name, on),
            _StatsPart(title if by in ("tape", "branch") else None, first, last, tuple(counts)),
        )


def _build_stats_row(
    key: _StatsKey,
    spent: _StatsPart | None,
    ran: _StatsPart | None,
    changed: _StatsPart | None,
) -> StatsRow:
    parts = [part for part in (spent, ran) if part]
    usage = UsageTotals(*spent.sums) if spent else UsageTotals()
    return StatsRow(
        *key,
        next((part.title for part in parts), None),
        usage if usage.cost is None else usage._replace(cost=round(usage.cost, _COST_DIGITS)),
        ToolTotals(
            *(ran.sums if ran else ()), **({"files_changed": changed.sums[0]} if changed else {})
        ),
        format_timestamp(min(part.first for part in parts)),
        format_timestamp(max(part.last for part in parts)),
    )
