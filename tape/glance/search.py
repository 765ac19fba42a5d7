"""A search answered from the index as it stands and from the lines of its hits."""

from __future__ import annotations

import os

from ..clock import format_timestamp
from . import is_caught_up, query_fast
from .excerpts import build_excerpts
from .lines import extract_texts
from .ranking import rank_entries

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

    from .excerpts import Marks
    from .ranking import RankedEntry


def search_fast(
    home: str, expression: str, narrow: tuple[str, Sequence[object]], limit: int
) -> list[tuple[RankedEntry, str, Marks]] | None:
    """Return what fits best in the store at `home`, each hit with an excerpt and its marks.

    None where the index has to catch up or to erase first, or a line is not what it was.
    """

    def question(db: Connection) -> list[tuple[RankedEntry, str, Marks]] | None:
        erases = db.execute("SELECT 1 FROM removed LIMIT 1").fetchone()
        if erases or not is_caught_up(db, home):
            return None
        hits = rank_entries(db, expression, narrow, limit)
        shown = dict(
            build_excerpts(
                expression, [extract_texts(_read_hit_line(home, hit), hit) for hit in hits]
            )
        )
        if len(shown) < len(hits):
            return None
        told = [hit._replace(time=format_timestamp(hit.time)) for hit in hits]
        return [(hit, *shown[at]) for at, hit in enumerate(told)]

    return query_fast(home, question)


def _read_hit_line(home: str, hit: RankedEntry) -> bytes:
    path = os.path.join(home, "tapes", hit.folder, "phases", hit.phase, "entries.jsonl")  # noqa: PTH118 (at once)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.pread(fd, hit.length, hit.offset)
    finally:
        os.close(fd)
