"""A worker of a queue: carries out steps of workflows, each in the folder of its workflow."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tape.errors import Busy, TapeError
from tape.model.entries import Usage
from tape.remote.opening import open_store

from .. import config
from ..agent import events
from ..agent.recorder import Recorder
from ..assembly import opening
from ..errors import GongError
from ..subagents.child import ChildPlan, choose_folder, choose_model, open_child
from ..subagents.manager import open_deeper
from ..subagents.remote import RemoteEnd, run_to_end
from ..subagents.types import load_agent_types
from .queue import serve_steps
from .record import WorkflowOptions
from .runner import build_front

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..agent.front_end import FrontEnd
    from ..agent.session import Session
    from ..assembly.open_session import OpenSession
    from ..subagents.remote import RemoteRun
    from .queue import QueuedStep

_BUSY_SECONDS = 60
"""How long a worker waits for a branch that another one still holds, which was given up."""


async def serve_workflows(
    url: str, at_once: int, store: str | None, environ: Mapping[str, str], ended: asyncio.Event
) -> None:
    """Carry out steps of a queue until `ended`. Raises ConfigurationError."""

    async def run_step(step: QueuedStep, stopped: asyncio.Event) -> RemoteEnd:
        options = msgspec.convert(step.options, WorkflowOptions)
        settings = config.load_settings(environ, {"store": store}, step.folder)
        with open_store(config.locate_store(settings, environ), person=settings.person) as library:
            front = build_front(
                library, settings, environ, step.folder, "gong/worker", options, lambda _: None
            )
            return await run_agent(front, step.run, stopped)

    await serve_steps(url, at_once, run_step, ended)


async def run_agent(front: FrontEnd, run: RemoteRun, stopped: asyncio.Event) -> RemoteEnd:
    """Carry out the run of a sub-agent whose parent is in another program."""
    try:
        recorder = await _open_branch(front, run)
    except (GongError, TapeError, OSError) as error:
        return RemoteEnd("failed", f"its history cannot be opened: {error}")
    watching = None
    host: OpenSession | None = None
    try:
        host = await opening.open_session(front)  # it writes nothing: what its agents share
        session = await _open_agent(front, host, run, recorder)
        counter = _Counter(run.agent)
        session.subscribe(counter, agents=True)
        watching = asyncio.create_task(_watch_stop(stopped, session))
        outcome = await run_to_end(session, run.prompt, stopped.is_set)
    except (GongError, TapeError, OSError) as error:
        return RemoteEnd("failed", str(error) or type(error).__name__)
    finally:
        if watching is not None:
            watching.cancel()
        recorder.close()
        if host is not None:
            await host.close()
    spend = session.run_state.spend
    output = "\n\n".join(filter(None, (outcome.output, outcome.failure)))
    cost = None if spend.unknown_calls else spend.cost
    return RemoteEnd(outcome.status, output, counter.turns, counter.usage, cost)


class _Counter:
    """Counts the model calls and tokens of a run, with those of the agents that it starts."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self.turns, self.usage = 0, Usage()

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.MessageEnd):
            self.usage += event.usage
        elif isinstance(event, events.TurnStart) and event.agent in {"", self._agent}:
            self.turns += 1


async def _open_branch(front: FrontEnd, run: RemoteRun) -> Recorder:
    for left in reversed(range(_BUSY_SECONDS)):
        tape = front.library.store.open(run.tape)
        try:
            branch = run.branch or tape.refs().current
            return Recorder.open(tape, branch, durability=front.settings.durability)
        except Busy:
            tape.close()
            if not left:
                raise
            await asyncio.sleep(1)
        except BaseException:
            tape.close()
            raise
    raise AssertionError("the last try raises")


async def _open_agent(
    front: FrontEnd, host: OpenSession, run: RemoteRun, recorder: Recorder
) -> Session:
    parent, order = host.session, run.order
    kind = load_agent_types(front.folder, front.environ).find(order.type)
    folder = choose_folder(parent, order)
    model, models, remarks = choose_model(host.models, parent.setup.model, kind, order, folder)
    plan = ChildPlan(run.agent, kind, order, model, models, folder, None, remarks)
    child_depth = run.depth + 1
    may_start = child_depth < parent.setup.config.max_subagent_depth
    open_agents = partial(open_deeper, front, models, child_depth) if may_start else None
    return await open_child(front, parent, plan, recorder, open_agents)


async def _watch_stop(stopped: asyncio.Event, session: Session) -> None:
    await stopped.wait()
    session.abort()
