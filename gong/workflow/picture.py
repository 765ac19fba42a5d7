"""A workflow that runs as a picture of lines: its tasks, who is at work, cost and time left; pure.

    workflow 74cbd6c3  running  1/3 done  $0.42  1 min 5 s, 20 s to 1 min 10 s left
    ✓ a: make a                                        12 s  $0.10
    ● b: make b                 executor, calling bash  5 s  $0.02
      ○ c: make c  ← a, b

The time left is a range, from the tasks that are completed: at best the longest chain of tasks that
wait for each other, each as quick as the quickest one; at worst each as slow as the slowest one,
or as many rounds as there are executors for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.clock import parse_timestamp
from tape.text import cut_to_width, format_seconds, measure_width, to_single_line

from ..context.costs import format_money
from .report import MARKS, compute_depths
from .schedule import AT_WORK, ENDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .plan import PlannedTask, TaskPlan
    from .record import Workflow

_SECOND = 1_000_000
_MINUTE = 60


class TimeLeft(NamedTuple):
    """Seconds until a workflow is done."""

    shortest: float
    longest: float


def estimate_time_left(workflow: Workflow, now: int) -> TimeLeft | None:
    """Return the time until all tasks have ended; None before one is completed.

    `now` is in microseconds since 1970.
    """
    states = workflow.states
    taken = [
        measure_task(workflow, task, now)
        for task, state in states.items()
        if state.status == "completed" and task in workflow.times
    ]
    left = [task for task in workflow.plan.tasks if states[task.id].status not in ENDED]
    if not taken:
        return None
    if not left:
        return TimeLeft(0, 0)
    running = [task.id for task in left if states[task.id].status in AT_WORK]
    passed = min((measure_task(workflow, task_id, now) for task_id in running), default=0.0)
    chain = _measure_chain(workflow.plan, {task.id for task in left})
    rounds = max(chain, -(-len(left) // workflow.options.limits.executors))
    best = max(0.0, chain * min(taken) - passed)
    return TimeLeft(best, max(best, rounds * max(taken) - passed))


def _measure_chain(plan: TaskPlan, left: set[str]) -> int:
    """Return how many of these tasks must be done one after the other."""
    waits = {task.id: task.dependencies for task in plan.tasks}
    lengths: dict[str, int] = {}
    for task in sorted(left, key=compute_depths(plan).__getitem__):
        before = (lengths.get(dependency, 0) for dependency in waits[task] if dependency in left)
        lengths[task] = 1 + max(before, default=0)
    return max(lengths.values(), default=0)


def measure_task(workflow: Workflow, task: str, now: int) -> float:
    """Return the seconds since a task began, or that it took; 0 if it has not begun."""
    if (times := workflow.times.get(task)) is None:
        return 0.0
    ended = parse_timestamp(times.ended) if times.ended else now
    return max(0, ended - parse_timestamp(times.began)) / _SECOND


def format_time_left(left: TimeLeft | None) -> str:
    """Return a range of time as text."""
    if left is None:
        return "time left is not known yet"
    best, worst = _choose_seconds(left.shortest), _choose_seconds(left.longest)
    if best == worst:
        return f"{format_seconds(worst)} left"
    return f"{format_seconds(best)} to {format_seconds(worst)} left"


def _choose_seconds(seconds: float) -> int:
    step = 10 if seconds > _MINUTE else 1
    return round(seconds / step) * step


def draw_picture(
    workflow: Workflow,
    at_work: Mapping[str, str],
    now: int,
    began: int,
    columns: int,
    rows: int,
) -> list[str]:
    """Return a workflow as lines; `at_work` says of tasks who works on them.

    `now` and `began` are in microseconds since 1970. Where there are more tasks than rows, those
    that have ended are left out first, then those that wait.
    """
    states = workflow.states
    completed = sum(state.status == "completed" for state in states.values())
    cost = f"  {format_money(workflow.cost)}" if workflow.cost else ""
    passed = format_seconds((now - began) / _SECOND)
    head = f"workflow {workflow.id[:8]}  {completed}/{len(states)} done{cost}  {passed}"
    if any(state.status not in ENDED for state in states.values()):
        head += f", {format_time_left(estimate_time_left(workflow, now))}"
    depths = compute_depths(workflow.plan)
    ordered = sorted(workflow.plan.tasks, key=lambda task: depths[task.id])
    tasks, hidden = _choose_tasks(workflow, ordered, max(1, rows - 1))
    lines = [
        _draw_task(workflow, task, "  " * depths[task.id], at_work.get(task.id, ""), now, columns)
        for task in tasks
    ]
    if hidden:
        lines.append(f"… {hidden} more")
    return [cut_to_width(line, columns) for line in (head, *lines)]


def _choose_tasks(
    workflow: Workflow, ordered: list[PlannedTask], rows: int
) -> tuple[list[PlannedTask], int]:
    """Return the tasks that fit into rows, and how many do not."""
    if len(ordered) <= rows:
        return ordered, 0
    rank = {"failed": 0, "pending": 1, "skipped": 2, "completed": 3}
    urgent = sorted(ordered, key=lambda task: rank.get(workflow.states[task.id].status, -1))
    chosen = {task.id for task in urgent[: max(1, rows - 1)]}
    return [task for task in ordered if task.id in chosen], len(ordered) - len(chosen)


def _draw_task(
    workflow: Workflow, task: PlannedTask, indent: str, who: str, now: int, columns: int
) -> str:
    state = workflow.states[task.id]
    waits = f"  ← {', '.join(task.dependencies)}" if task.dependencies else ""
    note = f"  ({state.note})" if state.note else ""
    tries = f", try {state.tries}" if state.tries > 1 else ""
    text = f"{MARKS[state.status]} {task.id}: {task.title}{waits}{note}"
    parts = [f"{who}{tries}"] if who else []
    if task.id in workflow.times:
        parts.append(format_seconds(measure_task(workflow, task.id, now)))
    if state.cost:
        parts.append(format_money(state.cost))
    facts = "  ".join(parts)
    text = indent + cut_to_width(
        to_single_line(text), max(20, columns - len(indent) - measure_width(facts) - 2)
    )
    room = columns - measure_width(text) - measure_width(facts)
    return f"{text}{' ' * max(2, room)}{facts}" if facts else text
