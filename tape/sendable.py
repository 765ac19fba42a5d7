"""From a head to what a model call is built of: view and repair in one reading of the path.

Each run of entries is repaired as it comes from the disk: while it is in the processor's cache that
takes half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .damage import warn_of_damage
from .entries import Anchor
from .repair import IncrementalRepair, Repaired
from .summaries import render_summary
from .view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from .branches import Head
    from .line import Entry
    from .repair import Target
    from .tape import Tape


class ModelInput(NamedTuple):
    """What stands before a model, and what is sent of it."""

    view: View
    repaired: Repaired


def build_messages(
    tape: Tape, head: Head, target: Target, skipped: Callable[[str], None] = warn_of_damage
) -> ModelInput:
    """Return the view of a head and its messages: `repair(view(path, kept), target)`.

    What does not verify is told to `skipped` and left out: what changed on the disk never goes to a
    model. Raises Damaged and NotFound as
    `Tape.path` and `Tape.kept` do.
    """
    summary: str | None = None
    kept: tuple[Entry, ...] = ()
    entries: list[Entry] = []
    repairing: IncrementalRepair | None = None
    for run in tape.read_runs(head, to_anchor=True, skipped=skipped):
        if repairing is None:
            if run and isinstance(anchor := run[0].data, Anchor):
                summary, kept = render_summary(anchor.summary), tuple(tape.kept(anchor, skipped))
                del run[0]
            repairing = IncrementalRepair(target, summary)
            repairing.read(kept)
        repairing.read(run)
        entries += run
    repaired = (repairing or IncrementalRepair(target)).finish_repair()
    return ModelInput(View(summary, kept, tuple(entries)), repaired)
