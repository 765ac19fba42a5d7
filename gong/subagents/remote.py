"""Runs of sub-agents that other programs carry out: what they are handed, and what they return.

    the parent's program                         a worker's program
    `agent.start`, closes the sub-agent's branch
    RemoteRun ──────────── Carrier ────────────▶ opens the branch, runs the prompt to its end
    `agent.end` ◀───────── RemoteEnd ─────────── closes the branch

Both see the same store and the same folders. The sub-agent's branch is held by the one that runs
it, so two programs can never work on one history.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from tape.errors import TapeError
from tape.model.entries import Assistant, Usage

from ..agent import events
from ..agent.short_answer import describe_short_answer
from ..errors import GongError
from ..tools.agent_runs import AgentOrder
from .lost import find_last_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..agent.session import Session
    from ..tools.agent_runs import RunStatus


class RemoteRun(Struct, frozen=True, omit_defaults=True):
    """One run of a sub-agent, for another program."""

    id: str
    """The parent's tape and the id of the `agent.start`: the same run is carried out once."""
    agent: str
    tape: str
    branch: str | None
    prompt: str
    order: AgentOrder
    depth: int = 0
    """How deep the parent is."""


class RemoteEnd(Struct, frozen=True, omit_defaults=True):
    """How such a run ended."""

    status: str
    output: str
    turns: int = 0
    usage: Usage = Usage()
    cost: float | None = None
    """USD; None if it is unknown."""


class Carrier(Protocol):
    """Hands runs to other programs."""

    async def knows(self, run: str) -> bool:
        """Return whether a run was handed over, also by an earlier program."""
        ...

    async def carry(self, run: RemoteRun) -> RemoteEnd:
        """Hand a run over and return how it ended; `interrupted` where its program is gone."""
        ...

    async def follow(self, run: str) -> RemoteEnd:
        """Return how a run that was handed over ended."""
        ...

    def cancel(self, run: str) -> None:
        """Stop a run; it ends as `cancelled`."""
        ...


class AgentOutcome(NamedTuple):
    """How the run of one prompt ended."""

    status: RunStatus
    output: str
    """The last words of the model."""
    failure: str
    """Why it did not come to its end; empty if it did."""


async def run_to_end(
    session: Session, prompt: str, was_stopped: Callable[[], bool]
) -> AgentOutcome:
    """Run a prompt to its end, and close the session."""
    first = len(session.recorder.path) if session.recorder is not None else 0
    failure, stop = "", "aborted"
    try:
        if not was_stopped():
            async with aclosing(session.submit(prompt)) as stream:
                async for event in stream:
                    failure = _find_failure(event) or failure
                    stop = event.stop_reason if isinstance(event, events.RunEnd) else stop
    except (GongError, TapeError, OSError) as error:
        failure = str(error) or type(error).__name__
    path = session.recorder.path if session.recorder is not None else []
    run = path[first:] if len(path) >= first else path
    output = find_last_answer(run)
    answers = (entry.data for entry in reversed(run) if isinstance(entry.data, Assistant))
    last = next(answers, None)
    if not failure and last is not None and last.stop_reason == stop:  # not ended by a limit
        failure = describe_short_answer(last.content, last.stop_reason)
    status: RunStatus = "completed"
    if was_stopped() or stop == "aborted":
        status = "cancelled"
    elif failure:
        status = "failed"
    with suppress(TapeError, OSError):  # its end is recorded in any case
        await session.close()
    return AgentOutcome(status, output, failure)


def _find_failure(event: events.Event) -> str:
    """Return why a run did not come to its end; empty for any other event."""
    match event:
        case events.RunFailure(message=message):
            return message
        case events.TurnLimit(limit=limit, value=value):
            return f"It reached its limit ({limit}: {value:g})."
        case events.CostLimit(limit=most):
            return f"The limit of the cost was reached: {most:g} USD."
        case events.LoopDetection(message=message, stopped=True):
            return message
        case _:
            return ""
