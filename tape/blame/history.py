"""Which entry, tape and prompt last changed each line of a file: from all tapes and branches.

    candidate tapes   those where the index says that a call may name the file, else all
    file events       what calls on them did to files of that name (`calls`)
    history           those of this file, oldest first: it may have been moved by a patch, or its
                      project may have moved, so that tapes know it by an old path
    lines             which change brought in each line of the file as it is now (`replay`)

What the tapes say is checked against the file; a line they do not explain is nobody's.
"""

from __future__ import annotations

import os
import os.path
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..errors import NotFound, UsageError
from ..index.full_text import build_loose_expression, space_cjk
from ..index.library import ask_index
from ..store.disk import read_file
from .calls import read_file_events
from .replay import AttributedChange, BlamedRange, SeenVersion, attribute_lines

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from ..index.projection import Index
    from ..store.store import Store
    from .calls import FileEvent


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


class _PathEvents:
    """Which events are those of a file; looks at each path once."""

    def __init__(self, read_events: Callable[[str], list[FileEvent]]) -> None:
        self._read_events = read_events
        self._real = cache(os.path.realpath)

    def trace_lineage(self, path: str, until: str | None = None) -> list[FileEvent]:
        """Return what was done to a file before a time, and to the file it was before a move."""
        own = [
            own_event
            for own_event in self._find_own_events(path)
            if until is None or own_event.time < until
        ]
        for at in reversed(range(len(own))):
            source = own[at].deed.source
            if source is not None and own[at].known:
                return [*self.trace_lineage(source, own[at].time), *own[at:]]
        return own

    def _find_own_events(self, path: str) -> list[FileEvent]:
        """Return the events of a file, and of its old path if its project moved."""
        real = self._real(path)
        names = dict.fromkeys(os.path.basename(place) for place in (path, real))
        events = [event for name in names for event in self._read_events(name)]
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
        return sorted(own, key=lambda event: (event.time, event.tape, event.n, event.place))


def read_file_history(
    store: Store,
    index: Index | None,
    file: Path,
    skipped: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> list[AttributedChange[ChangeCause]]:
    """Return the changes of a file, oldest first, with the texts seen between them.

    Empty if no tape has a change of it.
    """

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
    changes = []
    for event in _PathEvents(read_events).trace_lineage(path):
        e, deed = event, event.deed
        cause = ChangeCause(e.tape, e.branch, e.entry, e.time, e.model, e.prompt, deed.op)
        changes.append(AttributedChange(cause, deed.work, event.known))
    return changes if any(not isinstance(change.work, SeenVersion) for change in changes) else []


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
    changes = read_file_history(store, index, file, skipped, progress)
    if not changes:
        raise NotFound(f"{file}: no tape of {store.path} has a change of it")
    *lines, last = text.removeprefix("\ufeff").split("\n")
    whole = [*lines, last] if last else lines
    ranges = attribute_lines(text, changes)
    return BlamedFile([line.removesuffix("\r") for line in whole], ranges)
