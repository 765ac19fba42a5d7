"""Workflows of a store: begun, opened again, forked; each is a session whose branch is open."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace as replace_fields

from tape.errors import NotFound, UsageError

from ..agent.front_end import FrontEnd
from ..agent.recorder import Recorder
from ..assembly import opening
from ..private_files import locate_state_folder
from .engine import WorkflowEngine
from .plan import list_dependents
from .record import SLUG, Workflow, WorkflowEvent, read_events, read_workflow

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from tape.index.library import Library
    from tape.model.line import Entry

    from ..config import Settings
    from .queue import StepQueue
    from .record import WorkflowOptions

_MAX_TASKS = 1_000
"""Tasks that run side by side, which the plan and the options limit, not the settings."""


def locate_cancel_file(environ: Mapping[str, str], workflow: str) -> Path:
    """Return the file whose being there tells the program of a workflow to stop."""
    return locate_state_folder(environ) / "workflows" / f"{workflow}.cancel"


def build_front(
    library: Library,
    settings: Settings,
    environ: Mapping[str, str],
    folder: str,
    program: str,
    options: WorkflowOptions,
    warn: Callable[[str], None],
) -> FrontEnd:
    """Return the front end of a workflow's session: edits are accepted, what asks is refused."""
    mode = "bypass" if options.yolo else settings.permissions.mode
    if mode == "default":
        mode = "accept_edits"
    settings = replace_fields(
        settings,
        permissions=replace_fields(settings.permissions, mode=mode),
        max_subagents=_MAX_TASKS,
        max_turns=0,
    )
    return FrontEnd(
        library,
        settings,
        environ,
        folder,
        program,
        options.role_models.get("manager") or options.model or None,
        warn,
        names_mode=True,
    )


@asynccontextmanager
async def begin_workflow(
    front: FrontEnd,
    requirement: str,
    options: WorkflowOptions,
    tell: Callable[[WorkflowEvent], None],
    queue: str = "",
) -> AsyncGenerator[WorkflowEngine]:
    """Begin a workflow on a tape of its own, and yield what carries it out."""
    slug = f"{SLUG} {requirement}"
    beginning = front.build_beginning(front.folder, title=requirement, slug=slug)
    tape = front.library.store.create(beginning)
    recorder = Recorder.open(tape, durability=front.settings.durability)
    workflow = Workflow(tape.id, requirement, options)
    async with _open_engine(front, recorder, workflow, tell, queue) as engine:
        engine.begin()
        yield engine


@asynccontextmanager
async def open_workflow(
    front: FrontEnd, ref: str, tell: Callable[[WorkflowEvent], None], queue: str = ""
) -> AsyncGenerator[WorkflowEngine]:
    """Open a workflow to carry it on; raises UsageError where another program does.

    `queue` is the URL of a queue whose workers carry its steps out.
    """
    recorder = opening.resume_branch(front, opening.find_session(front, ref), ref)
    if recorder.writer.instead_of is not None:
        recorder.close()
        raise UsageError(f"workflow {ref} is being carried out by another program")
    workflow = read_workflow(recorder.tape.id, recorder.path)
    async with _open_engine(front, recorder, workflow, tell, queue) as engine:
        yield engine


@asynccontextmanager
async def _open_engine(
    front: FrontEnd,
    recorder: Recorder,
    workflow: Workflow,
    tell: Callable[[WorkflowEvent], None],
    queue: str,
) -> AsyncGenerator[WorkflowEngine]:
    host = await opening.open_session(front, recorder)
    try:
        host.session.announce()
        cancel = locate_cancel_file(front.environ, workflow.id)
        cancel.unlink(missing_ok=True)
        async with _open_queue(queue, front, workflow.options) as steps:
            yield WorkflowEngine(
                workflow, host.session, front, cancel_file=cancel, carrier=steps, tell=tell
            )
    finally:
        await host.close()


@asynccontextmanager
async def _open_queue(
    url: str, front: FrontEnd, options: WorkflowOptions
) -> AsyncGenerator[StepQueue | None]:
    """Yield the queue at a URL, with the workers that the options name; None without a URL."""
    if not url:
        yield None
        return
    from .queue import StepQueue, start_workers  # few workflows have a queue

    steps = await StepQueue.open(url, front.folder, options, front.warn)
    try:
        store = str(front.library.store.tapes.parent)
        async with start_workers(options.workers, url, store, front.environ):
            yield steps
    finally:
        await steps.close()


def load_workflow(front: FrontEnd, ref: str) -> Workflow:
    """Return how a workflow stands, without opening it to write."""
    hit = opening.find_session(front, ref)
    with hit.tape as tape:
        return read_workflow(tape.id, tape.entries(hit.head))


def reset_task(engine: WorkflowEngine, task: str) -> list[str]:
    """Let a task begin again, and what was skipped because of it; return their ids.

    It continues what its last try left. Raises PlanError, and UsageError for a task
    that has not failed.
    """
    workflow = engine.workflow
    workflow.plan.find(task)
    if workflow.states[task].status not in {"failed", "skipped"}:
        status = workflow.states[task].status
        raise UsageError(f"task {task} is {status}: only one that failed can be tried again")
    waiting = list_dependents(workflow.plan, task)
    again = [
        task,
        *(task_id for task_id in waiting if workflow.states[task_id].status == "skipped"),
    ]
    for task_id in again:
        state = replace_fields(
            workflow.states[task_id], status="pending", tries=0, fixes=0, note=""
        )
        engine.record(WorkflowEvent("task", task=task_id, state=state))
    workflow.score = None
    return again


def fork_workflow(front: FrontEnd, ref: str, task: str) -> str:
    """Return the id of a new workflow that stands where this one did before a task began.

    Raises PlanError for an unknown task, NotFound for one that never began.
    """
    hit = opening.find_session(front, ref)
    with hit.tape as tape:
        path = [*tape.entries(hit.head)]
        workflow = read_workflow(tape.id, path)
    workflow.plan.find(task)
    before = _find_beginning(path, task)
    with (place := opening.find_session(front, f"{workflow.id}@{before.id}")).tape as tape:
        title = workflow.requirement
        beginning = front.build_beginning(front.folder, title=title, slug=f"{SLUG} {title}")
        with front.library.store.create(beginning, origin=(tape, place.head)) as copy:
            return copy.id


def _find_beginning(path: list[Entry], task: str) -> Entry:
    """Return the entry before a task's first state."""
    for before, entry in pairwise(path):
        if any(event.event == "task" and event.task == task for event in read_events([entry])):
            return before
    raise NotFound(f"task {task} never began: there is nothing to fork at")
