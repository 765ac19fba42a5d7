"""Full text over all tapes: ranked in SQLite, shown from the lines themselves.

Invariant: of the transcripts only the lines of the hits that are returned are read. A hit whose
line no longer says what was asked for, because it was redacted just now or changed on the disk, is
left out; the latter is said.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ..checked import ADVICE
from ..clock import stamp
from ..damage import warn_of_damage
from ..errors import Damaged, TapeError
from ..glance.excerpts import excerpts
from ..glance.ranking import Hit, best
from ..line import data_holds, is_going, read_header
from .contents import contents
from .erasing import erase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store import Store
    from .contents import Words


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


def matches(
    db: sqlite3.Connection,
    store: Store,
    expression: str,
    narrow: tuple[str, Sequence[object]],
    limit: int,
) -> list[Match]:
    """Return what fits an FTS5 expression best, newer first among equals, each entry once.

    `narrow` is more of a WHERE clause and its values, as `narrowed` gives them.
    """
    with suppress(sqlite3.OperationalError):  # another writes: old words only weigh a little
        erase(db)
    hits = best(db, expression, narrow, limit)
    shown = dict(excerpts(expression, [_words(store, hit) for hit in hits]))
    return [_match(hit, *shown[at]) for at, hit in enumerate(hits) if at in shown]


def _match(hit: Hit, snippet: str, marks: tuple[tuple[int, int], ...]) -> Match:
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


def _words(store: Store, hit: Hit) -> Words | None:
    """Return the text of a hit from its line; None where that is not what it was.

    Of what went just now nothing is said; what was changed on the disk is a DamageWarning.
    """
    try:
        with store.open_folder(hit.folder) as tape, tape.phases.open(hit.phase) as file:
            line = file.read(hit.offset, hit.offset + hit.length)
    except (OSError, TapeError):  # moved or gone in this moment
        return None
    try:
        header = read_header(line)
        if header.id != hit.entry:
            raise Damaged("another one stands there")
        if not data_holds(line, header) and not is_going(line, header):
            raise Damaged("its data does not match its hash")
    except TapeError as error:
        place = f"{hit.tape[:8]} {hit.phase}: line at byte {hit.offset} skipped"
        warn_of_damage(f"{place}: entry {hit.entry[:12]}: {error}; {ADVICE}")
        return None
    return contents(header, line).words
