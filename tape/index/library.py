"""The index: lists and search over all tapes without reading them (tape.md §7).

It is derived: deleting it, or working without it, changes no answer, only the time it takes.

Folders of a store that lists leave out because they cannot be read, and why; reads only.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from ..clock import read_clock
from ..damage import warn_of_damage
from ..errors import TapeError, WriteFailed
from ..reference import is_id_prefix
from ..store.store import Store, generate_hex, require_single_hit
from ..text import replace_surrogates
from . import tables
from .projection import Index, report_nothing
from .records import TapeRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..store.tape import Tape
    from .projection import Progress, Telling
    from .search import SearchMatch


__all__ = [
    "LINK_REASON",
    "Index",
    "Library",
    "TapeRow",
    "UnlistedFolder",
    "find_unlisted",
    "list_tapes",
    "open_store",
    "query_index",
    "read_tape_row",
    "rebuild_index",
    "search_entries",
]

T = TypeVar("T")


class Library(NamedTuple):
    """A store with its index. A context manager; closing is optional."""

    store: Store
    index: Index | None  # type: ignore[assignment]  # instead of tuple.index

    def close(self) -> None:
        """Close the index."""
        if self.index is not None:
            self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _IndexedStore(Store):
    """A store that finds its tapes by the index, if that can be used."""

    def open(self, prefix: str) -> Tape:
        """Open the tape whose id begins with `prefix`; raise NotFound or Ambiguous."""
        if isinstance(self.projection, Index) and is_id_prefix(prefix):
            with suppress(OSError, sqlite3.Error):  # no index, or one behind: read the files
                return self.open_folder(
                    require_single_hit(prefix, "tape", self.projection.folders(prefix))
                )
        return super().open(prefix)


def open_store(
    path: Path,
    *,
    clock: Callable[[], int] = read_clock,
    random: Callable[[int], str] = generate_hex,
    index: bool = True,
    telling: Telling = report_nothing,
) -> Library:
    """Return the store at `path` and its index, without reading either.

    The store need not exist yet. The index is opened at its first use, and created in a store that
    exists; if it cannot be used, the files are read instead. `telling` is called for a progress
    callback whenever tapes have to be read.
    """
    if not index:
        return Library(Store(path, clock=clock, random=random), None)
    store = _IndexedStore(path, clock=clock, random=random)
    follower = Index(store, telling=telling)
    store.projection = follower
    return Library(store, follower)


def ask_index(index: Index | None, question: Callable[[Index], T], otherwise: Callable[[], T]) -> T:
    """Return what the index answers, or what `otherwise` does where the index cannot be used.

    It cannot be used where there is none, or where asking it raises OSError or sqlite3.Error: it is
    locked, cannot be brought up to date, or the disk fails. The files hold the same answer.
    """
    if index is not None:
        with suppress(OSError, sqlite3.Error):
            return question(index)
    return otherwise()


def list_tapes(
    store: Store, index: Index | None, *, cwd: str | None = None, limit: int | None = None
) -> list[TapeRow]:
    """Return the tapes newest first, at most `limit`; with `cwd` those whose current folder it is.

    A tape that cannot be read is left out: `left_out` says which and why. Raises NewerFormat or
    Damaged of the store itself.
    """
    store.check()
    cwd = None if cwd is None else replace_surrogates(cwd)
    if index is not None:
        try:
            return index.rows(cwd, limit)
        except (OSError, sqlite3.Error):  # no index, or one behind: read the files
            pass
    return _scan_tapes(store, cwd)[:limit]


def query_index(
    store: Store, index: Index | None, question: Callable[[sqlite3.Connection], T]
) -> T:
    """Return the answer of a question to the tables, after they have caught up with the files.

    If the index cannot be used, the same tables are built from the files for this question. It may
    be called twice and must not write. Raises NewerFormat or Damaged of the store itself,
    WriteFailed if those tables cannot be created.
    """
    store.check()
    if index is not None:
        with suppress(OSError, sqlite3.Error):
            return index.answer(question)
    with _open_private_index(store, index.telling if index else report_nothing) as own:
        return own.answer(question)


def search_entries(
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
) -> list[SearchMatch]:
    """Return the best matches of a query, newer first among equals.

    All words of the query must match; `"a phrase"`, `-without`, `begin*` and `one OR two` have
    their usual meaning, and everything else, paths and identifiers too, is literal. The other
    arguments filter the search as `narrowed` says. All committed entries are searched.

    Raises UsageError for a query with nothing to search for, NewerFormat or Damaged of the store.
    """
    from .fast_text import (
        build_filter,
        build_match_expression,
    )
    from .search import find_matches  # noqa: PLC0415

    expression, narrow = (
        build_match_expression(query),
        build_filter(types, project, model, since, until),
    )
    return query_index(store, index, lambda db: find_matches(db, store, expression, narrow, limit))


def rebuild_index(store: Store, progress: Progress = lambda _done, _total: None) -> int:
    """Rebuild the index and return the number of tapes in it; see `rebuilding`.

    `progress` is called with done and total. Raises Busy while another process does so, OSError or
    sqlite3.Error if it cannot be written, NewerFormat or Damaged of the store itself.
    """
    from .rebuild import replace_index  # noqa: PLC0415 (rare)

    return replace_index(store, progress)


@contextmanager
def _open_private_index(store: Store, telling: Telling) -> Iterator[Index]:
    """Yield a temporary index that is deleted afterwards."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 (only where there is no index)

    with TemporaryDirectory(prefix="tape-") as folder:
        index = Index(store, Path(folder), skipped=warn_of_damage)
        try:
            with telling() as tell:
                _fill_private_index(index, tell)
            yield index
        finally:
            index.close()


def _fill_private_index(index: Index, tell: Progress) -> None:
    try:
        index.fill(tell)
    except sqlite3.Error as error:
        raise WriteFailed(
            f"without an index its tables are built in the folder for temporary files: {error}"
        ) from error


def _scan_tapes(store: Store, cwd: str | None) -> list[TapeRow]:
    found: dict[str, TapeRow] = {}
    for folder in store.folders():
        row = read_tape_row(store, folder)
        if row is not None:
            found.setdefault(row.id, row)
    here = [row for row in found.values() if cwd in (None, row.cwd)]
    return sorted(here, key=lambda row: (row.updated, row.id), reverse=True)


def read_tape_row(store: Store, folder: str) -> TapeRow | None:
    """Return the row of the tape in a folder from its files; None if that fails."""
    from .ingest import read_tape_record  # noqa: PLC0415 (only where there is no index)

    try:
        with store.open_folder(folder) as tape:
            return read_tape_record(tape, folder).row
    except (OSError, TapeError):  # skip a damaged or newer one
        return None


LINK_REASON = (
    "a symbolic link in the place of a tape: links are not followed, move the tape itself here"
)
"""The reason for a link in `tapes/`."""


class UnlistedFolder(NamedTuple):
    """A folder in `tapes/` whose tape is in no list."""

    folder: str
    why: str
    is_unread: bool
    """The system refused to read it: the tape itself may be intact."""


def find_unlisted(store: Store, index: Index | None) -> list[UnlistedFolder]:
    """Return the folders that lists leave out, by name; those the index holds are not read.

    Raises NewerFormat or Damaged of the store itself, OSError where `tapes/` cannot be read.
    """
    known: dict[str, tables.TapeLocation] = {}
    if index is not None:
        with suppress(OSError, sqlite3.Error):  # no index: check every tape
            if index.is_complete():
                return []
            known = index.answer(tables.select_locations)
    folders = {place.folder for place in known.values()}
    ids = {tape: place.folder for tape, place in known.items() if place.folder}
    found = [UnlistedFolder(name, LINK_REASON, is_unread=False) for name in store.links()]
    for name in store.folders():
        if name not in folders:
            found += _explain_unlisted(store, name, ids)
    return sorted(found)


def _explain_unlisted(store: Store, name: str, ids: dict[str, str]) -> list[UnlistedFolder]:
    """Return why a tape is left out, empty if it is not; note it in `ids`."""
    from .ingest import read_tape_record  # noqa: PLC0415 (most stores leave nothing out)

    try:
        with store.open_folder(name) as tape:
            if ids.setdefault(tape.id, name) != name:
                why = f"the same tape as {ids[tape.id]}, which stands for both"
                return [UnlistedFolder(name, why, is_unread=False)]
            read_tape_record(tape, name)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return [UnlistedFolder(name, f"cannot be read: {where}{error.strerror}", is_unread=True)]
    except TapeError as error:
        why = str(error).removeprefix(f"{name} is ")
        return [UnlistedFolder(name, why, _is_disk_error(error.__cause__))]
    return []


def _is_disk_error(error: BaseException | None) -> bool:
    """Return whether an error is of the disk, not of the data on it."""
    return isinstance(error, OSError) and not isinstance(
        error, FileNotFoundError | NotADirectoryError | IsADirectoryError
    )
