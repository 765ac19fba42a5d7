"""From a head to what a model call is built of: view and repair in one reading of the path.

Each run of entries is repaired as it comes from the disk: while it is in the processor's cache that
takes half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .damage import warn_of_damage
from .entries import Anchor
from .repair import Repaired, Repairing
from .summaries import summary_text
from .view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from .branches import Head
    from .line import Entry
    from .repair import Target
    from .tape import Tape


class Sendable(NamedTuple):
    """What stands before a model, and what is sent of it."""

    view: View
    repaired: Repaired


def sendable(
    tape: Tape, head: Head, target: Target, skipped: Callable[[str], None] = warn_of_damage
) -> Sendable:
    """Return the view of a head and its messages: `repair(view(path, kept), target)`.

    What does not verify is told to `skipped` and left out: what changed on the disk never goes to a
    model. Raises Damaged and NotFound as
    `Tape.path` and `Tape.kept` do.
    """
    summary: str | None = None
    kept: tuple[Entry, ...] = ()
    entries: list[Entry] = []
    repairing: Repairing | None = None
    for run in tape.runs(head, to_anchor=True, skipped=skipped):
        if repairing is None:
            if run and isinstance(anchor := run[0].data, Anchor):
                summary, kept = summary_text(anchor.summary), tuple(tape.kept(anchor, skipped))
                del run[0]
            repairing = Repairing(target, summary)
            repairing.read(kept)
        repairing.read(run)
        entries += run
    repaired = (repairing or Repairing(target)).done()
    return Sendable(View(summary, kept, tuple(entries)), repaired)
