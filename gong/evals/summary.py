"""Results of a run in figures, as lines and as a table. Pure.

Rates count each task the same: the share of its tries that solved it, averaged. A try that ended
with an error is not solved.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from tape.text import format_count, format_seconds, show_controls, to_single_line

from ..context.costs import format_money

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .result import TryResult


MARKS = {"solved": "✓", "failed": "✗"}
"""An error has !."""


class TaskSummary(Struct, frozen=True):
    """The tries of one task."""

    task: str
    tries: int
    solved: int
    outcomes: dict[str, int]
    """How many tries ended how."""
    reward: float | None
    """The mean of the rewards there are."""
    cost: float | None
    """USD of all tries; None where one is not known."""
    turns: float
    """The mean."""
    seconds: float
    """The mean of the agent's time."""

    @property
    def rate(self) -> float:
        """The share of tries that solved it."""
        return self.solved / self.tries if self.tries else 0.0


class RunSummary(Struct, frozen=True):
    """A run in figures."""

    tasks: tuple[TaskSummary, ...]
    tries: int
    solved: int
    errors: int
    rate: float
    """The mean of the tasks' rates, from 0 to 1."""
    cost: float | None
    turns: int
    input_tokens: int
    output_tokens: int


def sum_results(results: Sequence[TryResult]) -> RunSummary:
    """Return the figures of some results."""
    by_task: dict[str, list[TryResult]] = {}
    for result in results:
        by_task.setdefault(result.task, []).append(result)
    tasks = tuple(_sum_tries(name, tries) for name, tries in sorted(by_task.items()))
    return RunSummary(
        tasks,
        tries=len(results),
        solved=sum(result.is_solved for result in results),
        errors=sum(result.is_error for result in results),
        rate=sum(task.rate for task in tasks) / len(tasks) if tasks else 0.0,
        cost=_sum_costs(results),
        turns=sum(result.turns for result in results),
        input_tokens=sum(result.input_tokens for result in results),
        output_tokens=sum(result.output_tokens for result in results),
    )


def _sum_tries(name: str, tries: Sequence[TryResult]) -> TaskSummary:
    rewards = [result.reward for result in tries if result.reward is not None]
    return TaskSummary(
        name,
        len(tries),
        sum(result.is_solved for result in tries),
        dict(Counter(result.outcome for result in tries)),
        reward=sum(rewards) / len(rewards) if rewards else None,
        cost=_sum_costs(tries),
        turns=sum(result.turns for result in tries) / len(tries),
        seconds=sum(result.agent_seconds for result in tries) / len(tries),
    )


def _sum_costs(results: Iterable[TryResult]) -> float | None:
    """Return the sum; None where a try with a session has an unknown cost."""
    results = list(results)
    if any(result.cost is None and result.tape for result in results):
        return None
    return round(sum(result.cost or 0.0 for result in results), 9)


def format_result(result: TryResult) -> str:
    """Return one try in a line."""
    mark = MARKS.get(result.outcome, "!")
    parts = [f"{mark} {result.task} #{result.number}: {result.outcome}"]
    if result.reward is not None and result.outcome == "failed":
        parts.append(f"reward {result.reward:g}")
    if result.stopped:
        parts.append(f"stopped by its limit of {result.stopped}")
    if result.detail:
        parts.append(to_single_line(result.detail))
    if result.turns:
        parts.append(format_count(result.turns, "turn"))
    parts.append(format_seconds(result.agent_seconds))
    if result.tape:
        parts.append(f"tape {result.tape[:8]}")
    return show_controls(", ".join(parts))


class TableRow(NamedTuple):
    """One task in the table."""

    task: str
    solved: str
    reward: str
    turns: str
    cost: str
    time: str
    outcome: str


HEADINGS = ("TASK", "SOLVED", "REWARD", "TURNS", "COST", "TIME", "HOW")


def list_rows(summary: RunSummary) -> list[TableRow]:
    """Return the rows of the table."""
    return [
        TableRow(
            task.task,
            f"{task.solved}/{task.tries}",
            "" if task.reward is None else f"{task.reward:.2f}",
            f"{task.turns:.3g}",
            format_cost(task.cost),
            format_seconds(task.seconds),
            ", ".join(f"{name} {count}" for name, count in sorted(task.outcomes.items())),
        )
        for task in summary.tasks
    ]


def format_total(summary: RunSummary) -> str:
    """Return the last line: how much was solved, for how much."""
    errors = f", {format_count(summary.errors, 'error')}" if summary.errors else ""
    return (
        f"{summary.solved} of {format_count(summary.tries, 'try', 'tries')} solved"
        f", {summary.rate:.0%} on average over tasks{errors};"
        f" {format_count(summary.turns, 'turn')}, {format_cost(summary.cost)}"
    )


def format_cost(cost: float | None) -> str:
    """Return a cost in USD, "unknown" for None."""
    return "unknown" if cost is None else format_money(cost)
