"""Continue a session with another model: from its full history or from a handoff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..agent.record import last_model, newest_anchor
from ..agent.window import fill
from .branch import warn
from .handoff import record_handoff

if TYPE_CHECKING:
    from ..agent.opening import Host

Start = Literal["full", "handoff"]


async def go_on(host: Host, start: Start | None) -> None:
    """Make the history fit the model, and report what the session continues from.

    `start` is the value of --from; without it the full history is used if it fits.
    Raises NothingToUndo if the full history is asked for and is behind an anchor that cannot
    be undone.
    """
    recorder = host.session.recorder
    assert recorder is not None, "an existing branch was opened"
    if start == "full" and newest_anchor(recorder.path) is not None:
        undone = host.session.undo()
        warn(f"{undone.kind} undone: {host.model_name} continues from the full history")
    before = last_model(recorder.path)
    if before is None or (start is None and before == host.model_name):
        return
    tokens, limit = fill(host.session.parts())
    if start == "handoff" or (start is None and limit is not None and tokens > limit):
        if start is None:
            warn(f"about {tokens:,} tokens do not fit {host.model_name} (limit {limit:,})")
        if await record_handoff(host, host.model_name):
            warn(f"{host.model_name} continues from a handoff; gong compact --undo undoes it")
    elif before != host.model_name:
        anchor = newest_anchor(recorder.path)
        what = f"the {anchor.kind}" if anchor else "the full history"
        warn(
            f"switched from {before} to {host.model_name}; "
            f"continues from {what} (~{tokens:,} tokens)"
        )
