"""The index: a list of all tapes that needs no look into them (tape.md §7).

It is derived: deleting it, or doing without it, changes no answer, only the time it takes.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from ..clock import now
from ..damage import warn_of_damage
from ..errors import TapeError, WriteFailed
from ..reference import is_prefix
from ..store import Store, only, random_hex
from ..text import well_formed
from .follower import Index, silent
from .left_out import LINK, LeftOut, left_out
from .tally import TapeRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..tape import Tape
    from .follower import Progress, Telling
    from .matching import Match

__all__ = [
    "LINK",
    "Index",
    "LeftOut",
    "Library",
    "TapeRow",
    "answer",
    "left_out",
    "open_store",
    "rebuild",
    "row_of",
    "rows",
    "search",
]

T = TypeVar("T")


class Library(NamedTuple):
    """A store, and the index that follows its writers. A context manager; closing is optional."""

    store: Store
    index: Index | None  # type: ignore[assignment]  # instead of tuple.index

    def close(self) -> None:
        """Let go of the index."""
        if self.index is not None:
            self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Indexed(Store):
    """A store that looks its tapes up in the index, where that can be used."""

    def open(self, prefix: str) -> Tape:
        """Open the tape whose id begins with `prefix`; raise NotFound or Ambiguous."""
        if isinstance(self.projection, Index) and is_prefix(prefix):
            with suppress(
                OSError, sqlite3.Error
            ):  # no index, or one behind: the files say the same
                return self.open_folder(only(prefix, "tape", self.projection.folders(prefix)))
        return super().open(prefix)


def open_store(
    path: Path,
    *,
    clock: Callable[[], int] = now,
    random: Callable[[int], str] = random_hex,
    index: bool = True,
    telling: Telling = silent,
) -> Library:
    """Return the store at `path` and its index, without looking at either.

    The store need not exist yet. The index is opened at its first use and made in a store that
    exists; one that cannot be used is done without. `telling` is asked for somebody to tell how far
    reading tapes has got whenever the index, or what stands in for it, has any to read.
    """
    if not index:
        return Library(Store(path, clock=clock, random=random), None)
    store = _Indexed(path, clock=clock, random=random)
    follower = Index(store, telling=telling)
    store.projection = follower
    return Library(store, follower)


def rows(
    store: Store, index: Index | None, *, cwd: str | None = None, limit: int | None = None
) -> list[TapeRow]:
    """Return the tapes newest first, at most `limit`; with `cwd` those that work there now.

    A tape that cannot be read is left out: `left_out` says which and why. Raises NewerFormat or
    Damaged of the store itself.
    """
    store.check()
    cwd = None if cwd is None else well_formed(cwd)
    if index is not None:
        try:
            return index.rows(cwd, limit)
        except (OSError, sqlite3.Error):  # no index, or one behind: the files say the same
            pass
    return _scanned(store, cwd)[:limit]


def answer(store: Store, index: Index | None, question: Callable[[sqlite3.Connection], T]) -> T:
    """Return what a question asks of the tables, with all that stands in the files in them.

    Where the index cannot be used, the same tables are made from the files for this question
    alone. It may be asked twice and must not write. Raises NewerFormat or Damaged of the store
    itself, WriteFailed where those tables cannot be made.
    """
    store.check()
    if index is not None:
        with suppress(OSError, sqlite3.Error):
            return index.answer(question)
    with _private(store, index.telling if index else silent) as own:
        return own.answer(question)


def search(
    store: Store,
    index: Index | None,
    query: str,
    *,
    types: Sequence[str] = (),
    project: str | None = None,
    model: str | None = None,
    since: str | None = None,
    until: str | None = None,
    limit: int = 20,
) -> list[Match]:
    """Return the entries that fit a query best, newer first among equals.

    The query's words must all be there; `"a phrase"`, `-without`, `begin*` and `one OR two` mean
    what they mean elsewhere, and all else, paths and identifiers too, means itself. The other
    arguments narrow the search as `narrowed` says. Committed entries are searched, up to now.

    Raises UsageError for a query with nothing to look for, NewerFormat or Damaged of the store.
    """
    from ..glance.ranking import narrowed  # noqa: PLC0415 (most commands search for nothing)
    from ..glance.words import match  # noqa: PLC0415
    from .matching import matches  # noqa: PLC0415

    expression, narrow = match(query), narrowed(types, project, model, since, until)
    return answer(store, index, lambda db: matches(db, store, expression, narrow, limit))


def rebuild(store: Store, progress: Progress = lambda _done, _total: None) -> int:
    """Make the index anew and return how many tapes it holds; see `rebuilding`.

    `progress` is told done and total. Raises Busy while another process does so, OSError or
    sqlite3.Error where it cannot be written, NewerFormat or Damaged of the store itself.
    """
    from .rebuilding import rebuilt  # noqa: PLC0415 (rare)

    return rebuilt(store, progress)


@contextmanager
def _private(store: Store, telling: Telling) -> Iterator[Index]:
    """Hold an index of one's own that goes afterwards."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 (only where there is no index)

    with TemporaryDirectory(prefix="tape-") as folder:
        index = Index(store, Path(folder), skipped=warn_of_damage)
        try:
            with telling() as tell:
                _fill(index, tell)
            yield index
        finally:
            index.close()


def _fill(index: Index, tell: Progress) -> None:
    try:
        index.fill(tell)
    except sqlite3.Error as error:
        raise WriteFailed(
            f"without an index its tables are made in the folder for temporary files: {error}"
        ) from error


def _scanned(store: Store, cwd: str | None) -> list[TapeRow]:
    found: dict[str, TapeRow] = {}
    for folder in store.folders():
        row = row_of(store, folder)
        if row is not None:
            found.setdefault(row.id, row)
    here = [row for row in found.values() if cwd in (None, row.cwd)]
    return sorted(here, key=lambda row: (row.updated, row.id), reverse=True)


def row_of(store: Store, folder: str) -> TapeRow | None:
    """Return the row of the tape in a folder by reading its files, None when that fails."""
    from .reading import read  # noqa: PLC0415 (only where there is no index)

    try:
        with store.open_folder(folder) as tape:
            return read(tape, folder).row
    except (OSError, TapeError):  # a damaged or newer one must not hide the others
        return None
