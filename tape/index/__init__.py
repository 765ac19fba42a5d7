"""The index: a list of all tapes that needs no look into them (tape.md §7).

It is derived: deleting it, or doing without it, changes no answer, only the time it takes.
"""

from __future__ import annotations

import secrets
import sqlite3
from typing import TYPE_CHECKING, NamedTuple, Self

from ..clock import now
from ..errors import TapeError
from ..store import Store
from .follower import Index
from .tally import TapeRow, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Index", "Library", "TapeRow", "open_store", "row_of", "rows"]


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


def open_store(
    path: Path,
    *,
    clock: Callable[[], int] = now,
    random: Callable[[int], str] = secrets.token_hex,
    index: bool = True,
) -> Library:
    """Return the store at `path` and its index, without looking at either.

    The store need not exist yet. The index is opened at its first use and made in a store that
    exists; one that cannot be used is done without.
    """
    store = Store(path, clock=clock, random=random)
    if not index:
        return Library(store, None)
    follower = Index(store)
    store.projection = follower
    return Library(store, follower)


def rows(
    store: Store, index: Index | None, *, cwd: str | None = None, limit: int | None = None
) -> list[TapeRow]:
    """Return the tapes newest first, at most `limit`; with `cwd` those that work there now.

    A tape whose tape.json or journal cannot be read is left out. Raises NewerFormat or Damaged of
    the store itself.
    """
    store.check()
    cwd = None if cwd is None else _as_written(cwd)
    if index is not None:
        try:
            return index.rows(cwd, limit)
        except (OSError, sqlite3.Error):  # no index, or one behind: the files say the same
            pass
    return _scanned(store, cwd)[:limit]


def _as_written(cwd: str) -> str:
    """Return a path as a tape says it: what is not Unicode became U+FFFD."""
    return cwd.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
    try:
        with store.open_folder(folder) as tape:
            return read(tape, folder, {}).row
    except (OSError, TapeError):  # a damaged or newer one must not hide the others
        return None
