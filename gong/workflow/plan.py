"""A requirement taken apart: tasks, what each waits for, and which files it claims; pure.

Checked before anything runs: every id is there once, every dependency is a task, no task waits for
itself however far around. Two tasks that claim a file in common are never at work together.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

TaskStatus = Literal["pending", "running", "review", "fixing", "completed", "failed", "skipped"]


class PlannedTask(Struct, frozen=True, omit_defaults=True):
    """One task of a plan (M188)."""

    id: str
    title: str
    description: str = ""
    dependencies: tuple[str, ...] = ()
    """Ids of the tasks that are completed and merged before it begins."""
    priority: int = 0
    """Of tasks that could begin, the one with the highest begins first."""
    files: tuple[str, ...] = ()
    """Paths that it changes, relative to the folder; a folder claims all in it."""
    status: TaskStatus = "pending"
    execution: Any = None
    """Read and kept: what a program that made the plan wants to remember."""
    reviews: tuple[Any, ...] = ()


class TaskPlan(Struct, frozen=True, omit_defaults=True):
    """A requirement and its tasks (M188)."""

    requirement: str = ""
    analysis: str = ""
    tasks: tuple[PlannedTask, ...] = ()
    id: str = ""

    def find(self, task: str) -> PlannedTask:
        """Return a task; raises PlanError, which names those there are."""
        for member in self.tasks:
            if member.id == task:
                return member
        there = ", ".join(task.id for task in self.tasks)
        raise PlanError(f"there is no task {task!r}; there are: {there}")


class PlanError(ConfigurationError):
    """A plan cannot be carried out as it is; the text says why."""


def parse_plan(text: str | bytes) -> TaskPlan:
    """Return a plan from JSON, checked; raises PlanError."""
    try:
        plan = msgspec.json.decode(text, type=TaskPlan)
    except msgspec.MsgspecError as error:
        raise PlanError(f"the plan is not a TaskPlan: {error}") from error
    check_plan(plan)
    return plan


def check_plan(plan: TaskPlan) -> None:
    """Raise PlanError for a plan without tasks, with an id twice, unknown or waiting in a ring."""
    if not plan.tasks:
        raise PlanError("the plan has no tasks")
    seen: set[str] = set()
    for task in plan.tasks:
        if not task.id.strip():
            raise PlanError(f"the task {task.title!r} has no id")
        if task.id in seen:
            raise PlanError(f"two tasks have the id {task.id}")
        seen.add(task.id)
    for task in plan.tasks:
        for dependency in task.dependencies:
            if dependency not in seen:
                raise PlanError(
                    f"task {task.id} depends on {dependency}, which is not a task of the plan"
                )
    try:
        TopologicalSorter({task.id: task.dependencies for task in plan.tasks}).prepare()
    except CycleError as error:
        ring = " → ".join(error.args[1])
        raise PlanError(f"the tasks wait for each other in a cycle: {ring}") from error


def change_plan(plan: TaskPlan, started: Collection[str], revised: TaskPlan) -> TaskPlan:
    """Return a revised plan in which the tasks that have begun stay as they were; checked.

    Raises PlanError.
    """
    unchanged = [task for task in plan.tasks if task.id in started]
    added = [task for task in revised.tasks if task.id not in started]
    changed = msgspec.structs.replace(plan, analysis=revised.analysis, tasks=(*unchanged, *added))
    check_plan(changed)
    return changed


def has_common_file(first: PlannedTask, other: PlannedTask) -> bool:
    """Return whether two tasks claim a file in common."""
    return any(_is_same_place(mine, theirs) for mine in first.files for theirs in other.files)


def _is_same_place(first_path: str, other: str) -> bool:
    first, second = _split_path(first_path), _split_path(other)
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]


def _split_path(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def list_dependents(plan: TaskPlan, task: str) -> list[str]:
    """Return the ids of all tasks that wait for a task, directly or through others."""
    dependents = {task}
    order: Iterable[str] = TopologicalSorter(
        {task.id: task.dependencies for task in plan.tasks}
    ).static_order()
    waits = {task.id: task.dependencies for task in plan.tasks}
    for task_id in order:
        if dependents & {*waits[task_id]}:
            dependents.add(task_id)
    return [member.id for member in plan.tasks if member.id in dependents and member.id != task]
