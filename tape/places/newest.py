"""The newest tape that works in a folder, found in the files: for a store without its index.

Where many tapes are in no index yet, reading all of them takes half a minute, and who continues a
session needs one. No line is later than the last change of its file, so tapes are looked at by that
time, newest first, until no other can be newer:

    tape   file changed   newest head   works here   next step
    a      12:00          11:59         no           read b
    b      11:50          11:50         yes          the best so far
    c      11:45          –             –            cannot be newer than b: b is the answer

Clocks may differ by a day: the search ends a day later. A tape whose bytes name the folder
nowhere is not opened. The answer is the one that the index gives.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..clock import parse_timestamp
from ..errors import NotFound, TapeError
from ..model.entries import Meta, Start
from ..store.packed import PACKED_SUFFIX
from ..store.path import Segment
from ..store.refs import find_head
from ..text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store.store import Store
    from ..store.tape import Tape

_SLACK = 86_400_000_000
"""Microseconds by which clocks may differ."""
MAX_BYTES = 1 << 30
"""Bytes of tapes that are looked through."""
_PART = 1 << 20
"""Bytes of a file that are looked at in one go."""
_MOVES = frozenset({Start.entry_type, Meta.entry_type})


class TapePlace(NamedTuple):
    """A tape: its id, and the name of its folder."""

    id: str
    folder: str


class TooMuch(Exception):
    """There is too much to look through."""


class _Change(NamedTuple):
    """When the files of a tape's entries changed last, in microseconds since 1970."""

    time: int
    size: int
    """Bytes of all of them."""
    folder: str
    files: tuple[str, ...]
    """None of an archived tape."""


class _Facts(NamedTuple):
    """What decides: time of the newest head, id, and where the tape works now."""

    updated: str
    id: str
    cwd: str
    project: str | None


def find_newest_tape(
    store: Store, cwd: str, root: str | None, *, max_bytes: int = MAX_BYTES
) -> TapePlace | None:
    """Return the newest tape that works in `cwd`, else of those of the repository at `root`.

    Raises TooMuch after `max_bytes` of tapes: then the index is the faster way.
    """
    cwd, root = replace_surrogates(cwd), root and replace_surrogates(root)
    here: tuple[_Facts, str] | None = None
    beside: tuple[_Facts, str] | None = None
    left = max_bytes
    names = [msgspec.json.encode(place) for place in (cwd, root) if place is not None]
    for change in sorted(_list_changes(store), reverse=True):
        if here is not None and parse_timestamp(here[0].updated) > change.time + _SLACK:
            break
        left -= change.size
        if left < 0:
            raise TooMuch
        if change.files and not any(_has_any(file, names) for file in change.files):
            continue  # it never worked here
        with suppress(OSError, TapeError), store.open_folder(change.folder) as tape:
            facts = _read_facts(tape)
            if facts.cwd == cwd:
                here = max(filter(None, (here, (facts, change.folder))), key=_get_rank)
            elif root is not None and root in (facts.project, facts.cwd):
                beside = max(filter(None, (beside, (facts, change.folder))), key=_get_rank)
    newest = here or beside
    return None if newest is None else TapePlace(newest[0].id, newest[1])


def _get_rank(tape: tuple[_Facts, str]) -> tuple[str, str]:
    return tape[0].updated, tape[0].id


def _list_changes(store: Store) -> Iterator[_Change]:
    files: tuple[str, ...]
    others: tuple[str, ...]
    for folder in store.folders():
        path = f"{store.home}/tapes/{folder}"
        with suppress(OSError):  # it went, or is being archived
            try:
                names = os.listdir(f"{path}/phases")
            except FileNotFoundError:
                files, others = (), (path + PACKED_SUFFIX,)
            else:
                files, others = tuple([f"{path}/phases/{n}/entries.jsonl" for n in names]), ()
            stats = []
            for file in (*files, *others):
                with suppress(FileNotFoundError, NotADirectoryError):  # no phase, or none yet
                    stats.append(os.stat(file, follow_symlinks=False))
            if stats:
                changed = max(about.st_mtime_ns for about in stats) // 1000
                yield _Change(changed, sum(about.st_size for about in stats), folder, files)


def _has_any(file: str, names: Sequence[bytes]) -> bool:
    """Return whether a file has one of these texts; True where that cannot be read."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            rest = b""
            while data := os.read(fd, _PART):
                data = rest + data
                if any(name in data for name in names):
                    return True
                rest = data[-max(map(len, names)) :]
        finally:
            os.close(fd)
    except FileNotFoundError:  # a folder without its file
        return False
    except OSError:
        return True
    return False


def _read_facts(tape: Tape) -> _Facts:
    """Return what the index would say of a tape; raise TapeError or OSError where it is damaged."""
    refs, updated = tape.refs(), ""
    moved: tuple[str, str, str | None] = ("", "", None)
    for branch in refs.branches:
        with suppress(TapeError):
            updated = max(updated, find_head(refs, tape.phases, branch).header.time)
    for phase in tape.phases.names():
        with suppress(NotFound):  # a folder without its file
            with tape.phases.open(phase) as file:
                whole = Segment(tape.source, phase, file.tail().end)
            place = _find_last_move(whole)
            if place is not None and place[0] > moved[0]:
                moved = place
    return _Facts(updated or tape.info.created, tape.id, moved[1], moved[2])


def _find_last_move(segment: Segment) -> tuple[str, str, str | None] | None:
    """Return the newest entry of a segment that names a folder: its time, and what it says."""
    for entry in segment.find_entries_back(_MOVES, lambda _: None):
        match entry.data:
            case Start(cwd=cwd, project=project) | Meta(cwd=str(cwd), project=project):
                return entry.time, cwd, project
            case _:
                pass
    return None
