"""Search in the catalogue of a remote in PostgreSQL: words first, then the newest of what has them.

The server is never asked for the newest entries that have a word: for one that is nowhere it would
read all of them. Words are looked for first, and of what has them few are sorted. For words that
very many entries have, a limited number of the newest entries is looked through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..clock import format_timestamp
from ..errors import UsageError
from ..index.full_text import QUERY_TERM
from ..text import replace_surrogates
from .contents import read_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .postgres import PostgresRemote

_COMMON = 5_000
"""Entries that the server expects to find from which on a word is common."""
_FEW = 2_000
"""Entries found that are sorted by time, whatever it expected."""
_MANY = 20_000
"""How many of the newest entries are looked through for a common word."""
TEAM = "team = %(team)s"
MICROS = "(extract(epoch FROM {}) * 1000000)::bigint"
TO_TIME = "'epoch'::timestamptz + {} * interval '1 microsecond'"
_FOUND = "tape, entry, time, type, head"
_SHOWN = f"tape, entry, {MICROS.format('time')}, type, head"
_NAMED = (
    f"SELECT id, title, project, person, machine FROM tape.tapes WHERE {TEAM} "
    "AND id = ANY (%(tapes)s::bytea[])"
)
_CONDITIONS = {
    "types": "type = ANY (%(types)s::text[])",
    "since": f"time >= {TO_TIME.format('%(since)s::bigint')}",
    "until": f"time < {TO_TIME.format('%(until)s::bigint')}",
    "project": f"tape IN (SELECT id FROM tape.tapes WHERE {TEAM} AND (project = %(project)s "
    "OR starts_with(project, %(project)s || '/') OR repository = %(project)s))",
}


class CatalogueFilter(NamedTuple):
    """What a search is narrowed to; times are in µs since 1970."""

    types: Sequence[str] = ()
    since: int = 0
    until: int = 0
    project: str = ""
    """A folder that the tapes work in or below, or their repository."""


EVERYTHING = CatalogueFilter()


class CatalogueMatch(NamedTuple):
    """An entry that was found."""

    tape: str
    entry: str
    time: str
    type: str
    head: str
    """How its text begins."""
    title: str | None
    project: str | None
    person: str | None
    machine: str | None


def search_catalogue(
    remote: PostgresRemote, query: str, limit: int, narrow: CatalogueFilter = EVERYTHING
) -> list[CatalogueMatch]:
    """Return the newest entries that match a query as people write it; raise UsageError."""
    where, values = _build_conditions(narrow)
    values |= {"team": remote.team, "query": build_query(query), "limit": limit}
    hits = f"SELECT {_FOUND} FROM tape.said WHERE {' AND '.join(where)}"
    rows: list[tuple[Any, ...]] = []
    is_common = _estimate_rows(remote, hits, values) > _COMMON
    if not is_common:
        rows = remote.ask(_build_newest_first(f"{hits} LIMIT {_FEW + 1}"), values)
        is_common = bool(rows) and rows[0][-1] > _FEW
    if is_common:
        rows = remote.ask(_look_through(hits), values)
        if len(rows) < limit:
            rows = remote.ask(_build_newest_first(hits), values)
    tapes = [*dict.fromkeys(row[0] for row in rows)]
    named = remote.ask(_NAMED, {**values, "tapes": tapes}) if tapes else ()
    names = {tape: facts for tape, *facts in named}
    return [
        CatalogueMatch(
            tape.hex(),
            entry.hex(),
            format_timestamp(time),
            kind,
            head,
            *names.get(tape, [None] * 4),
        )
        for tape, entry, time, kind, head, *_ in rows
    ]


def _estimate_rows(remote: PostgresRemote, hits: str, values: dict[str, Any]) -> int:
    """Return how many hits the server expects, without looking for them."""
    ((plan,),) = remote.ask(f"EXPLAIN (FORMAT JSON) {hits}", values)
    return int(plan[0]["Plan"]["Plan Rows"])


def _build_newest_first(hits: str) -> str:
    """Return a query for the newest hits, which finds all of them first, and their number."""
    return (
        f"WITH hit AS MATERIALIZED ({hits}) SELECT {_SHOWN}, (SELECT count(*) FROM hit) FROM hit "
        "ORDER BY time DESC LIMIT %(limit)s"
    )


def _look_through(hits: str) -> str:
    """Return a query for the newest hits among a limited number of the newest entries."""
    newest = f"(SELECT * FROM tape.said WHERE {TEAM} ORDER BY time DESC LIMIT {_MANY})"
    some = hits.replace("FROM tape.said", f"FROM {newest} AS said")
    return f"WITH hit AS ({some} ORDER BY time DESC LIMIT %(limit)s) SELECT {_SHOWN} FROM hit"


def _build_conditions(narrow: CatalogueFilter) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions on an entry, and their values."""
    where = [TEAM, "words @@ to_tsquery('simple', %(query)s)"]
    values = {name: value for name, value in narrow._asdict().items() if value}
    if narrow.types:
        values["types"] = [*narrow.types]
    for name, condition in _CONDITIONS.items():
        if name in values:
            where.append(condition)
    return where, values


def clean_text(text: str) -> str:
    """Return a text as PostgreSQL takes it."""
    return replace_surrogates(text).replace("\0", " ")


def build_query(query: str) -> str:
    """Return a query as people write it for PostgreSQL; raise UsageError for one without a word.

    All words must match; `"a phrase"` matches exactly, `-word` excludes, `word*` matches a prefix,
    `one OR two` matches either.
    """
    groups: list[list[str]] = []
    unwanted: list[str] = []
    joined = False
    for part in QUERY_TERM.finditer(clean_text(query)):
        if part["word"] == "OR" and not part["sign"]:
            joined = bool(groups)
            continue
        words = read_words(part["phrase"] or part["word"] or "").split()
        if not words:
            continue
        goes_on = bool(part["star"]) or (part["word"] or "").endswith("*")
        term = " <-> ".join(f"'{word}'" for word in words) + (":*" if goes_on else "")
        if part["sign"]:
            unwanted.append(f"!({term})")
        elif joined:
            groups[-1].append(f"({term})")
        else:
            groups.append([f"({term})"])
        joined = False
    if not groups:
        raise UsageError(
            f"nothing to search for in {query!r}: give a word with a letter or a digit"
        )
    return " & ".join([f"({' | '.join(either)})" for either in groups] + unwanted)
