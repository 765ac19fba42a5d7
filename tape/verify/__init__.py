"""Verify: recompute everything of one tape and report damage (tape.md §2, §4, §5).

Reads only, in constant memory: lines are hashed, and parsed only where a phase begins, where a blob
is named and where something was redacted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..leftovers import find_inside
from ..phase import ORIGIN
from .blobs import BlobCheck
from .finding import Counts, Finding, Kind, Level, damage, note, odd_time
from .journal import JournalCheck
from .opening import NOBODY, Opened, opened, told_by_start
from .phases import PhaseCheck
from .scan import processors, scanning
from .tails import kept_phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..disk import Folder
    from ..tape import Tape
    from .scan import Part, Scan

__all__ = [
    "NOBODY",
    "Counts",
    "Finding",
    "Kind",
    "Level",
    "Opened",
    "damage",
    "kept_phase",
    "odd_time",
    "opened",
    "processors",
    "told_by_start",
    "verify",
]


def verify(
    tape: Tape,
    counts: Counts,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Iterator[Finding]:
    """Yield the findings of a tape, and count in `counts` what was checked.

    With `jobs` above 1 the entries of a large tape are read by that many processes, forked from
    this one: call it where no other thread runs. `progress` is called with the number of lines
    read, and 0 because the total is unknown. Raises NewerFormat at the first line that a later
    version wrote.
    """
    # List phases before reading the journal: one that is started meanwhile is then named in it.
    names = tape.phases.names()
    blobs, journal = BlobCheck(tape), JournalCheck(tape, names)
    yield from _links(tape.folder, "")
    yield from blobs.findings()
    yield from journal.lines()
    all_names = [ORIGIN, *names] if tape.phases.has_origin else names
    labels = set(journal.refs.labels.values())
    with scanning(tape.phases, all_names, frozenset(labels), jobs) as scan:
        phases = PhaseCheck(tape, journal, blobs, labels, _telling(scan, progress))
        for name in all_names:
            yield from phases.lines(name)
    yield from phases.info()
    yield from phases.leftovers()
    yield from phases.unfinished()
    yield from phases.unrecorded()
    yield from journal.moves(phases.branches)
    yield from journal.uncommitted(phases.sizes)
    for one in find_inside(tape):
        yield note(Kind.LEFTOVER, one.path, "left by an interrupted write: `tape gc` deletes it")
    counts.entries += sum(phases.sizes.values())
    counts.phases += len(names)
    counts.blobs += blobs.count


def _telling(scan: Scan, progress: Callable[[int, int], None]) -> Scan:
    """Return a scan that reports its progress."""
    lines = 0

    def parts(name: str) -> Iterator[Part]:
        nonlocal lines
        for part in scan(name):
            lines += part.lines
            progress(lines, 0)
            yield part

    return parts


def _links(folder: Folder, prefix: str) -> Iterator[Finding]:
    """Yield a finding for every symbolic link: none is allowed in a tape."""
    with os.scandir(folder.fd) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = prefix + entry.name
        if entry.is_symlink():
            yield damage(Kind.LINK, path, "a symbolic link: links inside a tape are not followed")
        elif entry.is_dir(follow_symlinks=False):
            with folder.sub(entry.name) as inner:
                yield from _links(inner, f"{path}/")
