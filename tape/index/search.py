"""Full-text search over all tapes: ranked in SQLite, excerpts from the lines themselves.

Invariant: of the transcripts only the lines of the returned hits are read. A hit whose line no
longer matches, because it was just redacted or changed on the disk, is left out; a change is
reported.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ..clock import format_timestamp
from ..damage import warn_of_damage
from ..errors import Damaged, TapeError
from ..model.line import has_valid_data, is_redaction_begun, read_header
from ..store.path import FSCK_ADVICE
from .contents import extract_contents
from .database import erase_removed_words
from .fast_search import extract_prompt_text
from .full_text import FoundPrompt, find_hits, find_prompt_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..store.store import Store
    from .contents import EntryWords
    from .full_text import RankedEntry


class SearchMatch(Struct, frozen=True, gc=False):
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
    """The text around the match, in one line."""
    marks: tuple[tuple[int, int], ...]
    """Start and end, in characters of the snippet, of each match."""
    score: float
    """The higher, the better the match."""
    prompt: FoundPrompt | None = None
    """The prompt that led to it, where it is not one itself."""


def find_matches(
    db: sqlite3.Connection,
    store: Store,
    expression: str,
    narrow: tuple[str, Sequence[object]],
    limit: int,
) -> list[SearchMatch]:
    """Return the best matches of an FTS5 expression, newer first among equals, each entry once.

    `narrow` is more of a WHERE clause and its values, as `build_filter` gives them.
    """
    with suppress(
        sqlite3.OperationalError
    ):  # another process writes: stale words only affect the ranking
        erase_removed_words(db)
    hits = find_hits(db, expression, narrow, limit, lambda *hit: _read_hit_words(store, *hit))
    return [
        SearchMatch(
            *(hit.tape, hit.title, hit.folder, hit.phase, hit.offset, hit.entry, hit.n),
            *(format_timestamp(hit.time), hit.type, hit.branch, text, marks, hit.score),
            prompt=_read_prompt(db, store, hit),
        )
        for hit, text, marks in hits
    ]


def _read_prompt(db: sqlite3.Connection, store: Store, hit: RankedEntry) -> FoundPrompt | None:
    """Return the prompt that led to a hit; None where it is unknown, redacted or damaged."""
    found = find_prompt_line(db, hit)
    if found is None:
        return None
    entry, offset, length = found
    with (
        suppress(OSError, TapeError, ValueError),
        store.open_folder(hit.folder) as tape,
        tape.phases.open(hit.phase) as file,
    ):
        return FoundPrompt(entry, extract_prompt_text(file.read(offset, offset + length), entry))
    return None


def _read_hit_words(
    store: Store, hit: RankedEntry, may_match: Callable[[bytes], bool]
) -> EntryWords | None:
    """Return the text of a hit from its line; None if it changed, or `may_match` is False for it.

    A line that was just redacted or moved is left out silently; one that changed on the disk gives
    a DamageWarning.
    """
    try:
        with store.open_folder(hit.folder) as tape, tape.phases.open(hit.phase) as file:
            line = file.read(hit.offset, hit.offset + hit.length)
    except (OSError, TapeError):  # it was just moved or deleted
        return None
    try:
        header = read_header(line)
        if header.id != hit.entry:
            raise Damaged("another entry is there")
        if not has_valid_data(line, header) and not is_redaction_begun(line, header):
            raise Damaged("its data does not match its hash")
    except TapeError as error:
        place = f"{hit.tape[:8]} {hit.phase}: line at byte {hit.offset} skipped"
        warn_of_damage(f"{place}: entry {hit.entry[:12]}: {error}; {FSCK_ADVICE}")
        return None
    return extract_contents(header, line).words if may_match(line) else None
