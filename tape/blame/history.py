"""Which entry, tape and prompt last changed each line of a file: from all tapes and branches.

    candidate tapes   those where the index says that a call may name the file, else all
    file events       what calls on them did to files of that name (`calls`)
    history           those of this file, oldest first: it may have been moved by a patch, or its
                      project may have moved, so that tapes know it by an old path; and apart from
                      them those of the same file in other checkouts of its repository
    lines             which change brought in each line of the file as it is now (`replay`); what
                      this checkout does not explain, perhaps the others do

What the tapes say is checked against the file; a line they do not explain is nobody's.
"""

from __future__ import annotations

import os
import os.path
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..clock import parse_timestamp
from ..errors import NotFound, UsageError
from ..folders import locate_repository
from ..index.full_text import build_loose_expression, space_cjk
from ..index.library import ask_index
from ..repository import find_repository
from ..store.disk import read_file
from .calls import find_versioned_path, read_file_events
from .replay import AttributedChange, BlamedRange, SeenVersion, attribute_lines, fill_ranges

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..index.projection import Index
    from ..store.store import Store
    from .calls import FileEvent, VersionedPath


_TOUCHED_QUERY = """
    SELECT DISTINCT CAST(t.folder AS BLOB) FROM entries e
    JOIN phases p ON p.key = e.phase JOIN tapes t ON t.id = p.tape
    WHERE e.key IN (
        SELECT f.entry FROM files f
        WHERE f.path = :name OR substr(f.path, -length(:name) - 1) = '/' || :name
        UNION SELECT rowid FROM words WHERE words MATCH :named
    ) ORDER BY 1
"""


def find_candidate_folders(store: Store, index: Index | None, name: str) -> list[str]:
    """Return the folders of the tapes whose calls may have touched a file called `name`."""
    if not any(map(str.isalnum, name)):  # the index has no words to look for
        return store.folders()

    def select_touched(db: sqlite3.Connection) -> list[str]:
        quoted = space_cjk(name).replace('"', '""')
        values = {"name": name, "named": build_loose_expression(f'"{quoted}"')}
        return [os.fsdecode(folder) for (folder,) in db.execute(_TOUCHED_QUERY, values)]

    return ask_index(index, lambda index: index.answer(select_touched), store.folders)


class ChangeCause(Struct, frozen=True, gc=False):
    """The origin of a change."""

    tape: str
    """32 hex digits."""
    branch: str
    entry: str
    """Id of the answer with the call."""
    time: str
    """Time of the result; for a call without one, time of the call. UTC."""
    model: str | None
    prompt: str | None
    """First line of the newest prompt before it."""
    op: str
    """write, edit or patch."""


class FileHistory(NamedTuple):
    """The changes of a file, oldest first, with the texts seen between them."""

    here: list[AttributedChange[ChangeCause]]
    """Those in this checkout."""
    everywhere: list[AttributedChange[ChangeCause]]
    """With those in other checkouts of the repository; empty where there are none of these."""

    def select_until(self, second: int) -> FileHistory:
        """Return what was done until the end of a second since 1970."""
        here, everywhere = (
            [c for c in changes if parse_timestamp(c.by.time) // 1_000_000 <= second]
            for changes in self
        )
        return FileHistory(here, everywhere)

    def attribute_lines(self, text: str) -> list[BlamedRange[ChangeCause]]:
        """Return the ranges of lines of a text of the file, in order and without gaps.

        Each checkout has its own state, so the others only tell of lines that this one does not
        explain: those came from there.
        """
        ranges = attribute_lines(text, self.here)
        if self.everywhere:
            ranges = fill_ranges(ranges, attribute_lines(text, self.everywhere))
        return ranges


class _PathEvents:
    """Which events are those of a file; looks at each path once."""

    def __init__(self, read_events: Callable[[str], list[FileEvent]]) -> None:
        self._read_events = read_events
        self._real = cache(os.path.realpath)
        self._find_repository = cache(lambda top: find_repository(top, os.environ))
        self._locate = cache(locate_repository)

    def trace_lineage(
        self, path: str, until: str | None = None, *, everywhere: bool
    ) -> list[FileEvent]:
        """Return what was done to a file before a time, and to the file it was before a move.

        With `everywhere` also to that file in other checkouts of its repository.
        """
        own = self._find_own_events(path)
        if everywhere:
            own += self._find_events_elsewhere(path, own)
        own = sorted(
            (event for event in own if until is None or event.time < until),
            key=lambda event: (event.time, event.tape, event.n, event.place),
        )
        for at in reversed(range(len(own))):
            source = own[at].deed.source
            if source is not None and own[at].known:
                before = self.trace_lineage(source, own[at].time, everywhere=everywhere)
                return [*before, *own[at:]]
        return own

    def _read_named_events(self, path: str) -> list[FileEvent]:
        """Return the events of files that are called as this one, or as what it links to."""
        names = dict.fromkeys(os.path.basename(place) for place in (path, self._real(path)))
        return [event for name in names for event in self._read_events(name)]

    def _find_own_events(self, path: str) -> list[FileEvent]:
        """Return the events of a file, and of its old path if its project moved."""
        real, events = self._real(path), self._read_named_events(path)
        own = [
            event
            for event in events
            if any(place == path or self._real(place) == real for place in event.deed.where.paths)
        ]
        first = min((event.time for event in own), default=None)
        for event in events:
            tail = event.deed.where.tail
            if tail and real.endswith(tail) and (first is None or event.time < first):
                own.append(event)
        return own

    def _find_events_elsewhere(self, path: str, own: list[FileEvent]) -> list[FileEvent]:
        """Return the events of a file in other checkouts, but those that are its own.

        The file that one moved is named as in this checkout.
        """
        known = {(event.entry, event.place) for event in own}
        events = [
            event
            for event in self._read_named_events(path)
            if event.deed.where.versioned and (event.entry, event.place) not in known
        ]
        if not events:
            return []
        tops = {
            (place.repository, place.path): place.top
            for named in (path, self._real(path))
            for place in self._list_versioned_paths(named)
        }
        elsewhere = []
        for event in events:
            for place in self._list_event_paths(event):
                top = tops.get((place.repository, place.path))
                if top is None:
                    continue
                deed, source = event.deed, event.deed.source
                moved = source and find_versioned_path(source, place.top, place.repository)
                if moved:
                    deed = deed._replace(source=os.path.join(top, moved.path))
                elsewhere.append(event._replace(deed=deed))
                break
        return elsewhere

    def _list_versioned_paths(self, path: str) -> Iterator[VersionedPath]:
        """Yield the place of a file in its repository, and in those around it (submodules)."""
        top = self._locate(os.path.dirname(path))
        while top is not None:
            name = self._find_repository(top)
            place = name and find_versioned_path(path, top, name)
            if place:
                yield place
            above = os.path.dirname(top)
            top = None if above == top else self._locate(above)

    def _list_event_paths(self, event: FileEvent) -> Iterator[VersionedPath]:
        """Yield the place of a file in the repository that its tape names, and in a submodule."""
        versioned = event.deed.where.versioned
        if versioned is None:
            return
        yield versioned
        for path in event.deed.where.paths:
            folder = os.path.dirname(path)
            top = self._locate(folder) if os.path.isdir(folder) else None
            if top is not None and top.startswith(f"{versioned.top.rstrip('/')}/"):
                name = self._find_repository(top)
                place = name and find_versioned_path(path, top, name)
                if place:
                    yield place


def read_file_history(
    store: Store,
    index: Index | None,
    file: Path,
    skipped: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> FileHistory:
    """Return the changes of a file; empty if no tape has a change of it."""

    @cache
    def read_events(name: str) -> list[FileEvent]:
        by_place: dict[tuple[str, int], FileEvent] = {}
        tapes = find_candidate_folders(store, index, name)
        for done, folder in enumerate(tapes):
            progress(done, len(tapes))
            for event in read_file_events(store, folder, name, skipped):
                key = event.entry, event.place
                if key not in by_place or by_place[key].is_copy:
                    by_place[key] = event
        return list(by_place.values())

    path = os.path.abspath(file)  # links stay: a tape may know the file by one
    events = _PathEvents(read_events)
    here = events.trace_lineage(path, everywhere=False)
    everywhere = events.trace_lineage(path, everywhere=True)
    if everywhere == here:
        everywhere = []
    if not any(not isinstance(event.deed.work, SeenVersion) for event in (*here, *everywhere)):
        return FileHistory([], [])
    return FileHistory([*map(_read_change, here)], [*map(_read_change, everywhere)])


def _read_change(e: FileEvent) -> AttributedChange[ChangeCause]:
    cause = ChangeCause(e.tape, e.branch, e.entry, e.time, e.model, e.prompt, e.deed.op)
    return AttributedChange(cause, e.deed.work, e.known)


class BlamedFile(NamedTuple):
    """The current file, and the origin of its lines."""

    lines: list[str]
    """Without line ends."""
    ranges: list[BlamedRange[ChangeCause]]
    """In order and without gaps; empty for a file without lines."""


def blame_file(
    store: Store,
    index: Index | None,
    file: Path,
    skipped: Callable[[str], None] = lambda _: None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> BlamedFile:
    """Return the change that last touched each line of a file.

    What cannot be read on a tape is reported to `skipped` and left out; `progress` is called with
    how many tapes were read, of how many. Raises NotFound where there is no such file or no tape
    has a change of it, UsageError where it is no text, OSError where it cannot be read.
    """
    try:
        data = read_file(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"{file}: the file does not exist") from error
    except IsADirectoryError as error:
        raise UsageError(f"{file} is a folder: name a file in it") from error
    if b"\0" in data:
        raise UsageError(f"{file} is a binary file: it has no lines")
    text = data.decode("utf-8", "replace")
    history = read_file_history(store, index, file, skipped, progress)
    if not any(history):
        raise NotFound(f"{file}: no tape of {store.path} has a change of it")
    *lines, last = text.removeprefix("\ufeff").split("\n")
    whole = [*lines, last] if last else lines
    ranges = history.attribute_lines(text)
    return BlamedFile([line.removesuffix("\r") for line in whole], ranges)
