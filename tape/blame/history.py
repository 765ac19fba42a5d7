"""The changes of one file that all tapes of a store tell of, oldest first.

A file that was moved by a patch goes on in the one it was. A tape whose project moved knows its
files by old paths: they are followed to where the tape works now, or, where nobody told the tape,
to a folder of the same name.
"""

from __future__ import annotations

import os.path
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from .attribute import AttributedChange, SeenVersion
from .calls import read_file_events
from .candidates import find_candidate_folders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..index import Index
    from ..store import Store
    from .calls import FileEvent


class ChangeCause(Struct, frozen=True, gc=False):
    """What led to a change."""

    tape: str
    """32 hex digits."""
    branch: str
    entry: str
    """Id of the answer that holds the call."""
    time: str
    """When the tool had done it; of a call without a result, when it was asked for. UTC."""
    model: str | None
    prompt: str | None
    """First line of the newest prompt before it."""
    op: str
    """write, edit or patch."""


class _PathEvents:
    """Which touches are those of a file; looks at each path once."""

    def __init__(self, touches: Callable[[str], list[FileEvent]]) -> None:
        self._touches = touches
        self._real = cache(os.path.realpath)

    def trace_lineage(self, path: str, until: str | None = None) -> list[FileEvent]:
        """Return what was done to a file before a time, and to the file it was before a move."""
        own = [
            touch for touch in self._find_own_events(path) if until is None or touch.time < until
        ]
        for at in reversed(range(len(own))):
            source = own[at].deed.source
            if source is not None and own[at].known:
                return [*self.trace_lineage(source, own[at].time), *own[at:]]
        return own

    def _find_own_events(self, path: str) -> list[FileEvent]:
        """Return what was done to a file, and before that to one that its project took along."""
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
    """Return the changes of a file, oldest first, and what it was seen to hold between them.

    Empty when no tape tells of a change.
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
    """Return a touch as a change of one file."""
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
