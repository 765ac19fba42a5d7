"""Continue a session with another model: from its full history or from a handoff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..agent.record import find_last_model, find_newest_anchor
from ..agent.window import measure_fill
from .branch import print_warning
from .handoff import ensure_handoff

if TYPE_CHECKING:
    from ..agent.opening import OpenSession

StartFrom = Literal["full", "handoff"]


async def continue_with_model(host: OpenSession, start: StartFrom | None) -> None:
    """Make the history fit the model, and report what the session continues from.

    `start` is the value of --from; without it the full history is used if it fits.
    Raises NothingToUndo if the full history is asked for and is behind an anchor that cannot
    be undone.
    """
    recorder = host.session.recorder
    assert recorder is not None, "an existing branch was opened"
    if start == "full" and find_newest_anchor(recorder.path) is not None:
        undone = host.session.undo()
        print_warning(f"{undone.kind} undone: {host.model_name} continues from the full history")
    before = find_last_model(recorder.path)
    if before is None or (start is None and before == host.model_name):
        return
    tokens, limit = measure_fill(host.session.build_run_context())
    if start == "handoff" or (start is None and limit is not None and tokens > limit):
        if start is None:
            print_warning(f"about {tokens:,} tokens do not fit {host.model_name} (limit {limit:,})")
        if await ensure_handoff(host, host.model_name):
            print_warning(
                f"{host.model_name} continues from a handoff; gong compact --undo undoes it"
            )
    elif before != host.model_name:
        anchor = find_newest_anchor(recorder.path)
        what = f"the {anchor.kind}" if anchor else "the full history"
        print_warning(
            f"switched from {before} to {host.model_name}; "
            f"continues from {what} (~{tokens:,} tokens)"
        )
