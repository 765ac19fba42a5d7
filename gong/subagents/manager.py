"""The sub-agents of a session: started, told more, waited for, ended; each run is on the tape.

    no run      ──start, run──▶  running: `agent.start`; at most `max_subagents` at once
    running     ──its end──▶     completed or failed: `agent.end`; here, or where `carrier` took it
    running     ──finish, stop of the parent, its close──▶  cancelled: `agent.end`
    running     ──the program ends──▶  interrupted: `agent.end` when the parent is continued
    ended       ──send──▶        running again, with the history it has

The end of a run in the background is reported to the model at the next border of the conversation,
unless somebody waited for it. A run that the model waits for takes its turn where too many run;
one in the background is refused then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tape.clock import format_timestamp, read_clock
from tape.errors import Busy, TapeError
from tape.model.entries import AgentEnd, AgentStart, Usage
from tape.text import format_count, shorten_to_width, to_single_line

from ..agent import events
from ..agent.setup import EndedAgent
from ..env.wrappers import is_place
from ..errors import ConfigurationError, GongError
from ..tools.agent_runs import AgentReport
from ..tools.agents import RESULT_LIMIT
from ..tools.limits import choose_family_limits
from ..tools.truncation import limit_text
from .child import (
    ChildPlan,
    begin_branch,
    begin_tape,
    build_tools,
    choose_folder,
    choose_model,
    open_child,
    open_history,
)
from .lost import (
    KnownAgent,
    build_agents_mark,
    find_known_agents,
    repair_history,
)
from .remote import RemoteEnd, RemoteRun, run_to_end
from .types import AgentTypes, load_agent_types
from .worktree import add_worktree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from ..agent.front_end import FrontEnd, ModelFactory
    from ..agent.recorder import Recorder
    from ..agent.session import Session
    from ..tools.agent_runs import AgentOrder, RunStatus
    from ..tools.limits import OutputLimits
    from .remote import Carrier

_TASK_COLUMNS = 60


@dataclass(slots=True)
class Subagent:
    """One sub-agent, from its first run on."""

    plan: ChildPlan
    branch: str | None
    tape: str | None
    """The id of its tape, where that is not its parent's."""
    status: RunStatus = "running"
    output: str = ""
    turns: int = 0
    """Model calls of the newest run."""
    usage: Usage = field(default_factory=Usage)
    """Of the newest run."""
    cost: float | None = None
    """USD of the newest run; None while it runs, and if it is unknown."""
    created_at: str = ""
    completed_at: str = ""
    last_tool: str = ""
    """The tool that it called last, for screens."""
    in_background: bool = False
    is_closed: bool = False
    stops: bool = False
    session: Session | None = None
    remote: str = ""
    """The run that another program carries out."""
    task: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        """Such as agent-1."""
        return self.plan.agent

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        text = self.plan.order.description or self.plan.order.prompt
        return shorten_to_width(to_single_line(text), _TASK_COLUMNS)

    def build_report(self) -> AgentReport:
        """Return how it stands."""
        output = self.output
        if self.status == "running":
            doing = f", calling {self.last_tool}" if self.last_tool else ""
            output = f"(it runs: {format_count(self.turns, 'model call')}{doing})"
        return AgentReport(
            self.id,
            self.plan.kind.name,
            self.status,
            output,
            self.turns,
            self.usage,
            self.created_at,
            self.completed_at,
            self.cost,
        )

    def describe_end(self, limits: OutputLimits) -> str:
        """Return the report of its end for the model; of a long output a part."""
        kind = self.plan.kind.name
        head = f"The sub-agent {self.id} ({kind}: {self.title}) has ended: {self.status}."
        return f"{head}\n{limit_text(self.output, limits)}" if self.output else head


class SubagentManager:
    """The sub-agents of one session."""

    def __init__(
        self, parent: Session, front: FrontEnd, models: ModelFactory, depth: int = 0
    ) -> None:
        """Take the session and what opens others like it; `depth` is 0 for one of a person."""
        self.by_id: dict[str, Subagent] = {}
        """All that were started here, oldest first."""
        self._parent, self._front, self._models, self._depth = parent, front, models, depth
        self.carrier: Carrier | None = None
        """Hands runs to other programs; None where they are carried out here."""
        self._ended: list[EndedAgent] = []
        self._slots = asyncio.Semaphore(parent.setup.config.max_subagents)
        self._types: AgentTypes | None = None
        self._lock = asyncio.Lock()

    @property
    def types(self) -> AgentTypes:
        """The types there are, read at the first use."""
        if self._types is None:
            self._types = load_agent_types(self._front.folder, self._front.environ)
        return self._types

    @property
    def running(self) -> list[Subagent]:
        """Those that run, oldest first."""
        return [agent for agent in self.by_id.values() if agent.status == "running"]

    async def start(self, order: AgentOrder) -> str:
        """Start a sub-agent in the background, and return its id."""
        self._require_slot()
        await self._slots.acquire()
        agent = await self._begin(order, in_background=True)
        return agent.id

    async def run(self, order: AgentOrder) -> AgentReport:
        """Start a sub-agent and return its result; a cancellation ends it."""
        kind = self.types.find(order.type)
        if kind.background:
            agent = self.by_id[await self.start(order)]
            return agent.build_report()
        await self._slots.acquire()
        agent = await self._begin(order, in_background=False)
        return await self._follow_to_end(agent)

    async def send(self, agent_id: str, message: str) -> AgentReport:
        """Steer a sub-agent that runs; let one that ended continue, in the background."""
        agent = self._find(agent_id)
        if agent.is_closed:
            raise ConfigurationError(f"{agent_id} was closed: start another one")
        if agent.status == "running" and agent.session is not None:
            agent.session.steer(message)
            return agent.build_report()
        self._require_slot()
        await self._slots.acquire()
        try:
            recorder = open_history(self._front, self._get_recorder(), agent.branch, agent.tape)
        except BaseException:
            self._slots.release()
            raise
        agent.in_background, agent.stops = True, False
        await self._begin_run(agent, recorder, message)
        return agent.build_report()

    async def wait(self, agent_id: str, seconds: float | None = None) -> AgentReport:
        """Return the result of a sub-agent when it has one, or how it stands after so long."""
        agent = self._find(agent_id)
        if agent.task is not None and not agent.task.done():
            await asyncio.wait({agent.task}, timeout=seconds)
        if agent.status != "running":
            self._ended = [report for report in self._ended if report.agent != agent_id]
        return agent.build_report()

    async def finish(self, agent_id: str) -> AgentReport:
        """End a sub-agent; it can be told nothing more."""
        agent = self._find(agent_id)
        agent.is_closed = True
        await self._stop(agent)
        self._ended = [report for report in self._ended if report.agent != agent_id]
        return agent.build_report()

    def take_ended(self) -> Sequence[EndedAgent]:
        """Return those that have ended in the background and were not told of yet."""
        ended, self._ended = self._ended, []
        return ended

    def settle_lost(self) -> None:
        """Balance and end what ran when the program ended; the model gets a report later."""
        recorder = self._get_recorder()
        for known in find_known_agents(recorder.path).values():
            if known.status:
                continue
            outcome = self._settle(known.branch, known.tape)
            if outcome is None:
                continue
            recorder.append(AgentEnd(known.agent, outcome, "interrupted"))
            task = shorten_to_width(to_single_line(known.task), _TASK_COLUMNS)
            self._ended.append(
                EndedAgent(
                    known.agent,
                    f"The sub-agent {known.agent} ({known.kind}: {task}) was interrupted. {outcome}"
                    " It can continue where it was, by a message to it, or its work be done again.",
                )
            )
        recorder.barrier()

    def _settle(self, branch: str | None, tape: str | None) -> str | None:
        """Balance what a program left that ended, and say so; None while another one writes it."""
        try:
            with open_history(self._front, self._get_recorder(), branch, tape) as history:
                lost = repair_history(history)
        except Busy:
            return None
        except (TapeError, OSError) as error:
            return f"Its history cannot be read: {error}"
        count = format_count(lost.calls, "call")
        left = f", {count} had no result" if lost.calls else ""
        outcome = f"It had not ended when the program did{left}."
        return outcome + (f" Its last words: {lost.answer}" if lost.answer else "")

    async def rejoin(self) -> list[AgentReport]:
        """Wait for runs that an earlier program handed to others; return how they ended."""
        joined = []
        for known in find_known_agents(self._get_recorder().path).values():
            run = self._name_run(known.start)
            if known.status or self.carrier is None or not await self.carrier.knows(run):
                continue
            agent = self.by_id[known.agent] = self._restore(known)
            agent.status, agent.remote = "running", run
            await self._slots.acquire()
            following = self._follow_elsewhere(agent, self.carrier.follow(run))
            agent.task = asyncio.create_task(following)
            joined.append(agent)
        return [await self._follow_to_end(agent_id) for agent_id in joined]

    def record_open(self) -> None:
        """Record again which sub-agents there are: a new phase begins."""
        known = [
            KnownAgent(
                *(
                    agent.id,
                    agent.plan.kind.name,
                    agent.plan.order.prompt,
                    agent.branch,
                    agent.tape,
                ),
                "" if agent.status == "running" else agent.status,
                agent.output,
            )
            for agent in self.by_id.values()
        ]
        if known:
            self._get_recorder().append(build_agents_mark(known))

    def cancel(self) -> None:
        """Stop all that run."""
        for agent in self.running:
            self._abort(agent)

    async def close(self) -> None:
        """Stop all that run, and wait for it."""
        await asyncio.gather(*(self._stop(agent) for agent in self.running))

    # one run

    async def _begin(self, order: AgentOrder, *, in_background: bool) -> Subagent:
        """Start a new sub-agent; its slot is taken, and given back at its end or here."""
        try:
            async with self._lock:
                agent, recorder = await self._plan(order)
        except BaseException:
            self._slots.release()
            raise
        agent.in_background = in_background
        kind = agent.plan.kind
        prompt = "\n\n".join(filter(None, (kind.initial_prompt, order.prompt)))
        await self._begin_run(agent, recorder, prompt)
        return agent

    async def _plan(self, order: AgentOrder) -> tuple[Subagent, Recorder]:
        """Return a new sub-agent with its empty history; ConfigurationError where it cannot be."""
        parent, setup = self._parent, self._parent.setup
        if self._depth >= setup.config.max_subagent_depth:
            raise ConfigurationError(
                f"sub-agents may be {setup.config.max_subagent_depth} deep here: do it yourself"
            )
        kind = self.types.find(order.type)
        folder = choose_folder(parent, order)
        choose_model(self._models, setup.model, kind, order, folder)  # before anything is made
        own, name = self._get_recorder(), self._choose_id()
        worktree = None
        if kind.worktree if order.worktree is None else order.worktree:
            if is_place(setup.env):
                raise ConfigurationError("worktrees are made on this machine alone: leave it out")
            short = own.tape.id[:8]
            worktree = await add_worktree(folder, self._front.environ, f"{short}-{name}")
            folder = worktree.folder
        model, models, remarks = choose_model(self._models, setup.model, kind, order, folder)
        plan = ChildPlan(name, kind, order, model, models, folder, worktree, remarks)
        _, missing = build_tools(parent, plan, may_start=True)
        for remark in (*remarks, *(f"{tool} is not available here" for tool in missing)):
            self._emit(events.Warn(f"{name} ({kind.name}): {remark}"))
        recorder = None
        if order.tape:
            recorder = open_history(self._front, own, None, order.tape)
        elif not order.own_tape:
            recorder = begin_branch(self._front, own, name)
        if recorder is not None:
            agent = Subagent(plan, None if order.tape else name, order.tape or None)
        else:
            recorder = begin_tape(self._front, order.description or order.prompt, folder)
            agent = Subagent(plan, None, recorder.tape.id)
        self.by_id[name] = agent
        return agent, recorder

    def _name_run(self, start: str) -> str:
        """Return the id of a run for other programs: its `agent.start`, in all stores."""
        return f"{self._get_recorder().tape.id}-{start}"

    def _choose_id(self) -> str:
        """Return the next id: agent-1, agent-2; those of agent-1 are agent-1-1, agent-1-2."""
        recorder = self._get_recorder()
        stem = self._parent.setup.agent or "agent"
        taken = {*self.by_id, *find_known_agents(recorder.path), *recorder.tape.refs().branches}
        return next(name for n in range(1, 1 << 30) if (name := f"{stem}-{n}") not in taken)

    async def _begin_run(self, agent: Subagent, recorder: Recorder, prompt: str) -> None:
        """Record the start of a run and let it go; its slot is given back at its end."""
        agent.status, agent.output, agent.turns, agent.usage = "running", "", 0, Usage()
        agent.cost = None
        agent.created_at, agent.completed_at = format_timestamp(read_clock()), ""
        own, kind = self._get_recorder(), agent.plan.kind.name
        began = own.append(AgentStart(agent.id, kind, prompt, agent.branch, agent.tape))
        own.barrier()
        event = events.SubagentStart(kind, agent.title, agent.plan.model.name, agent=agent.id)
        self._emit(event)
        if self.carrier is not None and agent.plan.worktree is None:
            recorder.close()
            agent.remote = self._name_run(began.id)
            run = RemoteRun(
                *(agent.remote, agent.id, agent.tape or own.tape.id, agent.branch, prompt),
                *(agent.plan.order, self._depth),
            )
            following = self._follow_elsewhere(agent, self.carrier.carry(run))
            agent.task = asyncio.create_task(following)
            return
        try:
            child_depth = self._depth + 1
            may_start = child_depth < self._parent.setup.config.max_subagent_depth
            open_agents = partial(open_deeper, self._front, agent.plan.models, child_depth)
            agent.session = await open_child(
                *(self._front, self._parent, agent.plan, recorder),
                open_agents if may_start else None,
            )
        except BaseException as error:
            recorder.close()
            self._end(agent, "failed", str(error) or type(error).__name__)
            raise
        agent.session.subscribe(partial(self._watch, agent), agents=True)
        agent.task = asyncio.create_task(self._follow(agent, agent.session, prompt))

    async def _follow(self, agent: Subagent, session: Session, prompt: str) -> None:
        """Run a prompt to its end, and record how it ended."""
        outcome = await run_to_end(session, prompt, lambda: agent.stops)
        spend = session.run_state.spend
        agent.cost = None if spend.unknown_calls else spend.cost
        notes = [outcome.output, outcome.failure, await self._leave_worktree(agent)]
        self._end(agent, outcome.status, "\n\n".join(filter(None, notes)))

    async def _follow_elsewhere(self, agent: Subagent, carried: Awaitable[RemoteEnd]) -> None:
        """Wait for a run that another program carries out, and record how it ended."""
        try:
            end = await carried
        except (GongError, OSError) as error:
            end = RemoteEnd("failed", str(error) or type(error).__name__)
        output = end.output
        status = _read_status(end.status)
        if status == "interrupted":
            output = self._settle(agent.branch, agent.tape) or output
        agent.turns, agent.usage, agent.cost = end.turns, end.usage, end.cost
        notes = [output, await self._leave_worktree(agent)]
        self._end(agent, status, "\n\n".join(filter(None, notes)))

    async def _leave_worktree(self, agent: Subagent) -> str:
        if agent.plan.worktree is None:
            return ""
        try:
            return await agent.plan.worktree.remove_unchanged()
        except ConfigurationError as error:
            return f"Its git worktree {agent.plan.worktree.folder} is left: {error}"

    def _end(self, agent: Subagent, status: RunStatus, output: str) -> None:
        """Record the end of a run, and tell of it."""
        self._slots.release()
        agent.status, agent.output, agent.session = status, output, None
        agent.completed_at, agent.last_tool = format_timestamp(read_clock()), ""
        recorder = self._get_recorder()
        recorder.append(AgentEnd(agent.id, output, status, agent.usage))
        recorder.barrier()
        if agent.in_background and not agent.is_closed:
            limits = choose_family_limits(RESULT_LIMIT, self._parent.setup.tuning)
            self._ended.append(EndedAgent(agent.id, agent.describe_end(limits)))
        self._emit(
            events.SubagentEnd(
                agent.plan.kind.name,
                status,
                agent.turns,
                agent.usage,
                agent.in_background,
                agent=agent.id,
            )
        )

    def _watch(self, agent: Subagent, event: events.Event) -> None:
        """Pass on an event of a sub-agent, and count it."""
        if isinstance(event, events.MessageEnd):
            agent.usage += event.usage  # also of those that it has started itself
        elif event.agent != agent.id:
            pass
        elif isinstance(event, events.TurnStart):
            agent.turns += 1
        elif isinstance(event, events.ToolExecutionStart):
            agent.last_tool = event.name
        self._parent.emit_agent_event(event)

    async def _follow_to_end(self, agent: Subagent) -> AgentReport:
        assert agent.task is not None, "it was started"
        try:
            await asyncio.wait({agent.task})
        except asyncio.CancelledError:
            await self._stop(agent)
            raise
        return agent.build_report()

    def _abort(self, agent: Subagent) -> None:
        agent.stops = True
        if agent.session is not None:
            agent.session.abort()
        elif agent.remote and self.carrier is not None:
            self.carrier.cancel(agent.remote)

    async def _stop(self, agent: Subagent) -> None:
        """End the run of a sub-agent, and wait for that, whoever presses Ctrl+C again."""
        if agent.task is None:
            return
        self._abort(agent)
        while not agent.task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({agent.task})

    # what there is

    def _find(self, agent_id: str) -> Subagent:
        """Return a sub-agent, also of an earlier program; raises ConfigurationError."""
        if (agent := self.by_id.get(agent_id)) is not None:
            return agent
        known = find_known_agents(self._get_recorder().path)
        if (lost_agent := known.get(agent_id)) is None:
            there = ", ".join(dict.fromkeys((*known, *self.by_id))) or "none"
            raise ConfigurationError(f"there is no sub-agent {agent_id}; there are: {there}")
        agent = self.by_id[agent_id] = self._restore(lost_agent)
        return agent

    def _restore(self, known: KnownAgent) -> Subagent:
        from ..agent.recorder import find_last_model  # after a crash only
        from ..tools.agent_runs import AgentOrder

        own = self._get_recorder()
        name, folder = "", None
        with (
            suppress(Busy),  # a program that carries it out writes its history
            open_history(self._front, own, known.branch, known.tape) as history,
        ):
            name, folder = find_last_model(history.path) or "", history.find_folder()
        try:
            kind = self.types.find(known.kind)
        except ConfigurationError:  # its file is gone
            kind = self.types.find("general-purpose")
        order = AgentOrder(known.task, kind.name, model=name)
        here = self._parent.setup.env.working_directory
        model, models, _ = choose_model(
            self._models, self._parent.setup.model, kind, order, folder or here
        )
        plan = ChildPlan(known.agent, kind, order, model, models, folder or here)
        agent = Subagent(plan, known.branch, known.tape, output=known.result)
        agent.status = _read_status(known.status)
        return agent

    def _require_slot(self) -> None:
        if self._slots.locked():
            ids = ", ".join(agent.id for agent in self.running)
            raise ConfigurationError(
                f"{len(self.running)} sub-agents run already ({ids}), which is the maximum: wait"
                " for one, or end one"
            )

    def _get_recorder(self) -> Recorder:
        assert self._parent.recorder is not None, "a session with sub-agents has a branch"
        return self._parent.recorder

    def _emit(self, event: events.Event) -> None:
        self._parent.tell(event)


def open_deeper(
    front: FrontEnd, models: ModelFactory, depth: int, session: Session
) -> SubagentManager:
    """Return the sub-agents of a sub-agent's session, so deep."""
    return SubagentManager(session, front, models, depth)


def _read_status(text: str) -> RunStatus:
    match text:
        case "running" | "completed" | "failed" | "cancelled":
            return text
        case _:
            return "interrupted"
