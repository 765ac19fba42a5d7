"""`gong workflow`: a requirement planned, carried out by sub-agents, reviewed and judged."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.remote.opening import open_store

from .. import __version__, config
from ..errors import ConfigurationError
from ..project import locate_folder
from ..workflow.plan import PlanError, TaskPlan, parse_plan
from ..workflow.queue import choose_queue, mask_password
from ..workflow.record import WorkflowEvent, WorkflowOptions, list_workflow_ids
from ..workflow.report import build_page, draw_graph
from ..workflow.runner import (
    begin_workflow,
    build_front,
    fork_workflow,
    load_workflow,
    locate_cancel_file,
    open_workflow,
    reset_task,
)
from ..workflow.schedule import Limits
from .options import load_settings, model_option, print_warning, store_option
from .workflow_screen import WorkflowScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..agent.front_end import FrontEnd
    from ..workflow.engine import WorkflowEngine
    from ..workflow.record import Workflow

ROLES = ("manager", "executor", "reviewer", "fixer", "evaluator")
_EXITS = {"completed": 0, "stopped": 8, "cancelled": 130}


class ListedWorkflow(Struct, frozen=True):
    """One workflow as `gong workflow list --json` prints it."""

    id: str
    requirement: str
    status: str
    tasks: int
    completed: int
    score: float | None


class ListedTask(Struct, frozen=True):
    """One task as `gong workflow show --json` prints it."""

    id: str
    title: str
    status: str
    dependencies: tuple[str, ...]
    tries: int
    note: str
    tape: str
    branch: str
    worktree: str
    cost: float
    reviews: tuple[Any, ...]


class _WorkflowGroup(NamingGroup):
    """A group whose first word may be a requirement."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Run `start` where the first word names no command."""
        if args and args[0] not in self.commands:
            return super().resolve_command(ctx, ["start", *args])
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let options stand before the requirement, too."""
        asks = {"--help", "-h"} & {*args[:1]}
        if args and args[0].startswith("-") and not asks:
            args = ["start", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_WorkflowGroup,
    epilog=format_examples("gong workflow list", "gong workflow list --json"),
)
def workflow() -> None:
    """Plan a requirement, let sub-agents carry it out, review and judge it: docs/workflow.md.

    gong workflow "REQUIREMENT" is short for gong workflow start "REQUIREMENT".
    """


class _RoleCost(click.ParamType[tuple[str, float]]):
    name = "ROLE=USD"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, float]:
        """Return the role and its budget."""
        role, _, usd = str(value).partition("=")
        if role not in ROLES:
            self.fail(f"{role!r} is not a role; roles are {', '.join(ROLES)}", param, ctx)
        try:
            return role, float(usd)
        except ValueError:
            self.fail(f"{usd!r} is not an amount of USD", param, ctx)


_role_cost_option = click.option(
    "--role-cost", "role_costs", type=_RoleCost(), multiple=True, metavar="ROLE=USD",
    help="USD for all agents of a role, such as reviewer=2; may be repeated.",
)  # fmt: skip


def _add_budget(command: Any) -> Any:
    """Add the options that give a workflow another budget."""
    options = [
        click.option("--max-cost", type=click.FloatRange(0), help="Another budget for the run."),
        click.option("--max-task-cost", type=click.FloatRange(0),
                     help="Another budget for one task."),
        _role_cost_option,
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _change_budget(limits: Limits, options: dict[str, Any]) -> Limits:
    changed = {name: options[name] for name in ("max_cost", "max_task_cost")}
    limits = msgspec.structs.replace(
        limits, **{name: value for name, value in changed.items() if value is not None}
    )
    role_costs = {**limits.max_role_costs, **dict(options["role_costs"])}
    return msgspec.structs.replace(limits, max_role_costs=role_costs)


def _add_limits(command: Any) -> Any:
    defaults = Limits()
    options = [
        click.option("--max-executors", type=click.IntRange(1), default=defaults.executors,
                     show_default=True, help="Tasks that are worked on at once."),
        click.option("--max-reviewers", type=click.IntRange(1), default=defaults.reviewers,
                     show_default=True, help="Reviews at once."),
        click.option("--max-fixers", type=click.IntRange(1), default=defaults.fixers,
                     show_default=True, help="Fixers at once."),
        click.option("--retries", type=click.IntRange(0), default=defaults.retries,
                     show_default=True, help="Further tries of a task, and fixes of its findings."),
        click.option("--auto-fix/--no-auto-fix", default=True, show_default=True,
                     help="Whether minor findings are fixed."),
        click.option("--replans", type=click.IntRange(0), default=defaults.replans,
                     show_default=True, help="Times that the manager may change the plan."),
        click.option("--max-cost", type=click.FloatRange(0), default=0.0,
                     help="USD for the whole run; nothing is begun beyond it."),
        click.option("--max-task-cost", type=click.FloatRange(0), default=0.0,
                     help="USD for one task; it fails beyond it."),
        _role_cost_option,
    ]  # fmt: skip
    options += [
        click.option(f"--{role}-model", metavar="MODEL", help=f"Model of the {role}.")
        for role in ROLES
    ]
    for option in reversed(options):
        command = option(command)
    return command


_queue_option = click.option(
    "--queue", metavar="URL",
    help="Let workers carry the steps out: sqlite, sqlite:///FILE or postgresql://…"
    " [default: $GONG_WORKFLOW_QUEUE]",
)  # fmt: skip


@workflow.command("start")
@click.argument("requirement", required=False)
@click.option("--plan", "plan_file", type=click.File("rb"), metavar="FILE",
              help="Carry out this plan, a TaskPlan as JSON; - is standard input.")  # fmt: skip
@click.option("--plan-only", is_flag=True, help="Print the plan as JSON and stop.")
@click.option("-y", "--yes", is_flag=True, help="Carry the plan out without asking.")
@click.option("--yolo", is_flag=True, help="Ask nothing at all: every call is allowed.")
@click.option("--report", "report_file", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Write a report with the graph of tasks at the end.")  # fmt: skip
@_queue_option
@click.option("--workers", type=click.IntRange(0), default=1, show_default=True,
              help="Workers of the queue to start here.")  # fmt: skip
@store_option
@model_option
@_add_limits
@as_json
def start(
    requirement: str | None,
    plan_file: Any,
    *,
    plan_only: bool,
    yes: bool,
    yolo: bool,
    report_file: str | None,
    queue: str | None,
    workers: int,
    store: str | None,
    model: str | None,
    as_json: bool,
    **values: Any,
) -> int:
    """Plan a requirement and carry the plan out.

    The plan is shown first, and can be edited. Each task is done in a git worktree of its own and
    merged into what is checked out. --json prints each event as a line.
    """
    plan = None
    if plan_file is not None:
        plan = parse_plan(plan_file.read())
        requirement = requirement or plan.requirement
    if not requirement or not requirement.strip():
        raise click.UsageError('say what is to be done: gong workflow "REQUIREMENT"')
    if plan is not None and not plan.requirement:
        plan = msgspec.structs.replace(plan, requirement=requirement)
    asks = not (yes or yolo or plan_only)
    if asks and not sys.stdin.isatty():
        raise click.UsageError("not a terminal: pass --yes or --plan-only")
    limits = Limits(
        executors=values["max_executors"],
        reviewers=values["max_reviewers"],
        fixers=values["max_fixers"],
        retries=values["retries"],
        auto_fix=values["auto_fix"],
        replans=values["replans"],
        max_cost=values["max_cost"],
        max_task_cost=values["max_task_cost"],
        max_role_costs=dict(values["role_costs"]),
    )
    role_models = {role: values[f"{role}_model"] for role in ROLES if values[f"{role}_model"]}
    settings = load_settings(store=store)
    options = WorkflowOptions(
        model or os.environ.get("GONG_MODEL") or settings.model or "", role_models, limits, yolo
    )
    url = choose_queue(queue, os.environ)
    if url:
        options = msgspec.structs.replace(options, queue=mask_password(url), workers=workers)

    async def work(front: FrontEnd) -> int:
        screen = WorkflowScreen(as_json=as_json)
        tell = (lambda _: None) if plan_only else screen.tell
        async with begin_workflow(front, requirement, options, tell, url) as engine:
            chosen = plan or await engine.make_plan()
            if asks:
                try:
                    chosen = _confirm_plan(chosen)
                except click.Abort:
                    engine.record(WorkflowEvent("end", status="cancelled"))
                    raise
            engine.record(WorkflowEvent("plan", plan=chosen))
            if plan_only:
                print_json(chosen)
                return 0
            return await _run_to_end(engine, screen, report_file, as_json=as_json)

    return _run_in_store(store, options, work)


def _confirm_plan(plan: TaskPlan) -> TaskPlan:
    """Show a plan, let the user change it, and return the one that they agree to."""
    while True:
        print_lines(draw_graph(plan))
        answer = click.prompt("Carry this out?", type=click.Choice(["y", "n", "e"]), default="y")
        if answer == "y":
            return plan
        if answer == "n":
            raise click.Abort
        text = click.edit(
            msgspec.json.format(msgspec.json.encode(plan)).decode(), extension=".json"
        )
        if text is not None:
            try:
                plan = parse_plan(text)
            except PlanError as error:
                print_warning(str(error))


def _run_in_store(
    store: str | None, options: WorkflowOptions, work: Callable[[FrontEnd], Any]
) -> int:
    settings = load_settings(store=store)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        front = build_front(
            library,
            settings,
            os.environ,
            locate_folder(),
            f"gong/{__version__}",
            options,
            print_warning,
        )
        code: int = asyncio.run(work(front))
        return code


async def _run_to_end(
    engine: WorkflowEngine, screen: WorkflowScreen, report_file: str | None, *, as_json: bool
) -> int:
    """Carry a workflow out; Ctrl+C cancels it, as `gong workflow cancel` does."""
    cancel = locate_cancel_file(os.environ, engine.workflow.id)

    def stop() -> None:
        cancel.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        cancel.touch()

    with suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop)
    async with screen.follow(engine):
        status = await engine.run()
    done = engine.workflow
    if report_file is not None:
        Path(report_file).write_text(build_page(done), "utf-8")  # noqa: ASYNC240 (at the end)
    if not as_json:
        score = "" if done.score is None else f", score {done.score:g}"
        reason = f" ({engine.stopped})" if engine.stopped else ""
        print_lines([f"workflow {done.id[:8]}: {status}{score}{reason}"])
        if done.report:
            print_lines([done.report])
    return _EXITS.get(status, 1)


@workflow.command("list")
@store_option
@as_json
def list_workflows(*, store: str | None, as_json: bool) -> None:
    """List the workflows of the store, the newest first.

    --json prints [{id, requirement, status, tasks, completed, score}].
    """
    rows = [_describe_workflow(workflow) for workflow in _load_all(store)]
    if as_json:
        print_json(rows)
        return
    table = [
        (row.id[:8], row.status, f"{row.completed}/{row.tasks}", row.requirement) for row in rows
    ]
    print_lines(format_table(table, headings=("WORKFLOW", "STATUS", "DONE", "REQUIREMENT")))


def _describe_workflow(workflow: Workflow) -> ListedWorkflow:
    completed = sum(state.status == "completed" for state in workflow.states.values())
    return ListedWorkflow(
        workflow.id,
        workflow.requirement,
        workflow.status,
        len(workflow.states),
        completed,
        workflow.score,
    )


def _load_all(store: str | None) -> Iterator[Workflow]:
    settings = load_settings(store=store)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        front = _build_reading_front(library, settings)
        for identity in list_workflow_ids(library):
            with suppress(Exception):  # a damaged one costs only itself
                yield load_workflow(front, identity)


def _build_reading_front(library: Any, settings: Any) -> FrontEnd:
    return build_front(
        library, settings, os.environ, locate_folder(), f"gong/{__version__}",
        WorkflowOptions(), print_warning,
    )  # fmt: skip


def _load_one(store: str | None, ref: str) -> Workflow:
    settings = load_settings(store=store)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        return load_workflow(_build_reading_front(library, settings), ref)


@workflow.command("show")
@click.argument("ref", metavar="ID")
@store_option
@click.option("--report", "report_file", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Write a report with the graph of tasks.")  # fmt: skip
@as_json
def show(ref: str, *, store: str | None, report_file: str | None, as_json: bool) -> None:
    """Show the state of a workflow: its tasks, their reviews, its score.

    --json prints one object: id, requirement, status, score, report, options, cost, costs of each
    role, plans (how many there were), messages between tasks, and tasks, each with id, title,
    status, dependencies, tries, note, tape, branch, worktree, cost and reviews.
    """
    workflow = _load_one(store, ref)
    if report_file is not None:
        Path(report_file).write_text(build_page(workflow), "utf-8")
    if as_json:
        print_json({
            "id": workflow.id, "requirement": workflow.requirement, "status": workflow.status,
            "score": workflow.score, "report": workflow.report, "options": workflow.options,
            "cost": workflow.cost, "costs": workflow.costs, "plans": workflow.plans,
            "messages": [
                {"task": event.task, "to": event.to, "text": event.summary}
                for event in workflow.messages
            ],
            "tasks": [*_list_tasks(workflow)],
        })  # fmt: skip
        return
    score = "" if workflow.score is None else f"  score {workflow.score:g}"
    print_lines([f"{workflow.id[:8]}  {workflow.status}{score}  {workflow.requirement}", ""])
    print_lines(draw_graph(workflow.plan, workflow.states))
    if workflow.report:
        print_lines(["", workflow.report])


def _list_tasks(workflow: Workflow) -> Iterator[ListedTask]:
    for task in workflow.plan.tasks:
        state = workflow.states[task.id]
        reviews = tuple(
            {"verdict": review.verdict, "findings": review.findings, "summary": review.summary}
            for review in workflow.reviews.get(task.id, [])
        )
        yield ListedTask(
            task.id, task.title, state.status, task.dependencies, state.tries, state.note,
            state.tape, state.branch, state.worktree, state.cost, reviews,
        )  # fmt: skip


@workflow.command("graph")
@click.argument("ref", metavar="ID")
@store_option
def graph(ref: str, *, store: str | None) -> None:
    """Draw the tasks of a workflow and what each waits for."""
    workflow = _load_one(store, ref)
    print_lines(draw_graph(workflow.plan, workflow.states))


@workflow.command("cancel")
@click.argument("ref", metavar="ID")
@store_option
def cancel(ref: str, *, store: str | None) -> int:
    """Stop a workflow: its agents are stopped, its work is kept, `resume` continues it."""
    workflow = _load_one(store, ref)
    if workflow.status not in {"running", "planned"}:
        print_lines([f"workflow {workflow.id[:8]} is {workflow.status}: there is nothing to stop"])
        return 0
    file = locate_cancel_file(os.environ, workflow.id)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.touch()
    print_lines([f"workflow {workflow.id[:8]} is being stopped"])
    return 0


@workflow.command("resume")
@click.argument("ref", metavar="ID")
@click.option("--report", "report_file", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Write a report with the graph of tasks at the end.")  # fmt: skip
@_queue_option
@_add_budget
@store_option
@as_json
def resume(
    ref: str,
    *,
    report_file: str | None,
    queue: str | None,
    store: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Continue a workflow with its models and limits; does nothing if it has ended."""
    return _resume_workflow(ref, store, queue, report_file, options, as_json=as_json)


@workflow.command("retry")
@click.argument("ref", metavar="ID")
@click.argument("task")
@_queue_option
@_add_budget
@store_option
@as_json
def retry(
    ref: str, task: str, *, queue: str | None, store: str | None, as_json: bool, **options: Any
) -> int:
    """Try a failed task again, then the tasks that were skipped because of it."""
    return _resume_workflow(ref, store, queue, None, options, as_json=as_json, again=task)


@workflow.command("fork")
@click.argument("ref", metavar="ID")
@click.argument("task")
@store_option
def fork(ref: str, task: str, *, store: str | None) -> int:
    """Create another workflow in the state of this one before TASK; `resume` runs it.

    No file is changed: check out the commit that it is to begin at first.
    """
    settings = load_settings(store=store)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        forked = fork_workflow(_build_reading_front(library, settings), ref, task)
    print_lines([forked])
    return 0


def _resume_workflow(
    ref: str,
    store: str | None,
    queue: str | None,
    report_file: str | None,
    changed_limits: dict[str, Any],
    *,
    as_json: bool,
    again: str = "",
) -> int:
    workflow = _load_one(store, ref)
    if not workflow.plan.tasks:
        raise ConfigurationError(f"workflow {workflow.id[:8]} has no plan: start it again")
    if workflow.status in {"completed", "failed"} and not again:
        if not as_json:
            print_lines(
                [f"workflow {workflow.id[:8]} is {workflow.status}: there is nothing to do"]
            )
        return _EXITS.get(workflow.status, 1)

    url = choose_queue(queue, os.environ) or workflow.options.queue

    async def work(front: FrontEnd) -> int:
        screen = WorkflowScreen(as_json=as_json)
        async with open_workflow(front, workflow.id, screen.tell, url) as engine:
            limits = _change_budget(workflow.options.limits, changed_limits)
            if limits != workflow.options.limits:
                options = msgspec.structs.replace(workflow.options, limits=limits)
                engine.record(WorkflowEvent("options", options=options))
            if again:
                reset_task(engine, again)
            return await _run_to_end(engine, screen, report_file, as_json=as_json)

    return _run_in_store(store, workflow.options, work)


@workflow.command("work")
@_queue_option
@click.option("--at-once", type=click.IntRange(1), default=5, show_default=True,
              help="Steps that are carried out at once.")  # fmt: skip
@click.option("--until-eof", is_flag=True, help="End when standard input is closed.")
@store_option
def work(*, queue: str | None, at_once: int, until_eof: bool, store: str | None) -> int:
    """Carry out steps of workflows from a queue, until Ctrl+C; those begun are finished.

    Workers may run on several machines, with the same store, repository and paths on each.
    """
    url = choose_queue(queue, os.environ) or choose_queue("sqlite", os.environ)
    asyncio.run(_serve_until_told(url, at_once, store, until_eof=until_eof))
    return 0


async def _serve_until_told(url: str, at_once: int, store: str | None, *, until_eof: bool) -> None:
    from ..workflow.worker import serve_workflows  # few workflows have a queue

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, ended.set)
    if until_eof:
        loop.add_reader(sys.stdin.fileno(), _read_to_end, loop, ended)
    print_lines([f"workers of {mask_password(url)}: {at_once} steps at once; Ctrl+C ends this"])
    sys.stdout.flush()
    await serve_workflows(url, at_once, store, os.environ, ended)


def _read_to_end(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        loop.remove_reader(sys.stdin.fileno())
        ended.set()
