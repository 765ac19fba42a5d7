"""Carries a workflow out: starts what may begin, takes each task through its states, records all.

One program does this for a workflow at a time: it holds the branch of the workflow's tape. What is
next is computed from the tape alone (`schedule`), so a program that was killed is continued by
another one that reads the same tape.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from tape.model.entries import AgentEnd, AgentStart, Custom, Text, User

from ..errors import ConfigurationError, GongError
from ..subagents.child import begin_tape
from ..tools.agent_runs import AgentOrder
from .answers import (
    PLAN_SHAPE,
    REVIEW_SHAPE,
    SCORE_SHAPE,
    MalformedAnswer,
    ask_again,
    ask_for_another_plan,
    ask_for_fix,
    ask_for_plan,
    ask_for_resolution,
    ask_for_review,
    ask_for_score,
    ask_for_work,
    read_notes,
    read_plan,
    read_review,
    read_revised_plan,
    read_score,
)
from .record import Workflow, WorkflowEvent, build_entry, read_events
from .schedule import (
    AT_WORK,
    TaskState,
    choose_ready,
    choose_skipped,
    judge_failure,
    judge_review,
)
from .worktrees import MergeFailed, TaskRepository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tape.model.line import Entry

    from ..agent.front_end import FrontEnd
    from ..agent.session import Session
    from ..subagents.manager import SubagentManager
    from ..subagents.remote import Carrier
    from ..tools.agent_runs import AgentReport
    from .plan import PlannedTask, TaskPlan, TaskStatus
    from .record import WorkflowStatus

Answer = TypeVar("Answer")
_ROLES = {"planner": "manager"}
"""Types of agents whose role has another name."""
_WORKERS: dict[TaskStatus, str] = {
    "running": "executor",
    "review": "reviewer",
    "fixing": "fixer",
}
_MAX_LOST = 5
"""How often a step is begun again whose worker has ended."""
_STOP_SECONDS = 0.5
"""How often it is looked whether somebody has cancelled the workflow."""


class WorkflowStopped(GongError):
    """The workflow was cancelled, or its budget is spent."""


class WorkflowEngine:
    """Carries out one workflow in a session whose branch is open."""

    def __init__(
        self,
        workflow: Workflow,
        session: Session,
        front: FrontEnd,
        *,
        cancel_file: Path,
        carrier: Carrier | None = None,
        tell: Callable[[WorkflowEvent], None] = lambda _: None,
    ) -> None:
        """`tell` gets each event once it is on the tape; `cancel_file` there means to stop.

        `carrier` hands steps to other programs; without one they are carried out here.
        """
        self.workflow = workflow
        self._session, self._front = session, front
        self._tell, self._cancel_file = tell, cancel_file
        self._agents.carrier = carrier
        limits = workflow.options.limits
        self._slots = {
            "executor": asyncio.Semaphore(max(1, limits.executors)),
            "reviewer": asyncio.Semaphore(max(1, limits.reviewers)),
            "fixer": asyncio.Semaphore(max(1, limits.fixers)),
        }
        self._repository = TaskRepository(front.folder, front.environ)
        self._has_worktrees = False
        self._merging = asyncio.Lock()
        self._tasks_by_order: dict[str, str] = {}
        """What an order is called → the task that it is for."""
        self._unrevised = ""
        """Why the plan does not fit, where the manager had no other one."""
        self.stopped = ""
        """Why nothing more is begun; empty while it is."""

    @property
    def _agents(self) -> SubagentManager:
        agents: SubagentManager = self._session.find_agents()
        return agents

    def record(self, event: WorkflowEvent) -> None:
        """Put an event on the tape, for good, and let it take effect."""
        recorder = self._session.recorder
        assert recorder is not None, "a workflow's branch is open"
        entry = recorder.append(build_entry(event))
        recorder.barrier()
        self.workflow.apply_event(event, entry.time)
        self._tell(event)

    def _note(self, task: str, **changes: Any) -> TaskState:
        """Record that a task stands differently."""
        state = replace(self.workflow.states[task], **changes)
        self.record(WorkflowEvent("task", task=task, state=state))
        return state

    def describe_at_work(self) -> dict[str, str]:
        """Return who works on each task that is at work, and with what, in a few words."""
        states = self.workflow.states
        workers = {
            task: _WORKERS[state.status]
            for task, state in states.items()
            if state.status in AT_WORK
        }
        for agent in self._agents.running:
            task = self._tasks_by_order.get(agent.plan.order.description)
            if task is not None:
                calling = f", calling {agent.last_tool}" if agent.last_tool else ""
                workers[task] = f"{agent.plan.kind.name}{calling}"
        return workers

    # the whole

    def begin(self) -> None:
        """Record the requirement and what the workflow was started with."""
        workflow, recorder = self.workflow, self._session.recorder
        assert recorder is not None, "a workflow's branch is open"
        recorder.append(User((Text(workflow.requirement),)))
        self.record(
            WorkflowEvent("begin", requirement=workflow.requirement, options=workflow.options)
        )

    async def make_plan(self) -> TaskPlan:
        """Let the planner take the requirement apart; the plan is not recorded yet.

        Raises GongError where it fails, or answers twice what is no plan: the workflow has failed.
        """
        order = self._build_order("planner", "manager", ask_for_plan(self.workflow.requirement))
        try:
            plan, _ = await self._ask(order, read_plan, PLAN_SHAPE)
        except GongError as error:
            self.record(WorkflowEvent("end", status="failed", summary=str(error)))
            raise
        except asyncio.CancelledError:
            self.record(WorkflowEvent("end", status="cancelled"))
            raise
        return plan if plan.requirement else replace(plan, requirement=self.workflow.requirement)

    async def run(self) -> WorkflowStatus:
        """Carry the plan out as far as it goes, and return how it ended."""
        self._has_worktrees = await self._repository.is_usable()
        await self._rejoin()
        self._agents.settle_lost()
        self._agents.take_ended()
        branches = {state.branch for state in self.workflow.states.values() if state.branch}
        if self._has_worktrees and branches:
            await self._repository.stop_merging(branches)
        await self._remove_merged()
        working: dict[asyncio.Task[None], str] = {}
        # Those that a program left at work come first: their worktrees and tapes are there already.
        for task in self.workflow.plan.tasks:
            if self.workflow.states[task.id].status in AT_WORK:
                working[asyncio.create_task(self._run_task(task))] = task.id
        try:
            while True:
                self._look_for_stop()
                await self._change_plan()
                self._begin_ready(working)
                if not working:
                    break
                done, _ = await asyncio.wait(
                    working, timeout=_STOP_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for step in done:
                    del working[step]
                    step.result()
        finally:
            for step in working:
                step.cancel()
            await asyncio.gather(*working, return_exceptions=True)
        return await self._finish()

    async def _rejoin(self) -> None:
        """Wait for steps that workers still carry out for a program that has ended."""
        tasks = {state.tape: task for task, state in self.workflow.states.items() if state.tape}
        for report in await self._agents.rejoin():
            tape = self._agents.by_id[report.agent].tape
            self._count_cost(report, tasks.get(tape or "", ""))

    async def _remove_merged(self) -> None:
        """Remove worktrees whose work was merged when a program ended."""
        for state in self.workflow.states.values():
            if state.status == "completed" and state.branch and self._has_worktrees:
                await self._repository.remove(state.worktree, state.branch)

    async def _change_plan(self) -> None:
        """Let the manager change the plan where it does not fit, as often as it may."""
        workflow = self.workflow
        if self.stopped or workflow.plans > workflow.options.limits.replans:
            return
        lost = {*choose_skipped(workflow.plan, workflow.states).values()}
        failed = (f"{task_id} failed: {workflow.states[task_id].note}" for task_id in sorted(lost))
        why = "\n".join((*workflow.misfits, *failed))
        if not why or why == self._unrevised:
            return
        started = {task for task, state in workflow.states.items() if state.status != "pending"}
        read = partial(read_revised_plan, plan=workflow.plan, started=started)
        prompt = ask_for_another_plan(workflow.plan, why, self._describe_task)
        try:
            plan, _ = await self._ask(
                self._build_order("planner", "manager", prompt), read, PLAN_SHAPE
            )
        except GongError:
            self._unrevised = why  # it goes as it is
            return
        self.record(WorkflowEvent("plan", plan=plan, summary=why))

    def _begin_ready(self, working: dict[asyncio.Task[None], str]) -> None:
        # Again until none is found: a task that was skipped skips those that wait for it.
        while lost := choose_skipped(self.workflow.plan, self.workflow.states):
            for task_id, dependency in lost.items():
                note = f"it waits for {dependency}, which was not completed"
                self._note(task_id, status="skipped", note=note)
        if self.stopped:
            return
        states, started = self.workflow.states, {*working.values()}
        ready = choose_ready(
            self.workflow.plan, self.workflow.states, has_worktrees=self._has_worktrees
        )
        for task in ready:
            running = sum(state.status == "running" for state in states.values())
            if task.id not in started and running < self.workflow.options.limits.executors:
                self._note(task.id, status="running", tries=1)
                working[asyncio.create_task(self._run_task(task))] = task.id

    def _look_for_stop(self) -> None:
        workflow, limits = self.workflow, self.workflow.options.limits
        if not self.stopped and self._cancel_file.exists():
            self.stopped = "cancelled"
            self._agents.cancel()
        if not self.stopped and limits.max_cost and workflow.cost >= limits.max_cost:
            self.stopped = f"the budget of {limits.max_cost:g} USD is spent"
        for role, limit in limits.max_role_costs.items():
            if not self.stopped and workflow.costs.get(role, 0.0) >= limit:
                self.stopped = f"the budget of the {role}, {limit:g} USD, is spent"

    async def _finish(self) -> WorkflowStatus:
        states = self.workflow.states.values()
        status: WorkflowStatus = "completed"
        if self.stopped:
            status = "cancelled" if self.stopped == "cancelled" else "stopped"
        elif any(state.status != "completed" for state in states):
            status = "failed"
        if not self.stopped and self.workflow.score is None:
            await self._evaluate()
        with suppress(FileNotFoundError):
            self._cancel_file.unlink()
        self.record(WorkflowEvent("end", status=status, summary=self.stopped))
        return status

    async def _evaluate(self) -> None:
        prompt = ask_for_score(self.workflow.plan, self._describe_task)
        order = self._build_order("evaluator", "evaluator", prompt)
        try:
            score, _ = await self._ask(order, read_score, SCORE_SHAPE)
        except GongError as error:
            self.record(WorkflowEvent("score", report=f"there is no score: {error}"))
            return
        self.record(WorkflowEvent("score", score=score.score, report=score.report))

    def _describe_task(self, task: str) -> str:
        state = self.workflow.states[task]
        return f"{state.status}{f' ({state.note})' if state.note else ''}"

    # one task

    async def _run_task(self, task: PlannedTask) -> None:
        """Take a task from where it stands to its end."""
        findings: tuple[Any, ...] = ()
        result = ""
        while True:
            state = self.workflow.states[task.id]
            try:
                match state.status:
                    case "running":
                        if not state.tape:
                            state = await self._prepare(task)
                        result = await self._execute(task, state)
                    case "review":
                        findings = await self._review(task, state, result)
                    case "fixing":
                        await self._fix(task, state, findings)
                    case _:
                        return
            except WorkflowStopped:
                return
            except GongError as error:
                self._note(task.id, status="failed", note=str(error))

    async def _prepare(self, task: PlannedTask) -> TaskState:
        """Make a task's worktree and tape, in this order, and record them."""
        changes: dict[str, Any] = {}
        folder = self._front.folder
        if self._has_worktrees:
            slug = re.sub(r"[^a-z0-9]+", "-", task.id.lower()).strip("-")[:24] or "task"
            # No task may have this name yet, also none of an earlier plan
            number = [task.id for task in self.workflow.plan.tasks].index(task.id) + 1
            taken = {state.branch for state in self.workflow.states.values()}
            while f"gong/{(name := f'{self.workflow.id[:8]}-{number}-{slug}')}" in taken:
                number += 1
            worktree = await self._repository.add(name)
            folder = worktree.folder
            changes = {
                "worktree": worktree.folder,
                "branch": worktree.branch,
                "base": worktree.commit,
            }
        with begin_tape(self._front, task.title, folder) as recorder:
            changes["tape"] = recorder.tape.id
        return self._note(task.id, **changes)

    async def _execute(self, task: PlannedTask, state: TaskState) -> str:
        reviews = self.workflow.reviews.get(task.id, [])
        findings = reviews[-1].findings if reviews and state.tries > 1 else ()
        messages = self.workflow.find_messages(task.id)
        prompt = ask_for_work(self.workflow.plan, task, findings, state.note, messages)
        status, output = self._find_outcome(task.id, state)
        if status != "completed":  # one that was completed before its program ended is not repeated
            order = self._build_order("executor", "executor", prompt, task, state)
            async with self._slots["executor"]:
                self._require_going()
                await self._restore(state, status)
                report = await self._run_agent(order, task.id)
            status, output = report.status, report.output
        if self.stopped == "cancelled" and status == "cancelled":
            raise WorkflowStopped(self.stopped)
        state = self.workflow.states[task.id]
        if status != "completed":
            becomes = judge_failure(state, self.workflow.options.limits)
            tries = state.tries + (becomes == "running")
            self._note(task.id, status=becomes, tries=tries, note=output)
            return output
        await self._commit(task, state)
        notes = read_notes(output)
        for words in notes.messages:
            message = WorkflowEvent("message", task=task.id, to=words.to, summary=words.text)
            if message not in self.workflow.messages:  # a program that ended has recorded it
                self.record(message)
        if notes.replan:
            self.record(WorkflowEvent("replan", task=task.id, summary=notes.replan))
        self._note(task.id, status="review", note="")
        return output

    async def _restore(self, state: TaskState, status: str) -> None:
        """Undo what an agent left whose program ended, so that it is not done twice."""
        if status == "interrupted" and state.worktree:
            await self._repository.restore(state.worktree, state.branch.rpartition("/")[2])

    async def _commit(self, task: PlannedTask, state: TaskState) -> None:
        if state.worktree:
            await self._repository.commit(state.worktree, f"{task.title}\n\nTask {task.id}")

    async def _review(self, task: PlannedTask, state: TaskState, result: str) -> tuple[Any, ...]:
        changes = ""
        if state.worktree:
            changes = await self._repository.read_changes(state.worktree, state.base)
        prompt = ask_for_review(self.workflow.plan, task, changes, result)
        order = self._build_order("reviewer", "reviewer", prompt, task, state)
        async with self._slots["reviewer"]:
            self._require_going()
            review, _ = await self._ask(order, read_review, REVIEW_SHAPE, task.id)
        self.record(
            WorkflowEvent(
                *("review",),
                task=task.id,
                verdict=review.verdict,
                findings=review.findings,
                summary=review.summary,
            )
        )
        state = self.workflow.states[task.id]
        becomes = judge_review(state, review.verdict, self.workflow.options.limits)
        if becomes == "completed":
            left = review.summary if review.verdict == "minor" else ""
            await self._merge(task, state, left)
        elif becomes == "fixing":
            self._note(task.id, status="fixing", fixes=state.fixes + 1)
        elif becomes == "running":
            self._note(task.id, status="running", tries=state.tries + 1, note="")
        else:
            self._note(task.id, status="failed", note=review.summary or "the review refused it")
        return review.findings

    async def _fix(self, task: PlannedTask, state: TaskState, findings: tuple[Any, ...]) -> None:
        reviews = self.workflow.reviews.get(task.id, [])
        summary = reviews[-1].summary if reviews else ""
        findings = findings or (reviews[-1].findings if reviews else ())
        status, _ = self._find_outcome(task.id, state)
        if status != "completed":
            await self._restore(state, status)
            order = self._build_order(
                "fixer", "fixer", ask_for_fix(task, findings, summary), task, state
            )
            async with self._slots["fixer"]:
                self._require_going()
                report = await self._run_agent(order, task.id)
            if report.status == "cancelled" and self.stopped:
                raise WorkflowStopped(self.stopped)
        await self._commit(task, state)
        self._note(task.id, status="review")

    async def _merge(self, task: PlannedTask, state: TaskState, left: str) -> None:
        """Merge a task's work, one task at a time, and complete it."""
        if not state.branch:
            self._note(task.id, status="completed", note=left)
            return
        async with self._merging:
            conflicts = await self._repository.update(state.worktree)
            if conflicts:
                prompt = ask_for_resolution(task, conflicts)
                order = self._build_order("fixer", "fixer", prompt, task, state)
                async with self._slots["fixer"]:
                    await self._run_agent(order, task.id)
                conflicts = await self._repository.finish_resolution(state.worktree, conflicts)
            if conflicts:
                named = ", ".join(conflicts)
                raise MergeFailed(
                    f"its work conflicts in {named}, and stays on branch {state.branch}"
                    f" in {state.worktree}"
                )
            await self._repository.merge(state.branch, f"Merge task {task.id}: {task.title}")
            self._note(task.id, status="completed", note=left)
            await self._repository.remove(state.worktree, state.branch)

    # one agent

    def _build_order(
        self,
        kind: str,
        role: str,
        prompt: str,
        task: PlannedTask | None = None,
        state: TaskState | None = None,
    ) -> AgentOrder:
        """Return the order for an agent; those that change files continue its tape."""
        options = self.workflow.options
        title = kind
        if task is not None:
            title = f"{kind} of {task.id}: {task.title}"
            self._tasks_by_order[title] = task.id
        return AgentOrder(
            prompt,
            kind,
            title,
            options.role_models.get(role) or options.model,
            tape=state.tape if state is not None and kind in {"executor", "fixer"} else "",
            place=state.worktree if state is not None else "",
        )

    async def _run_agent(self, order: AgentOrder, task: str = "") -> AgentReport:
        """Let an agent work to its end, also if its worker is lost, and count what it cost."""
        for _ in range(_MAX_LOST):
            report = await self._agents.run(order)
            self._count_cost(report, task)
            if report.status != "interrupted":
                break
            if task:
                await self._restore(self.workflow.states[task], report.status)
        return report

    def _count_cost(self, report: AgentReport, task: str) -> None:
        if not report.cost:
            return
        role = _ROLES.get(report.type, report.type)
        self.record(WorkflowEvent("cost", task=task, role=role, cost=report.cost))
        limit = self.workflow.options.limits.max_task_cost
        if task and limit and self.workflow.states[task].cost >= limit:
            raise ConfigurationError(f"the budget of a task, {limit:g} USD, is spent")

    async def _ask(
        self, order: AgentOrder, read: Callable[[str], Answer], shape: str, task: str = ""
    ) -> tuple[Answer, AgentReport]:
        """Return the answer of an agent, which is asked once more where it cannot be read."""
        report = await self._run_agent(order, task)
        self._require_answer(report)
        try:
            return read(report.output), report
        except MalformedAnswer as error:
            await self._agents.send(report.agent, ask_again(error, shape))
        report = await self._agents.wait(report.agent)
        self._count_cost(report, task)
        self._require_answer(report)
        try:
            return read(report.output), report
        except MalformedAnswer as error:
            raise ConfigurationError(
                f"the {order.type} answered twice what cannot be read: {error}"
            ) from error

    def _require_answer(self, report: AgentReport) -> None:
        if report.status == "cancelled" and self.stopped:
            raise WorkflowStopped(self.stopped)
        if not report.success:
            raise ConfigurationError(f"the {report.type} failed: {report.output}")

    def _require_going(self) -> None:
        """Raise WorkflowStopped where nothing more is to be begun."""
        self._look_for_stop()
        if self.stopped:
            raise WorkflowStopped(self.stopped)

    def _find_outcome(self, task: str, state: TaskState) -> tuple[str, str]:
        """Return how the agent of a task's newest step ended, and what it said; "" if none did."""
        recorder = self._session.recorder
        assert recorder is not None, "a workflow's branch is open"
        path = recorder.path
        at = next((n for n in reversed(range(len(path))) if _is_about(path[n], task)), 0)
        agent, outcome = "", ("", "")
        for entry in path[at:]:
            match entry.data:
                case AgentStart(agent=started, tape=tape) if tape == state.tape:
                    agent, outcome = started, ("", "")
                case AgentEnd(agent=ended, result=result, status=status) if ended == agent:
                    outcome = (status, result)
        return outcome


def _is_about(entry: Entry, task: str) -> bool:
    """Return whether an entry records a state of a task."""
    if not isinstance(entry.data, Custom) or b'"task"' not in bytes(entry.data.data):
        return False
    return any(event.event == "task" and event.task == task for event in read_events([entry]))
