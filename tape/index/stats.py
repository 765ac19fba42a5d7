"""Statistics: tokens, cost, calls and time, summed by tape, branch, model, day or tool.

Every entry counts once, however many branches share it; what a tape copied from its origin counts
where it was written, as long as that is there. Days are UTC. An unknown cost stays unknown.

`usage` has one row for each model call, `calls` one for each tool call, `files` one for each file
that a result says its call changed, `sums` one for each phase, day and model. A tool call belongs
to the model whose answer asked for it: the newest answer before its result in the same phase. The
sums of whole days are read from `sums`, unless a tape has copied its past; those of tools, of parts
of days, and the number of changed files from the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..clock import format_timestamp, parse_timestamp
from .reader import ORIGIN_PHASE, is_caught_up, query_index_file
from .sums import TOKEN_COLUMNS
from .tape_filter import EVERY_TAPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from sqlite3 import Connection

    from ..store.store import Store
    from .projection import Index
    from .tape_filter import TapeFilter

By = Literal[
    "all", "tape", "branch", "model", "day", "tool", "repository", "person", "machine", "agent",
    "project",
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
    "project": ("coalesce(t.project, t.cwd)", "NULL"),
}
_TAPE_SQL = """
    (:tape IS NULL OR t.id = :tape) AND (:branch IS NULL OR p.branch = :branch)
    AND (:root IS NULL OR substr(t.cwd || '/', 1, length(:root)) = :root
        OR substr(t.project || '/', 1, length(:root)) = :root)
"""
_COUNTED_SQL = f"""
    JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape
    WHERE {_TAPE_SQL}
    AND (p.name <> '{ORIGIN_PHASE}' OR (:tape IS NULL AND NOT EXISTS (
        SELECT 1 FROM entries o JOIN phases q ON q.key = o.phase
        WHERE substr(o.id, 1, 4) = substr(e.id, 1, 4) AND o.id = e.id
        AND (q.name <> '{ORIGIN_PHASE}' OR o.key < e.key))))
    AND e.time >= :since AND e.time < :until
    AND (:model IS NULL OR instr(lower({_MODEL_SQL}), lower(:model)))
"""
_USAGE_SQL = "FROM usage u JOIN entries e ON e.key = u.entry"


def _build_integer_sum(column: str) -> str:
    """Return the sum of a column: exact to 2^53, and never more than a column holds."""
    return f"CASE WHEN count({column}) THEN CAST(total({column}) AS INTEGER) END"


_USAGE_SUMS_SQL = (
    f"count(*), {', '.join(_build_integer_sum(f'u.{name}') for name in TOKEN_COLUMNS)}, "
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


class UnpricedCall(NamedTuple):
    """A model call that took tokens and whose cost is not on its tape."""

    key: str | None
    branch: str | None
    title: str | None
    time: str
    provider: str
    model: str
    tokens: tuple[int | None, ...]
    """Input, output, reasoning, cache reads, cache writes, all."""


def list_unpriced_calls(
    store: Store, index: Index | None, by: By = "all", narrow: StatsFilter | None = None
) -> list[UnpricedCall]:
    """Return the calls that the sums of `compute_statistics` count as unpriced, by its keys."""
    from .library import query_index

    def question(db: Connection) -> list[UnpricedCall]:
        key, branch = _KEY_SQL[by]
        condition, values = _build_condition(narrow or StatsFilter())
        tokens = ", ".join(f"u.{name}" for name in TOKEN_COLUMNS)
        rows = db.execute(
            f"SELECT {key}, {branch}, t.title, e.time, u.provider, u.model, {tokens} "
            f"{_USAGE_SQL}{_COUNTED_SQL}{condition} AND u.cost IS NULL AND u.total > 0",
            values,
        )
        return [
            UnpricedCall(name, on, title, format_timestamp(time), provider, model, tuple(counts))
            for name, on, title, time, provider, model, *counts in rows
        ]

    return query_index(store, index, question)


def compute_caught_up(
    home: str, groupings: Sequence[By], narrow: StatsFilter
) -> list[list[StatsRow]] | None:
    """Return what `compute_statistics` does by each, from the index of the store at `home`.

    None if the index has to catch up first.
    """

    def question(db: Connection) -> list[list[StatsRow]] | None:
        if not is_caught_up(db, home):
            return None
        fetched: dict[str, list[DaySum]] = {}
        return [select_statistics(db, by, narrow, fetched) for by in groupings]

    return query_index_file(home, question)


def select_statistics(
    db: Connection, by: By, narrow: StatsFilter, fetched: dict[str, list[DaySum]] | None = None
) -> list[StatsRow]:
    """Return the sums of what is indexed, in the order of `compute_statistics`.

    What is summed by day and model is fetched once for several groupings that share `fetched`.
    """
    condition, values = _build_condition(narrow)
    counted = _COUNTED_SQL + condition
    has_model = by == "model" or narrow.model is not None
    calls = _CALLS_WITH_MODEL_SQL if has_model else _CALLS_SQL
    spent: dict[_StatsKey, _StatsPart]
    if by != "tool" and _is_summed(db, narrow):
        fetched = {} if fetched is None else fetched
        spent, ran = _select_sums(db, by, narrow, condition, values, fetched)
    else:
        usage = _USAGE_SQL + counted
        parts_of_usage = _fetch_parts(db, by, usage, _USAGE_SUMS_SQL, values)
        spent = dict(parts_of_usage) if by != "tool" else {}
        ran = dict(_fetch_parts(db, by, calls + counted, _TOOL_SUMS_SQL, values))
    changed: dict[_StatsKey, _StatsPart] = {}
    if db.execute("SELECT 1 FROM files LIMIT 1").fetchone():
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


def _build_condition(narrow: StatsFilter) -> tuple[str, dict[str, Any]]:
    """Return the condition on tapes, and the values that it and the other SQL name."""
    values: dict[str, Any] = {
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
    if condition:
        condition = f"AND t.id IN (SELECT id FROM tapes WHERE {condition})"
    return condition, values


class DaySum(NamedTuple):
    """A row over the table `sums`."""

    key: str | None
    branch: str | None
    title: str | None
    day: str
    caller: int
    first: int
    last: int
    spent: tuple[Any, ...]
    """In the order of `UsageTotals`."""
    ran: tuple[Any, ...]
    """Calls, errors and milliseconds of tools."""


_MIDNIGHT = "T00:00:00.000000Z"


def _is_summed(db: Connection, narrow: StatsFilter) -> bool:
    """Return whether the table `sums` has what is asked for: whole days, and nothing copied."""
    if any(time is not None and time[10:] != _MIDNIGHT for time in (narrow.since, narrow.until)):
        return False
    copied = "SELECT 1 FROM phases WHERE name = '0000-origin' LIMIT 1"
    return narrow.tape is not None or db.execute(copied).fetchone() is None


_SUMMED_SPENT_SQL = ", ".join(
    (
        *(
            "CAST(total(s.calls) AS INTEGER)",
            *(_build_integer_sum(f"s.{n}") for n in TOKEN_COLUMNS),
        ),
        *("sum(s.cost)", "sum(s.unpriced)", _build_integer_sum("s.duration_ms")),
    )
)
_SUMMED_RAN_SQL = ", ".join(
    _build_integer_sum(f"s.{name}") for name in ("tool_calls", "tool_errors", "tool_ms")
)
_SPENT_COLUMNS = len(UsageTotals._fields)


def _select_sums(
    db: Connection,
    by: By,
    narrow: StatsFilter,
    condition: str,
    values: dict[str, Any],
    fetched: dict[str, list[DaySum]],
) -> tuple[dict[_StatsKey, _StatsPart], dict[_StatsKey, _StatsPart]]:
    """Return the parts of model calls and of tool calls, from the table `sums`."""
    is_of_tape = by not in ("all", "model", "day")
    grouping = by if is_of_tape else ""
    if grouping not in fetched:
        fetched[grouping] = _fetch_sums(db, by if is_of_tape else "all", narrow, condition, values)
    models = dict(db.execute(f"SELECT u.key, {_MODEL_SQL} FROM callers u"))
    groups: dict[_StatsKey, list[DaySum]] = {}
    for row in fetched[grouping]:
        name = {"model": models.get(row.caller), "day": row.day}.get(by, row.key)
        groups.setdefault(_StatsKey(name, row.branch), []).append(row)
    spent, ran = dict[_StatsKey, _StatsPart](), dict[_StatsKey, _StatsPart]()
    for key, rows in groups.items():
        titles = (row.title for row in rows if row.title is not None)
        title = max(titles, default=None) if by in ("tape", "branch") else None
        first, last = min(row.first for row in rows), max(row.last for row in rows)
        used = [row.spent for row in rows if row.spent[0]]
        if used:
            spent[key] = _StatsPart(title, first, last, _add_up(used))
        called = [row.ran for row in rows if row.ran[0]]
        if called:
            ran[key] = _StatsPart(title, first, last, _add_up(called))
    return spent, ran


def _fetch_sums(
    db: Connection, by: By, narrow: StatsFilter, condition: str, values: dict[str, Any]
) -> list[DaySum]:
    key, branch = _KEY_SQL[by]
    where = ["1"]
    if narrow.since:
        where.append("s.day >= date(:since / 1000000, 'unixepoch')")
    if narrow.until:
        where.append("s.day < date(:until / 1000000, 'unixepoch')")
    if narrow.model is not None:
        where.append(
            f"s.caller IN (SELECT u.key FROM callers u "
            f"WHERE instr(lower({_MODEL_SQL}), lower(:model)))"
        )
    source, title = "sums s", "NULL"
    if by != "all" or narrow.tape or narrow.branch or narrow.project or condition:
        source, title = (
            f"{source} JOIN phases p ON p.key = s.phase JOIN tapes t ON t.id = p.tape",
            "max(t.title)",
        )
        where.append(f"{_TAPE_SQL} {condition}")
    days, group = ("s.day, s.caller", "4, 5") if by == "all" else ("'', 0", "1, 2")
    rows = db.execute(
        f"SELECT {key}, {branch}, {title}, {days}, min(s.first), max(s.last), {_SUMMED_SPENT_SQL}, "
        f"{_SUMMED_RAN_SQL} FROM {source} WHERE {' AND '.join(where)} GROUP BY {group}",
        values,
    )
    return [
        DaySum(
            *(name, on, title_of, day, caller, first, last),
            tuple(counts[:_SPENT_COLUMNS]),
            tuple(counts[_SPENT_COLUMNS:]),
        )
        for name, on, title_of, day, caller, first, last, *counts in rows
    ]


def _add_up(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the sums of columns; None where all are None."""
    columns = (
        [value for value in column if value is not None] for column in zip(*rows, strict=True)
    )
    return tuple(sum(column) if column else None for column in columns)


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
