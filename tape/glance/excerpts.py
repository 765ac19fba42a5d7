"""The words of an entry → the part of them to show for a query, with marks; pure but for SQLite.

Nothing is imported that takes time, typing included.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from .words import space_cjk, unspace_cjk

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    Marks: TypeAlias = tuple[tuple[int, int], ...]
    Texts: TypeAlias = tuple[str, str, str]

EXCERPT_WIDTH = 160
"""Characters of an excerpt."""
_EXCERPT_LEAD = 40
"""Characters before what was found."""
_MARK_START, _MARK_END = "\x02", "\x03"
_NO_MARKS = str.maketrans(dict.fromkeys("\0\x02\x03", " "))


def build_excerpts(
    expression: str, texts: Sequence[Texts | None]
) -> Iterator[tuple[int, tuple[str, Marks]]]:
    """Yield the places of the texts that fit an FTS5 expression, and what to show of them.

    Each is what was said, called and answered. The full-text index itself says where, on a small
    one made for these texts.
    """
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE text USING fts5(said, called, answered)")
        db.executemany(
            "INSERT INTO text (rowid, said, called, answered) VALUES (?, ?, ?, ?)",
            [(at, *map(_flatten_text, text)) for at, text in enumerate(texts) if text],
        )
        found = db.execute(
            "SELECT rowid, highlight(text, 0, ?1, ?2), highlight(text, 1, ?1, ?2), "
            "highlight(text, 2, ?1, ?2) FROM text WHERE text MATCH ?3",
            (_MARK_START, _MARK_END, expression),
        )
        for at, *marked in found:
            yield at, cut_excerpt(max(marked, key=lambda text: min(text.count(_MARK_START), 9)))


def _flatten_text(text: str) -> str:
    return space_cjk(" ".join(text.translate(_NO_MARKS).split()))


def cut_excerpt(marked: str) -> tuple[str, Marks]:
    """Return the part of a marked text with the most marks in it, and where they are."""
    text, spans = _strip_marks(unspace_cjk(marked))
    first = _find_densest_mark(spans)
    begin = max(0, spans[first][0] - _EXCERPT_LEAD) if spans else 0
    if begin:
        begin = text.find(" ", begin - 1, spans[first][0]) + 1 or begin
    end = begin + EXCERPT_WIDTH
    if len(text) > end:
        end = max(text.rfind(" ", begin + EXCERPT_WIDTH // 2, end), begin) or end
        end = end if end > begin else begin + EXCERPT_WIDTH
    before, after = "…" if begin else "", "…" if end < len(text) else ""
    shift = begin - len(before)
    marks = tuple((s - shift, min(e, end) - shift) for s, e in spans if begin <= s < end)
    return before + text[begin:end] + after, marks


def _find_densest_mark(spans: Sequence[tuple[int, int]]) -> int:
    """Return which mark begins the stretch with the most marks; the first of equals."""
    best = count = 0
    last = 0
    for at, (start, _) in enumerate(spans):
        while last < len(spans) and spans[last][1] <= start + EXCERPT_WIDTH - _EXCERPT_LEAD:
            last += 1
        if last - at > count:
            best, count = at, last - at
    return best


def _strip_marks(marked: str) -> tuple[str, list[tuple[int, int]]]:
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    size = 0
    for part in marked.split(_MARK_START):
        inside, end, rest = part.partition(_MARK_END)
        if end:
            spans.append((size, size + len(inside)))
        parts += (inside, rest)
        size += len(inside) + len(rest)
    return "".join(parts), spans
