"""What becomes of a task, and which may begin now; pure.

status      what happened                                  becomes
----------  ---------------------------------------------  ----------------------------------
pending     all it waits for is completed, its files free  running
pending     something it waits for failed or was skipped   skipped
running     the executor is done                           review
running     the executor failed, tries are left            running, another try
running     the executor failed, no try is left            failed
review      pass                                           merged, then completed
review      minor, fixes are left                          fixing
review      minor, no fix is left, or none is wanted       merged, then completed, with the findings
review      critical, tries are left                       running, another try with the findings
review      critical, no try is left                       failed
fixing      the fixer is done, or failed                   review
merged      with conflicts that nobody could resolve       failed; its work is kept

Tasks a, b (waits for a) and c (claims the same file as a), with one try after the first:

what happened         a          b                   c
--------------------  ---------  ------------------  ------------------------
the plan is there     running    pending             pending: its file is a's
a is reviewed: pass   completed  running             running
b's executor failed   completed  running, 2nd try    running
b failed again        completed  failed              running
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from .plan import TaskStatus, has_common_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .plan import PlannedTask, TaskPlan

Verdict = Literal["pass", "minor", "critical"]
AT_WORK: frozenset[TaskStatus] = frozenset({"running", "review", "fixing"})
ENDED: frozenset[TaskStatus] = frozenset({"completed", "failed", "skipped"})


class Limits(Struct, frozen=True, omit_defaults=True):
    """How much is done at once, and how often again (M189)."""

    executors: int = 5
    reviewers: int = 2
    fixers: int = 2
    retries: int = 3
    """Tries of a task after its first one, and fixes of minor findings."""
    replans: int = 0
    """Times that the manager may change the plan."""
    auto_fix: bool = True
    max_cost: float = 0
    """USD for the whole run; 0 is no limit. What runs when it is reached comes to its end."""
    max_task_cost: float = 0
    """USD for one task; 0 is no limit."""
    max_role_costs: dict[str, float] = {}
    """Role → USD for all its agents; a role that is not there has no limit of its own."""


class TaskState(Struct, frozen=True, omit_defaults=True):
    """How a task stands."""

    status: TaskStatus = "pending"
    tries: int = 0
    """Times that an executor was started."""
    fixes: int = 0
    """Times that a fixer was started for findings."""
    note: str = ""
    """Why it failed or was skipped, or what is left of findings."""
    tape: str = ""
    """The id of its tape."""
    worktree: str = ""
    branch: str = ""
    base: str = ""
    """The commit that its branch began at."""
    cost: float = 0.0
    """USD of all its agents, as far as it is known."""


def choose_ready(
    plan: TaskPlan, states: Mapping[str, TaskState], *, has_worktrees: bool
) -> list[PlannedTask]:
    """Return the tasks that can begin now, in the order in which they should.

    Without worktrees a task that claims no files is at work alone.
    """
    active_tasks = [task for task in plan.tasks if states[task.id].status in AT_WORK]
    chosen: list[PlannedTask] = []
    for task in sorted(plan.tasks, key=lambda task: -task.priority):
        if states[task.id].status != "pending":
            continue
        if any(states[dependency].status != "completed" for dependency in task.dependencies):
            continue
        # Those chosen just now begin at the same time, so they claim their files too.
        others = [*active_tasks, *chosen]
        if any(has_common_file(task, other) for other in others):
            continue
        # In one folder, a task that names no files may write any.
        if not has_worktrees and any(not task.files or not other.files for other in others):
            continue
        chosen.append(task)
    return chosen


def choose_skipped(plan: TaskPlan, states: Mapping[str, TaskState]) -> dict[str, str]:
    """Return the tasks that cannot begin any more, and the one that each waits for in vain."""
    skipped: dict[str, str] = {}
    for task in plan.tasks:
        if states[task.id].status != "pending":
            continue
        lost = (
            dependency
            for dependency in task.dependencies
            if states[dependency].status in {"failed", "skipped"}
        )
        if (first := next(lost, None)) is not None:
            skipped[task.id] = first
    return skipped


def judge_review(state: TaskState, verdict: Verdict, limits: Limits) -> TaskStatus:
    """Return what a task becomes after a review; "completed" once it is merged."""
    if verdict == "critical":
        return "running" if state.tries <= limits.retries else "failed"
    if verdict == "minor" and limits.auto_fix and state.fixes < limits.retries:
        return "fixing"
    return "completed"


def judge_failure(state: TaskState, limits: Limits) -> TaskStatus:
    """Return what a task becomes when its executor failed."""
    return "running" if state.tries <= limits.retries else "failed"
