"""Full text over all tapes: which entries fit best, and where they stand; told by SQLite alone.

Nothing is imported that takes time, typing included.
"""

from __future__ import annotations

import os
from collections import namedtuple

from ..clock import parse_timestamp
from ..text import replace_surrogates

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

ORIGIN_PHASE = "0000-origin"
"""The phase of a copied past: `tape.phase.ORIGIN`."""

_EXTRA_HITS = 1_000
"""Hits that are looked at beyond those that are wanted, before all are."""
_RANK_SQL = "bm25(text, 4.0, 2.0, 1.0)"
"""What was said counts more than arguments of tools, and those more than their results."""

RankedEntry = namedtuple(  # noqa: PYI024 (typing takes too long)
    "Hit", "tape title folder phase branch offset length entry n time type score"
)
"""An entry: hex ids, the names around it, where its line stands, its depth, microseconds, score."""


def build_filter(
    types: Sequence[str] = (),
    project: str | None = None,
    model: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> tuple[str, list[object]]:
    """Return more of a WHERE clause, and its values; what is empty asks for nothing.

    `project` is an absolute folder: tapes that work in it or below, or whose project stands there.
    `model` is a part of `provider/model`: answers of such a model, and the rest of tapes that have
    some. `since` and `until`, which is not included, are times as on a tape.
    """
    where, values = "", list[object]()
    if types:
        where += f" AND k.name IN ({', '.join('?' * len(types))})"
        values += map(replace_surrogates, types)
    if project is not None:
        root = replace_surrogates(project).rstrip("/") + "/"
        where += " AND (substr(t.cwd || '/', 1, ?) = ? OR substr(t.project || '/', 1, ?) = ?)"
        values += (len(root), root) * 2
    if model is not None:
        fits = "instr(lower(u.provider || '/' || u.model), lower(?)) > 0"
        where += (
            " AND CASE k.name WHEN 'assistant' THEN EXISTS "  # noqa: S608 (our own names)
            f"(SELECT 1 FROM usage u WHERE u.entry = e.key AND {fits}) ELSE p.tape IN "
            "(SELECT q.tape FROM usage u JOIN entries f ON f.key = u.entry "
            f"JOIN phases q ON q.key = f.phase WHERE u.purpose = 'answer' AND {fits}) END"
        )
        values += (replace_surrogates(model),) * 2
    for time, sign in ((since, ">="), (until, "<")):
        if time is not None:
            where += f" AND e.time {sign} ?"
            values.append(parse_timestamp(time))
    return where, values


def rank_entries(
    db: Connection, expression: str, narrow: tuple[str, Sequence[object]], limit: int
) -> list[RankedEntry]:
    """Return what fits an FTS5 expression best, newer first among equals, each entry once.

    Where copies of an entry stand, the original counts. Words that stand nearly everywhere are not
    looked up to the last: those that fit best do, unless they leave open which come first.
    """
    found, last = _select_ranked(db, expression, narrow, limit, limit + _EXTRA_HITS)
    if last is not None and (len(found) < limit or -found[-1][1] == last):
        found, _ = _select_ranked(db, expression, narrow, limit, -1)
    return [hit for key, score in found if (hit := _fetch_ranked_entry(db, key, score)) is not None]


def _select_ranked(
    db: Connection, expression: str, narrow: tuple[str, Sequence[object]], limit: int, most: int
) -> tuple[list[tuple[int, float]], float | None]:
    """Return keys and scores, best first, and the worst rank if there may be more.

    Of those that fit, the best `most` are looked at (−1: all).
    """
    where, values = narrow
    rows = db.execute(
        "WITH fit AS MATERIALIZED (SELECT rowid AS key, "  # noqa: S608 (our own names)
        f"{_RANK_SQL} AS score FROM text WHERE text MATCH ? ORDER BY score LIMIT ?) "
        "SELECT e.key, f.score, e.id, (SELECT count(*) FROM fit), (SELECT max(score) FROM fit) "
        "FROM fit f CROSS JOIN entries e ON e.key = f.key JOIN types k ON k.key = e.type "
        "JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape "
        f"WHERE t.folder <> ''{where} ORDER BY f.score, e.time DESC, e.id, p.name = ?, t.id",
        (expression, most, *values, ORIGIN_PHASE),
    )
    found: dict[bytes, tuple[int, float]] = {}
    count, last = most, 0.0
    for key, score, entry, count, last in rows:  # noqa: B007 (the same in each)
        if len(found) == limit and entry not in found:
            break
        found.setdefault(entry, (key, -score))
    return list(found.values()), last if count == most else None


def _fetch_ranked_entry(db: Connection, key: int, score: float) -> RankedEntry | None:
    found = db.execute(
        'SELECT lower(hex(t.id)), t.title, CAST(t.folder AS BLOB), p.name, p.branch, e."offset", '
        "e.length, lower(hex(e.id)), e.n, e.time, k.name FROM entries e "
        "JOIN types k ON k.key = e.type JOIN phases p ON p.key = e.phase "
        "JOIN tapes t ON t.id = p.tape WHERE e.key = ?",
        (key,),
    ).fetchone()
    if found is None:  # it went in this moment
        return None
    tape, title, folder, *rest = found
    return RankedEntry._make((tape, title, os.fsdecode(folder), *rest, score))
