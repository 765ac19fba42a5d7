"""The index of a store as callers use it: open it, list, query, search, rebuild (tape.md §7).

The index is derived: deleting it, or doing without it, changes no answer, only the time it takes.
Each question here is asked of the index where one can be used, and of the files where not.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar, Unpack

from ..clock import read_clock
from ..damage import warn_of_damage
from ..errors import TapeError, WriteFailed
from ..ids import is_id_prefix
from ..store.store import Store, generate_hex, read_tape_identity, require_single_hit
from ..text import replace_surrogates
from . import lookups
from .database import (
    erase_removed_words,
)
from .projection import Index, report_nothing
from .reader import select_newest_tapes
from .tape_filter import EVERY_TAPE

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from ..store.store import TapeIdentity
    from ..store.tape import Tape
    from .catch_up import Progress, Telling
    from .full_text import SearchFilter
    from .reader import TapeRow
    from .search import SearchMatch
    from .tape_filter import Checkout, TapeFilter
    from .tape_record import TapeRecord

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

    index: Index | None = None

    def open(self, prefix: str) -> Tape:
        """Open the tape whose id begins with `prefix`; raise NotFound or Ambiguous."""
        if self.index is None or not is_id_prefix(prefix):
            return super().open(prefix)

        def open_indexed(index: Index) -> Tape:
            return self.open_folder(require_single_hit(prefix, "tape", index.folders(prefix)))

        return ask_index(self.index, open_indexed, partial(super().open, prefix))

    def has(self, tape: str) -> bool:
        """Return whether the store has the tape with this whole id."""
        return ask_index(
            self.index, lambda index: bool(index.folders(tape)), partial(super().has, tape)
        )

    def _iter_possible_children(
        self, tapes: AbstractSet[str], folder: Path
    ) -> Iterator[tuple[str, TapeIdentity]]:
        """Yield folder name and tape.json of tapes in a folder, at least those forked from some."""
        every = super()._iter_possible_children

        def select(index: Index) -> list[tuple[str, TapeIdentity]]:
            if not index.is_complete():  # one that is in no list may be a child too
                return [*every(tapes, folder)]
            names = index.answer(lambda db: lookups.select_children(db, tapes))
            return [(name, read_tape_identity(folder / name)) for name in names]

        if folder != self.tapes:
            yield from every(tapes, folder)
        else:
            yield from ask_index(self.index, select, lambda: [*every(tapes, folder)])


def open_store(
    path: str | os.PathLike[str],
    *,
    clock: Callable[[], int] = read_clock,
    random: Callable[[int], str] = generate_hex,
    index: bool = True,
    telling: Telling = report_nothing,
) -> Library:
    """Return the store at `path` and its index, without reading either.

    The store need not exist yet. The index is opened at its first use and created in a store that
    exists; if it cannot be used, the files are read instead. `telling` is called for a progress
    callback whenever tapes have to be read.
    """
    if not index:
        return Library(Store(path, clock=clock, random=random), None)
    store = _IndexedStore(path, clock=clock, random=random)

    def rebuild(progress: Progress) -> None:
        from .rebuild import rebuild_index

        rebuild_index(store, progress)

    follower = Index(store, telling=telling, rebuild=rebuild)
    store.projection = store.index = follower
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
    store: Store,
    index: Index | None,
    *,
    cwd: str | None = None,
    project: str | None = None,
    root: str | None = None,
    limit: int | None = None,
    waits: bool = True,
) -> list[TapeRow]:
    """Return the tapes newest first, at most `limit`.

    With `cwd` those that work there now; with `project`, the top of a repository, those whose
    project it is, or that work at its top; with `root` those of which `list_roots` says it.

    A tape that cannot be read is omitted: `find_unlisted` says which and why. Raises NewerFormat or
    Damaged of the store itself; without `waits` ManyNewTapes where the index has yet to be made.
    """
    store.check()
    cwd = None if cwd is None else replace_surrogates(cwd)
    project = None if project is None else replace_surrogates(project)

    def scan() -> list[TapeRow]:
        by_id: dict[str, TapeRow] = {}
        for folder in store.folders():
            row = read_tape_row(store, folder)
            if row is not None:
                by_id.setdefault(row.id, row)
        here = [
            row
            for row in by_id.values()
            if cwd in (None, row.cwd)
            and project in (None, row.project, row.cwd)
            and root in (None, find_root(row))
        ]
        return sorted(here, key=lambda row: (row.updated, row.id), reverse=True)[:limit]

    return ask_index(index, lambda index: index.rows(cwd, limit, project, root, waits=waits), scan)


def read_tape_rows(store: Store, index: Index | None, tapes: Sequence[str]) -> list[TapeRow]:
    """Return the rows of some tapes, given by their ids, newest first."""

    def scan() -> list[TapeRow]:
        return [row for row in list_tapes(store, None) if row.id in {*tapes}]

    return ask_index(
        index, lambda index: index.answer(partial(lookups.select_rows_of, tapes)), scan
    )


def list_roots(store: Store, index: Index | None) -> list[str]:
    """Return the project of each tape, or else its folder, each once and in order.

    Raises as `list_tapes` does.
    """
    store.check()

    def scan() -> list[str]:
        return sorted({find_root(row) for row in list_tapes(store, None)} - {""})

    return ask_index(index, lambda index: index.answer(lookups.select_roots), scan)


def find_root(row: TapeRow) -> str:
    """Return the project of a tape, or else its folder."""
    return row.cwd if row.project is None else row.project


def list_newest_tapes(
    store: Store,
    index: Index | None,
    limit: int | None,
    checkout: Checkout | None,
    narrow: TapeFilter = EVERY_TAPE,
) -> list[TapeRow]:
    """Return the tapes that `reader.fetch_newest_tapes` does, after catching up."""
    store.check()
    return ask_index(
        index,
        lambda index: index.answer(lambda db: select_newest_tapes(db, limit, checkout, narrow)),
        lambda: [row for row in list_tapes(store, None) if narrow.matches(row)],
    )


def read_tape_row(store: Store, folder: str) -> TapeRow | None:
    """Return the row of the tape in a folder from its files; None if that fails."""
    try:
        with store.open_folder(folder) as tape:
            return _read_tape_record(tape, folder).row
    except (OSError, TapeError):  # a damaged or newer one must not hide the others
        return None


def _read_tape_record(tape: Tape, folder: str) -> TapeRecord:
    """Return what the index holds of a tape itself, from its files alone.

    Read again while redactions are found that name entries read before them.
    """
    from .ingest import read_runs  # only where there is no index
    from .tape_record import PhaseTally
    from .tape_sync import build_tape_record

    redacted: set[str] = set()
    while True:
        refs, phases = tape.refs(), dict[str, PhaseTally]()
        named = {
            target
            for run in read_runs(tape, refs, phases, redacted)
            for line in run.lines
            for target in line.contents.targets
        }
        if named <= redacted:
            return build_tape_record(tape, folder, refs, phases)
        redacted |= named


def query_index(
    store: Store, index: Index | None, question: Callable[[sqlite3.Connection], T]
) -> T:
    """Return the answer of a question to the tables, after they have caught up with the files.

    If the index cannot be used, the same tables are built from the files for this question. It may
    be called twice and must not write. Raises NewerFormat or Damaged of the store itself,
    WriteFailed if those tables cannot be created.
    """
    store.check()

    def ask_temporary_index() -> T:
        from tempfile import TemporaryDirectory  # only where there is no index

        telling = index.telling if index else report_nothing
        with (
            TemporaryDirectory(prefix="tape-") as folder,
            closing(Index(store, folder, skipped=warn_of_damage)) as own,
        ):
            try:
                with telling() as tell:
                    own.fill(tell)
            except sqlite3.Error as error:
                raise WriteFailed(
                    "without an index its tables are built in the folder for temporary files: "
                    f"{error}"
                ) from error
            return own.answer(question)

    return ask_index(index, lambda index: index.answer(question), ask_temporary_index)


def search_entries(
    store: Store,
    index: Index | None,
    query: str,
    *,
    limit: int = 20,
    **narrow: Unpack[SearchFilter],
) -> list[SearchMatch]:
    """Return the best matches of a query, newer first among equals.

    All words of the query must match; `"a phrase"`, `-without`, `begin*` and `one OR two` have
    their usual meaning, and everything else, paths and identifiers too, is literal. The other
    arguments filter the search as in `build_filter`. All committed entries are searched.

    An empty query finds the newest entries that the other arguments leave, or raises UsageError
    without any. Raises UsageError for a query with nothing to search for, NewerFormat or Damaged of
    the store.
    """
    from .full_text import build_search  # only a search needs these
    from .search import find_matches

    expression, where = build_search(query, **narrow)
    home = store.home

    def question(db: sqlite3.Connection) -> list[SearchMatch]:
        # Where another process writes, words that are left only affect the ranking.
        with suppress(sqlite3.OperationalError):
            erase_removed_words(db)
        return find_matches(db, home, expression, where, limit)

    return query_index(store, index, question)


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
    """Return the folders that lists omit, by name; those the index holds are not read.

    Raises NewerFormat or Damaged of the store itself, OSError where `tapes/` cannot be read.
    """
    from .tables import TapeLocation, select_locations  # only lists ask

    def select_known(index: Index) -> dict[str, TapeLocation] | None:
        return None if index.is_complete() else index.answer(select_locations)

    known = ask_index(index, select_known, dict[str, TapeLocation])
    if known is None:
        return []
    folders = {place.folder for place in known.values()}
    ids = {tape: place.folder for tape, place in known.items() if place.folder}
    unlisted = [UnlistedFolder(name, LINK_REASON, is_unread=False) for name in store.links()]
    unlisted += [
        reason
        for name in store.folders()
        if name not in folders and (reason := _explain_unlisted(store, name, ids))
    ]
    return sorted(unlisted)


def _explain_unlisted(store: Store, name: str, ids: dict[str, str]) -> UnlistedFolder | None:
    """Return why a tape is in no list, None where it should be; add its id and folder to `ids`."""
    try:
        with store.open_folder(name) as tape:
            if ids.setdefault(tape.id, name) != name:
                why = f"the same tape as {ids[tape.id]}, which stands for both"
                return UnlistedFolder(name, why, is_unread=False)
            _read_tape_record(tape, name)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return UnlistedFolder(name, f"cannot be read: {where}{error.strerror}", is_unread=True)
    except TapeError as error:
        cause = error.__cause__
        is_unread = isinstance(cause, OSError) and not isinstance(
            cause, FileNotFoundError | NotADirectoryError | IsADirectoryError
        )
        return UnlistedFolder(name, str(error).removeprefix(f"{name} is "), is_unread)
    return None
