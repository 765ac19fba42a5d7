"""The tapes that may have changes of a file: from the index, or else all of them.

The index finds tapes with a call that may name the file, in a path or in a command; what such a
call really did is read from the tape itself.

The changes of one file on all tapes of a store, oldest first.

A file that a patch moved has the history of its old path. A tape whose project moved has old paths:
they are mapped to the tape's newest working folder or, if the move was not recorded, to a folder of
the same name.

Which entry, tape and prompt last changed each line of a file: from all tapes and branches.

The recorded edits are checked against the current file; a line that they do not explain has no
owner. `attribute` is the pure part.
"""

from __future__ import annotations

import os
import os.path
import sqlite3
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..errors import NotFound, UsageError
from ..index.fast_text import space_cjk
from ..store.disk import read_file
from .calls import read_file_events
from .replay import AttributedChange, BlamedRange, SeenVersion, attribute_lines

if TYPE_CHECKING:
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
        UNION SELECT rowid FROM text WHERE text MATCH :named
    ) ORDER BY 1
"""


def find_candidate_folders(store: Store, index: Index | None, name: str) -> list[str]:
    """Return the folders of the tapes whose calls may have touched a file called `name`."""
    if index is not None and any(map(str.isalnum, name)):  # else it has no words to search for
        with suppress(OSError, sqlite3.Error):  # no index, or one behind: use all tapes
            return index.answer(lambda db: _query_touched_folders(db, name))
    return store.folders()


def _query_touched_folders(db: sqlite3.Connection, name: str) -> list[str]:
    quoted = space_cjk(name).replace('"', '""')
    told = {"name": name, "named": f'called : "{quoted}"'}
    return [os.fsdecode(folder) for (folder,) in db.execute(_TOUCHED_QUERY, told)]


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
    """Finds the events of a file; resolves each path once."""

    def __init__(self, touches: Callable[[str], list[FileEvent]]) -> None:
        self._touches = touches
        self._real = cache(os.path.realpath)

    def trace_lineage(self, path: str, until: str | None = None) -> list[FileEvent]:
        """Return the events of a file before a time, with those of its path before a move."""
        own = [
            touch for touch in self._find_own_events(path) if until is None or touch.time < until
        ]
        for at in reversed(range(len(own))):
            source = own[at].deed.source
            if source is not None and own[at].known:
                return [*self.trace_lineage(source, own[at].time), *own[at:]]
        return own

    def _find_own_events(self, path: str) -> list[FileEvent]:
        """Return the events of a file, and of its old path if its project moved."""
        real = self._real(path)
        names = dict.fromkeys(os.path.basename(one) for one in (path, real))  # noqa: PTH119 (text)
        found = [touch for name in names for touch in self._touches(name)]
        own = [touch for touch in found if self._is_same_file(touch, path, real)]
        first = min((touch.time for touch in own), default=None)
        for touch in found:
            tail = touch.deed.where.tail
            if tail and real.endswith(tail) and (first is None or touch.time < first):
                own.append(touch)
        return sorted(own, key=_order_event)

    def _is_same_file(self, touch: FileEvent, path: str, real: str) -> bool:
        return any(one == path or self._real(one) == real for one in touch.deed.where.paths)


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
    def touches(name: str) -> list[FileEvent]:
        found: dict[tuple[str, int], FileEvent] = {}
        tapes = find_candidate_folders(store, index, name)
        for done, folder in enumerate(tapes):
            progress(done, len(tapes))
            for touch in read_file_events(store, folder, name, skipped):
                key = touch.entry, touch.place
                if key not in found or found[key].is_copy:
                    found[key] = touch
        return list(found.values())

    path = os.path.abspath(file)  # noqa: PTH100 (links stay: a tape may know the file by one)
    changes = [_build_change(touch) for touch in _PathEvents(touches).trace_lineage(path)]
    return changes if any(not isinstance(one.work, SeenVersion) for one in changes) else []


def _order_event(touch: FileEvent) -> tuple[str, str, int, int]:
    return touch.time, touch.tape, touch.n, touch.place


def _build_change(touch: FileEvent) -> AttributedChange[ChangeCause]:
    """Return an event as a change of one file."""
    cause = ChangeCause(
        touch.tape,
        touch.branch,
        touch.entry,
        touch.time,
        touch.model,
        touch.prompt,
        touch.deed.op,
    )
    return AttributedChange(cause, touch.deed.work, touch.known)


__all__ = [
    "AttributedChange",
    "BlamedFile",
    "BlamedRange",
    "ChangeCause",
    "SeenVersion",
    "attribute_lines",
    "blame_file",
]


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

    Unreadable parts of tapes are reported to `skipped` and left out; `progress` is called with the
    number of tapes read. Raises NotFound if the file does not exist or no tape has a change of it,
    UsageError if it is not a text file, OSError if it cannot be read.
    """
    text = _read_current_text(file)
    changes = read_file_history(store, index, file, skipped, progress)
    if not changes:
        raise NotFound(f"{file}: no tape of {store.path} has a change of it")
    *lines, last = text.removeprefix("\ufeff").split("\n")
    whole = [*lines, last] if last else lines
    ranges = attribute_lines(text, changes)
    return BlamedFile([line.removesuffix("\r") for line in whole], ranges)


def _read_current_text(file: Path) -> str:
    try:
        data = read_file(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"{file}: the file does not exist") from error
    except IsADirectoryError as error:
        raise UsageError(f"{file} is a folder: name a file in it") from error
    if b"\0" in data:
        raise UsageError(f"{file} is a binary file: it has no lines")
    return data.decode("utf-8", "replace")
