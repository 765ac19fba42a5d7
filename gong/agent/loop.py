"""The loop: record, view, repair, request, stream, record, tools, and again, until nothing is left.

It is handed all its parts and owns none. Every fact is an entry before anything follows from it,
and every barrier of tape.md §5.4 stands where the code goes on to something it must not outrun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.blocks import Text, tool_calls
from tape.entries import Context

from . import events
from .answer import ask
from .step import run_tools

if TYPE_CHECKING:
    from ..errors import ModelError
    from .parts import Parts, Queued


class Outcome(NamedTuple):
    """How a run ended."""

    stop_reason: str
    """Of the newest answer, as tape.md §3 names them."""
    error: ModelError | None = None


async def run(parts: Parts) -> Outcome:
    """Serve what stands at the end of the path until no calls, steering or follow-ups are left."""
    turns, stop, paused = 0, "stop", False
    while True:
        for queued in () if paused else parts.take_steering():
            _inject(parts, queued)
        if parts.model.max_turns and turns >= parts.model.max_turns:
            parts.emit(events.TurnLimit(turns))
            return Outcome(stop)
        turns += 1
        parts.emit(events.TurnStart(turns))
        answer = await ask(parts)
        stop, paused = answer.stop, answer.is_paused
        if answer.error is not None:
            return Outcome(stop, answer.error)
        calls = tool_calls(answer.content)
        if calls:
            await run_tools(parts, calls)
        parts.emit(events.TurnEnd(turns, len(calls)))
        if calls or paused or parts.steering_waits():
            continue
        follow_up = parts.take_follow_up()
        if follow_up is None:
            return Outcome(stop)
        _inject(parts, follow_up)


def _inject(parts: Parts, queued: Queued) -> None:
    parts.record.append(Context("user", queued.origin, (Text(queued.text),)))
    parts.emit(events.SteeringInjected(queued.text, queued.origin))
