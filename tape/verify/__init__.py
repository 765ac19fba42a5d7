"""Verify: compute everything of one tape anew and name what does not hold (tape.md §2, §4, §5).

Reads only. Memory does not grow with the history: lines are hashed, and parsed only where a phase
begins, where a blob is named and where something was redacted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..phase import ORIGIN
from .blobs import BlobCheck
from .finding import Counts, Finding, Level, damage
from .journal import JournalCheck
from .phases import PhaseCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..disk import Folder
    from ..tape import Tape

__all__ = ["Counts", "Finding", "Level", "damage", "verify"]


def verify(tape: Tape, counts: Counts) -> Iterator[Finding]:
    """Yield what does not hold in a tape, and count in `counts` what was looked at.

    Raises NewerFormat at the first line that a later version wrote.
    """
    # Phases before the journal: one that is begun meanwhile is then named in it.
    names = tape.phases.names()
    blobs, journal = BlobCheck(tape), JournalCheck(tape, names)
    phases = PhaseCheck(tape, journal, blobs)
    yield from _links(tape.folder, "")
    yield from blobs.findings()
    yield from journal.lines()
    for name in [ORIGIN, *names] if tape.phases.has_origin else names:
        yield from phases.lines(name)
    yield from phases.leftovers()
    yield from phases.unfinished()
    yield from journal.moves(phases.branches)
    yield from journal.uncommitted(phases.sizes)
    counts.entries += sum(phases.sizes.values())
    counts.phases += len(names)
    counts.blobs += blobs.count


def _links(folder: Folder, prefix: str) -> Iterator[Finding]:
    """Name every symbolic link: none may stand in a tape."""
    with os.scandir(folder.fd) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = prefix + entry.name
        if entry.is_symlink():
            yield damage(path, "a symbolic link: links inside a tape are not followed")
        elif entry.is_dir(follow_symlinks=False):
            with folder.sub(entry.name) as inner:
                yield from _links(inner, f"{path}/")
