"""What sessions took: tokens, cost, calls and time, summed by tape, branch, model, day or tool.

Every entry counts once, however many branches share it; what a tape copied from its origin counts
where it was written, as long as that is there. Days are UTC. A cost nobody told stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..clock import micros, stamp
from ..phase import ORIGIN
from . import answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

    from ..store import Store
    from .follower import Index

By = Literal["all", "tape", "branch", "model", "day", "tool"]
"""What is summed together."""

_DIGITS = 9
"""Decimals of a cost: sums do not depend on the order beyond them."""


class Spent(Struct, frozen=True, gc=False):
    """What model calls took; None where no call told."""

    calls: int = 0
    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    total: int | None = None
    cost: float | None = None
    """USD of the calls that told."""
    unpriced: int = 0
    """Calls that did not tell what they cost."""
    model_ms: int | None = None


class Ran(Struct, frozen=True, gc=False):
    """What tools did."""

    tool_calls: int = 0
    tool_errors: int = 0
    tool_ms: int = 0

    @property
    def error_rate(self) -> float | None:
        """The part of the calls that failed, 0 to 1; None without calls."""
        return self.tool_errors / self.tool_calls if self.tool_calls else None


class Sums(Struct, frozen=True, gc=False):
    """One row: what it is of, and the sums."""

    key: str | None
    """Id of a tape, name of a model or tool, a day; None where nobody told."""
    branch: str | None
    """With a tape's id, of rows by branch."""
    title: str | None
    """Of the tape, of rows by tape or branch."""
    spent: Spent
    ran: Ran
    first: str
    """Time of the first call counted, and of the last; a tool's is that of its result."""
    last: str


class Wanted(NamedTuple):
    """What is counted; all where nothing is said."""

    tape: str | None = None
    """32 hex digits: without what it copied from its origin."""
    branch: str | None = None
    project: str | None = None
    """Absolute path of a folder: tapes that work there or below."""
    model: str | None = None
    """Part of a provider's and model's name, in any case."""
    since: str | None = None
    """Tape time of the first moment."""
    until: str | None = None
    """Tape time of the first moment after."""


class _Key(NamedTuple):
    key: str | None
    branch: str | None


class _Part(NamedTuple):
    """Sums of one kind."""

    title: str | None
    first: int
    last: int
    sums: tuple[Any, ...]


_MODEL = "nullif(ltrim(u.provider || '/' || u.model, '/'), '')"
_KEYS = {
    "all": ("NULL", "NULL"),
    "tape": ("lower(hex(t.id))", "NULL"),
    "branch": ("lower(hex(t.id))", "p.branch"),
    "model": (_MODEL, "NULL"),
    "day": ("date(e.time / 1000000, 'unixepoch')", "NULL"),
    "tool": ("c.name", "NULL"),
}
_COUNTED = f"""
    JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape
    WHERE (:tape IS NULL OR t.id = :tape) AND (:branch IS NULL OR p.branch = :branch)
    AND (p.name <> '{ORIGIN}' OR (:tape IS NULL AND NOT EXISTS (
        SELECT 1 FROM entries o JOIN phases q ON q.key = o.phase
        WHERE substr(o.id, 1, 4) = substr(e.id, 1, 4) AND o.id = e.id
        AND (q.name <> '{ORIGIN}' OR o.key < e.key))))
    AND (:root IS NULL OR substr(t.cwd || '/', 1, length(:root)) = :root
        OR substr(t.project || '/', 1, length(:root)) = :root)
    AND e.time >= :since AND e.time < :until
    AND (:model IS NULL OR instr(lower({_MODEL}), lower(:model)))
"""  # noqa: S608 (our own names)
_USAGE = "FROM usage u JOIN entries e ON e.key = u.entry"


def _whole(column: str) -> str:
    """Return the sum of a column: exact to 2^53, and never more than a column holds."""
    return f"CASE WHEN count({column}) THEN CAST(total({column}) AS INTEGER) END"


_TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
_SPENT = (
    f"count(*), {', '.join(_whole(f'u.{name}') for name in _TOKENS)}, "
    f"sum(u.cost), sum(u.cost IS NULL), {_whole('u.duration_ms')}"
)
_CALLS = """
    FROM calls c JOIN entries e ON e.key = c.entry
    LEFT JOIN (SELECT NULL AS provider, NULL AS model) u
"""
_ASKED = """
    FROM calls c JOIN entries e ON e.key = c.entry JOIN (
        SELECT f.key, max(CASE WHEN a.purpose = 'answer' THEN f.key END)
            OVER (PARTITION BY f.phase ORDER BY f.key) AS asked
        FROM entries f LEFT JOIN usage a ON a.entry = f.key
        WHERE f.key IN (SELECT entry FROM calls UNION ALL SELECT entry FROM usage)
    ) w ON w.key = c.entry LEFT JOIN usage u ON u.entry = w.asked
"""
"""Calls with the usage of the newest answer before them in their phase: that asked for them."""
_RAN = f"count(*), sum(c.is_error), {_whole('c.duration_ms')}"


def statistics(
    store: Store, index: Index | None, by: By = "all", wanted: Wanted | None = None
) -> list[Sums]:
    """Return the sums, days in order, all else with the most tokens first; empty for nothing.

    Raises NewerFormat or Damaged of the store itself.
    """
    wanted = wanted or Wanted()
    spent, ran = answer(store, index, lambda db: _asked(db, by, wanted))
    rows = [_sums(key, spent.get(key), ran.get(key)) for key in {**spent, **ran}]
    return sorted(rows, key=_by_day if by == "day" else _by_size)


def _asked(db: Connection, by: By, wanted: Wanted) -> tuple[dict[_Key, _Part], dict[_Key, _Part]]:
    told = _told(wanted)
    with_model = by == "model" or wanted.model is not None
    ran = dict(_parts(db, by, _ASKED if with_model else _CALLS, _RAN, told))
    return {} if by == "tool" else dict(_parts(db, by, _USAGE, _SPENT, told)), ran


def _told(wanted: Wanted) -> dict[str, object]:
    """Return the values of a question's parameters."""
    return {
        "tape": wanted.tape and bytes.fromhex(wanted.tape),
        "branch": wanted.branch,
        "root": wanted.project and f"{wanted.project.rstrip('/')}/",
        "model": wanted.model,
        "since": micros(wanted.since) if wanted.since else -(1 << 63),
        "until": micros(wanted.until) if wanted.until else (1 << 63) - 1,
    }


def _parts(
    db: Connection, by: By, source: str, sums: str, told: dict[str, object]
) -> Iterator[tuple[_Key, _Part]]:
    key, branch = _KEYS[by]
    rows = db.execute(
        f"SELECT {key}, {branch}, max(t.title), min(e.time), max(e.time), {sums} "
        f"{source} {_COUNTED} GROUP BY 1, 2 HAVING count(*) > 0",
        told,
    )
    for name, on, title, first, last, *counts in rows:
        yield (
            _Key(name, on),
            _Part(title if by in ("tape", "branch") else None, first, last, tuple(counts)),
        )


def _sums(key: _Key, spent: _Part | None, ran: _Part | None) -> Sums:
    parts = [part for part in (spent, ran) if part]
    return Sums(
        *key,
        next((part.title for part in parts), None),
        _spent(spent.sums) if spent else Spent(),
        Ran(*ran.sums) if ran else Ran(),
        stamp(min(part.first for part in parts)),
        stamp(max(part.last for part in parts)),
    )


def _spent(sums: tuple[Any, ...]) -> Spent:
    spent = Spent(*sums)
    return spent if spent.cost is None else replace(spent, cost=round(spent.cost, _DIGITS))


def _by_day(row: Sums) -> str:
    return row.key or ""


def _by_size(row: Sums) -> tuple[int, int, str, str]:
    return -(row.spent.total or 0), -row.ran.tool_calls, row.key or "", row.branch or ""
