"""How a conversation goes on with another model: from its whole history or from a handoff."""

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
    """See that what was said fits the model that goes on, and say what it goes on from.

    `start` is what a person asked for; without it the whole history is taken where it fits.
    Raises NothingToUndo where the whole history is asked for and stands behind an anchor that
    cannot be taken back.
    """
    recorder = host.session.recorder
    assert recorder is not None, "an existing branch was opened"
    if start == "full" and newest_anchor(recorder.path) is not None:
        undone = host.session.undo()
        warn(f"the {undone.kind} is taken back: {host.model_name} goes on with the whole history")
    before = last_model(recorder.path)
    if before is None or (start is None and before == host.model_name):
        return
    tokens, limit = fill(host.session.parts())
    if start == "handoff" or (start is None and limit is not None and tokens > limit):
        if start is None:
            warn(f"about {tokens:,} tokens are more than {host.model_name} takes ({limit:,})")
        if await record_handoff(host, host.model_name):
            warn(f"{host.model_name} goes on from a handoff; gong compact --undo takes it back")
    elif before != host.model_name:
        anchor = newest_anchor(recorder.path)
        what = f"the {anchor.kind}" if anchor else "the whole history"
        warn(
            f"{before} answered so far; {host.model_name} goes on from {what} (~{tokens:,} tokens)"
        )
