"""Full text over all tapes: ranked in SQLite, shown from the lines themselves.

Invariant: of the transcripts only the lines of the hits that are returned are read. A hit whose
line no longer says what was asked for, because it was redacted just now, is left out.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..clock import micros, stamp
from ..errors import TapeError
from ..line import read_header
from ..phase import ORIGIN
from .contents import contents
from .erasing import erase
from .words import spaced, unspaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..store import Store
    from .contents import Words

WIDTH = 160
"""Characters of a snippet."""
_LEAD = 40
"""Characters before what was found."""
_START, _END = "\x02", "\x03"
_PLAIN = str.maketrans(dict.fromkeys("\0\x02\x03", " "))
_FEW = 1_000
"""Hits that are looked at beyond those that are wanted, before all are."""
_RANK = "bm25(text, 4.0, 2.0, 1.0)"
"""What was said counts more than arguments of tools, and those more than their results."""


class Match(Struct, frozen=True, gc=False):
    """One entry that a search found."""

    tape: str
    """32 hex digits."""
    title: str | None
    folder: str
    phase: str
    offset: int
    entry: str
    """40 hex digits."""
    n: int
    time: str
    """As on the tape: UTC with microseconds."""
    type: str
    branch: str | None
    """The branch its phase was written on."""
    snippet: str
    """The words around what was found, in one line."""
    marks: tuple[tuple[int, int], ...]
    """Start and end, in characters of the snippet, of each thing that was found."""
    score: float
    """The higher, the better it fits."""


class Wanted(NamedTuple):
    """What a search asks for; an empty part asks for nothing."""

    expression: str
    """Of FTS5."""
    types: Sequence[str] = ()
    project: str | None = None
    """Absolute folder: tapes that work in it or below, or whose project stands there."""
    model: str | None = None
    """Part of `provider/model`: answers of such a model, and the rest of tapes that have some."""
    since: str | None = None
    """Time as on a tape, as is `until`, which is not included."""
    until: str | None = None


class _Hit(NamedTuple):
    tape: str
    title: str | None
    folder: str
    phase: str
    branch: str | None
    offset: int
    length: int
    entry: str
    n: int
    time: int
    type: str
    score: float


def matches(db: sqlite3.Connection, store: Store, wanted: Wanted, limit: int) -> list[Match]:
    """Return what fits best, newer first among equals, each entry once."""
    with suppress(sqlite3.OperationalError):  # another writes: old words only weigh a little
        erase(db)
    ranked = _ranked(db, wanted, limit)
    hits = [hit for key, score in ranked if (hit := _hit(db, key, score)) is not None]
    shown = dict(_snippets(wanted.expression, _words(store, hits)))
    return [_match(hit, *shown[at]) for at, hit in enumerate(hits) if at in shown]


def _ranked(db: sqlite3.Connection, wanted: Wanted, limit: int) -> list[tuple[int, float]]:
    """Return keys and scores, best first; where copies of an entry stand, the original's.

    Words that stand nearly everywhere are not looked up to the last: those that fit best do,
    unless they leave open which come first.
    """
    most = limit + _FEW
    found, last = _best(db, wanted, limit, most)
    if last is not None and (len(found) < limit or -found[-1][1] == last):
        found, _ = _best(db, wanted, limit, -1)
    return found


def _best(
    db: sqlite3.Connection, wanted: Wanted, limit: int, most: int
) -> tuple[list[tuple[int, float]], float | None]:
    """Return the best of `most` that fit (−1: of all), and the worst rank if there may be more."""
    where, values = _filters(wanted)
    rows = db.execute(
        "WITH fit AS MATERIALIZED (SELECT rowid AS key, "  # noqa: S608 (our own names)
        f"{_RANK} AS score FROM text WHERE text MATCH ? ORDER BY score LIMIT ?) "
        "SELECT e.key, f.score, e.id, (SELECT count(*) FROM fit), (SELECT max(score) FROM fit) "
        "FROM fit f CROSS JOIN entries e ON e.key = f.key JOIN types k ON k.key = e.type "
        "JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape "
        f"WHERE t.folder <> ''{where} ORDER BY f.score, e.time DESC, e.id, p.name = ?, t.id",
        (wanted.expression, most, *values, ORIGIN),
    )
    best: dict[bytes, tuple[int, float]] = {}
    count, last = most, 0.0
    for key, score, entry, count, last in rows:  # noqa: B007 (the same in each)
        if len(best) == limit and entry not in best:
            break
        best.setdefault(entry, (key, -score))
    return list(best.values()), last if count == most else None


def _filters(wanted: Wanted) -> tuple[str, list[object]]:
    """Return more of a WHERE clause, and its values."""
    where, values = "", list[object]()
    if wanted.types:
        where += f" AND k.name IN ({', '.join('?' * len(wanted.types))})"
        values += wanted.types
    if wanted.project is not None:
        root = wanted.project.rstrip("/") + "/"
        where += " AND (substr(t.cwd || '/', 1, ?) = ? OR substr(t.project || '/', 1, ?) = ?)"
        values += (len(root), root) * 2
    if wanted.model is not None:
        fits = "instr(lower(u.provider || '/' || u.model), lower(?)) > 0"
        where += (
            " AND CASE k.name WHEN 'assistant' THEN EXISTS "  # noqa: S608 (our own names)
            f"(SELECT 1 FROM usage u WHERE u.entry = e.key AND {fits}) ELSE p.tape IN "
            "(SELECT q.tape FROM usage u JOIN entries f ON f.key = u.entry "
            f"JOIN phases q ON q.key = f.phase WHERE u.purpose = 'answer' AND {fits}) END"
        )
        values += (wanted.model, wanted.model)
    for time, sign in ((wanted.since, ">="), (wanted.until, "<")):
        if time is not None:
            where += f" AND e.time {sign} ?"
            values.append(micros(time))
    return where, values


def _hit(db: sqlite3.Connection, key: int, score: float) -> _Hit | None:
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
    return _Hit._make((tape, title, os.fsdecode(folder), *rest, score))


def _match(hit: _Hit, snippet: str, marks: tuple[tuple[int, int], ...]) -> Match:
    return Match(
        hit.tape,
        hit.title,
        hit.folder,
        hit.phase,
        hit.offset,
        hit.entry,
        hit.n,
        stamp(hit.time),
        hit.type,
        hit.branch,
        snippet,
        marks,
        hit.score,
    )


def _words(store: Store, hits: Iterable[_Hit]) -> list[Words | None]:
    """Return the text of each hit from its line; None where that is not what it was."""
    return [_words_of(store, hit) for hit in hits]


def _words_of(store: Store, hit: _Hit) -> Words | None:
    try:
        with store.open_folder(hit.folder) as tape, tape.phases.open(hit.phase) as file:
            line = file.read(hit.offset, hit.offset + hit.length)
        header = read_header(line)
    except (OSError, TapeError):  # moved, damaged or gone in this moment
        return None
    return contents(header, line).words if header.id == hit.entry else None


def _snippets(
    expression: str, words: Sequence[Words | None]
) -> Iterable[tuple[int, tuple[str, tuple[tuple[int, int], ...]]]]:
    """Yield the places of the texts that fit an expression, and what to show of them.

    The full-text index itself says where, on a small one made for these texts.
    """
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE text USING fts5(said, called, answered)")
        db.executemany(
            "INSERT INTO text (rowid, said, called, answered) VALUES (?, ?, ?, ?)",
            [(at, *map(_plain, text)) for at, text in enumerate(words) if text],
        )
        found = db.execute(
            "SELECT rowid, highlight(text, 0, ?1, ?2), highlight(text, 1, ?1, ?2), "
            "highlight(text, 2, ?1, ?2) FROM text WHERE text MATCH ?3",
            (_START, _END, expression),
        )
        for at, *marked in found:
            yield at, snippet(max(marked, key=lambda text: min(text.count(_START), 9)))


def _plain(text: str) -> str:
    return spaced(" ".join(text.translate(_PLAIN).split()))


def snippet(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the part of a marked text with the most marks in it, and where they are."""
    text, spans = _unmarked(unspaced(marked))
    first = _fullest(spans)
    begin = max(0, spans[first][0] - _LEAD) if spans else 0
    if begin:
        begin = text.find(" ", begin - 1, spans[first][0]) + 1 or begin
    end = begin + WIDTH
    if len(text) > end:
        end = max(text.rfind(" ", begin + WIDTH // 2, end), begin) or end
        end = end if end > begin else begin + WIDTH
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    shift = begin - len(before)
    marks = tuple((s - shift, min(e, end) - shift) for s, e in spans if begin <= s < end)
    return before + text[begin:end] + after, marks


def _fullest(spans: Sequence[tuple[int, int]]) -> int:
    """Return which mark begins the stretch with the most marks; the first of equals."""
    best = count = 0
    last = 0
    for at, (start, _) in enumerate(spans):
        while last < len(spans) and spans[last][1] <= start + WIDTH - _LEAD:
            last += 1
        if last - at > count:
            best, count = at, last - at
    return best


def _unmarked(marked: str) -> tuple[str, list[tuple[int, int]]]:
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    size = 0
    for part in marked.split(_START):
        inside, end, rest = part.partition(_END)
        if end:
            spans.append((size, size + len(inside)))
        parts += (inside, rest)
        size += len(inside) + len(rest)
    return "".join(parts), spans
