"""A workflow on its tape: what was decided, entry by entry, and how it stands after them.

Each entry is of type `custom`, kind `gong.workflow`; its `event` says what the other fields mean:

event     fields                                         when
--------  ---------------------------------------------  --------------------------------------
begin     requirement, options                           first
plan      plan, summary                                  there is a plan; a later one replaces it
task      task, state                                    before what the state says is begun
review    task, verdict, findings, summary               a reviewer has answered
message   task, to, summary                              a task has something to tell another
replan    task, summary                                  an executor says why the plan does not fit
cost      role, cost, task                               an agent has ended whose cost is known
options   options                                        `resume` was given another budget
score     score, report                                  the evaluator has answered
end       status                                         all tasks have ended, or it was stopped

A program that ends in between leaves the state that it was about to act on: `resume` acts on it
again, and looks first whether it had come to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from tape.errors import NotFound
from tape.index.library import list_tapes
from tape.model.entries import Custom

from .plan import TaskPlan
from .schedule import ENDED, Limits, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tape.index.library import Library
    from tape.model.line import Entry

KIND = "gong.workflow"
SLUG = "workflow"
"""The folder of a workflow's tape is called `DATE-workflow-…`."""

WorkflowStatus = Literal["planned", "running", "completed", "failed", "cancelled", "stopped"]


class WorkflowOptions(Struct, frozen=True, omit_defaults=True):
    """What a workflow was started with; `resume` goes by it."""

    model: str = ""
    role_models: dict[str, str] = {}
    """Role → provider/model; others use `model` (M190)."""
    limits: Limits = Limits()
    yolo: bool = False
    queue: str = ""
    """The queue of its steps without a password; empty where one program does them all."""
    workers: int = 0
    """Workers of the queue that its program starts."""


class WorkflowEvent(Struct, frozen=True, omit_defaults=True):
    """One record of a workflow."""

    event: Literal[
        "begin",
        "plan",
        "task",
        "review",
        "message",
        "replan",
        "cost",
        "options",
        "score",
        "end",
    ]
    requirement: str = ""
    options: WorkflowOptions | None = None
    plan: TaskPlan | None = None
    task: str = ""
    state: TaskState | None = None
    verdict: str = ""
    findings: tuple[Any, ...] = ()
    summary: str = ""
    to: str = ""
    """The task that a message is for, or `all`."""
    role: str = ""
    cost: float = 0.0
    """USD."""
    score: float | None = None
    report: str = ""
    status: WorkflowStatus | None = None


class TaskTimes(Struct):
    """When a task began and ended, as times of a tape; empty while it has not."""

    began: str
    ended: str = ""


class Workflow(Struct):
    """How a workflow stands."""

    id: str
    """That of its tape."""
    requirement: str = ""
    options: WorkflowOptions = field(default_factory=WorkflowOptions)
    plan: TaskPlan = field(default_factory=TaskPlan)
    states: dict[str, TaskState] = {}
    reviews: dict[str, list[WorkflowEvent]] = {}
    """Of each task, oldest first."""
    messages: list[WorkflowEvent] = []
    """Between tasks, oldest first."""
    misfits: list[str] = []
    """Why the newest plan does not fit, as executors say."""
    plans: int = 0
    """How many plans there were."""
    costs: dict[str, float] = {}
    """Role → USD of all its agents, as far as it is known."""
    times: dict[str, TaskTimes] = {}
    """Of the tasks that have begun; of a failed one its newest try's."""
    score: float | None = None
    report: str = ""
    status: WorkflowStatus = "planned"

    def _is_new(self, task: str) -> bool:
        return task not in self.times or bool(self.times[task].ended)

    def find_messages(self, task: str) -> list[str]:
        """Return what other tasks have told one."""
        return [
            f"{message.task}: {message.summary}"
            for message in self.messages
            if message.to in {task, "all"} and message.task != task
        ]

    @property
    def cost(self) -> float:
        """USD of all agents, as far as it is known."""
        return sum(self.costs.values())

    def apply_event(self, event: WorkflowEvent, time: str) -> None:
        """Let an event of a time take effect."""
        match event.event:
            case "begin":
                self.requirement = event.requirement
                self.options = event.options or WorkflowOptions()
            case "plan" if event.plan is not None:
                self.plan = event.plan
                self.plans += 1
                self.misfits = []
                states = self.states
                self.states = {
                    task.id: states.get(task.id, TaskState()) for task in event.plan.tasks
                }
            case "options" if event.options is not None:
                self.options = event.options
            case "score":
                self.score, self.report = event.score, event.report
            case "end" if event.status is not None:
                self.status = event.status
            case _:
                self._apply_to_task(event, time)

    def _apply_to_task(self, event: WorkflowEvent, time: str) -> None:
        match event.event:
            case "task" if event.state is not None:
                self.states[event.task] = event.state
                if event.state.status in ENDED and event.task in self.times:
                    self.times[event.task].ended = time
                elif event.state.status == "running" and self._is_new(event.task):
                    self.times[event.task] = TaskTimes(time)
                self.status = "running"
            case "review":
                self.reviews.setdefault(event.task, []).append(event)
            case "message":
                self.messages.append(event)
            case "replan":
                self.misfits.append(f"{event.task}: {event.summary}")
            case "cost":
                self.costs[event.role] = self.costs.get(event.role, 0.0) + event.cost
                if (state := self.states.get(event.task)) is not None:
                    more = state.cost + event.cost
                    self.states[event.task] = msgspec.structs.replace(state, cost=more)


def build_entry(event: WorkflowEvent) -> Custom:
    """Return the entry of an event."""
    return Custom(KIND, Raw(msgspec.json.encode(event)))


def read_events(path: Iterable[Entry]) -> Iterator[WorkflowEvent]:
    """Yield the events on a path; what is not understood is left out."""
    return (event for _, event in _read_timed_events(path))


def _read_timed_events(path: Iterable[Entry]) -> Iterator[tuple[str, WorkflowEvent]]:
    for entry in path:
        if isinstance(entry.data, Custom) and entry.data.kind == KIND:
            try:
                yield entry.time, msgspec.json.decode(bytes(entry.data.data), type=WorkflowEvent)
            except msgspec.MsgspecError:
                continue


def read_workflow(tape: str, path: Iterable[Entry]) -> Workflow:
    """Return how the workflow on a path stands; raises NotFound where there is none."""
    workflow = Workflow(tape)
    count = 0
    for time, event in _read_timed_events(path):
        workflow.apply_event(event, time)
        count += 1
    if not count:
        raise NotFound(f"{tape[:8]} is not a workflow: gong workflow list shows them")
    return workflow


def list_workflow_ids(library: Library) -> list[str]:
    """Return the ids of the tapes that workflows are on, the newest first."""
    rows = [row for row in list_tapes(*library) if f"-{SLUG}-" in row.folder]
    return [row.id for row in sorted(rows, key=lambda row: row.created, reverse=True)]
