"""Verify: recompute everything of one tape and report damage (tape.md §2, §4, §5).

Reads only, in constant memory: lines are hashed, and parsed only where a phase begins, where a blob
is named and where something was redacted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..leftovers import find_tape_leftovers
from ..phase import ORIGIN
from .blobs import BlobCheck
from .finding import Counts, Finding, FindingKind, Level, build_damage, build_note, check_time
from .journal import JournalCheck
from .opening import UNKNOWN_TAPE_ID, OpenedTape, open_for_check, read_start_info
from .phases import PhaseCheck
from .scan import count_processors, open_scan
from .tails import parse_kept_phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..disk import Folder
    from ..tape import Tape
    from .scan import ScanPart, ScanPhase

__all__ = [
    "UNKNOWN_TAPE_ID",
    "Counts",
    "Finding",
    "FindingKind",
    "Level",
    "OpenedTape",
    "build_damage",
    "check_time",
    "count_processors",
    "open_for_check",
    "parse_kept_phase",
    "read_start_info",
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
    yield from _find_links(tape.folder, "")
    yield from blobs.check_blobs()
    yield from journal.check_lines()
    all_names = [ORIGIN, *names] if tape.phases.has_origin else names
    labels = set(journal.refs.labels.values())
    with open_scan(tape.phases, all_names, frozenset(labels), jobs) as scan:
        phases = PhaseCheck(tape, journal, blobs, labels, _count_progress(scan, progress))
        for name in all_names:
            yield from phases.check_phase(name)
    yield from phases.check_info()
    yield from phases.find_unaccounted()
    yield from phases.find_unfinished_redactions()
    yield from phases.find_unrecorded()
    yield from journal.check_moves(phases.branches)
    yield from journal.find_uncommitted(phases.sizes)
    for one in find_tape_leftovers(tape):
        yield build_note(
            FindingKind.LEFTOVER, one.path, "left by an interrupted write: `tape gc` deletes it"
        )
    counts.entries += sum(phases.sizes.values())
    counts.phases += len(names)
    counts.blobs += blobs.count


def _count_progress(scan: ScanPhase, progress: Callable[[int, int], None]) -> ScanPhase:
    """Return a scan that reports its progress."""
    lines = 0

    def parts(name: str) -> Iterator[ScanPart]:
        nonlocal lines
        for part in scan(name):
            lines += part.lines
            progress(lines, 0)
            yield part

    return parts


def _find_links(folder: Folder, prefix: str) -> Iterator[Finding]:
    """Yield a finding for every symbolic link: none is allowed in a tape."""
    with os.scandir(folder.fd) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = prefix + entry.name
        if entry.is_symlink():
            yield build_damage(
                FindingKind.LINK, path, "a symbolic link: links inside a tape are not followed"
            )
        elif entry.is_dir(follow_symlinks=False):
            with folder.sub(entry.name) as inner:
                yield from _find_links(inner, f"{path}/")
