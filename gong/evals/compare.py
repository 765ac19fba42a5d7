"""Two runs side by side: which tasks changed, and whether the difference may be chance. Pure.

Only tasks of both runs are compared. A task is won by the run whose tries solved a larger share of
it. How likely wins fall at least so unevenly by chance, if neither run is better, is the exact sign
test over the tasks that differ; with one try of each task that is McNemar's exact test.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

from msgspec import Struct

from tape.text import format_count

from .summary import RunSummary, TaskSummary, sum_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .result import TryResult

CHANCE = 0.05
"""A difference that is less likely than this is called no chance."""


class ComparedTask(Struct, frozen=True):
    """One task in both runs."""

    task: str
    before: float
    """The share of tries that solved it, from 0 to 1."""
    after: float


class RunComparison(Struct, frozen=True):
    """Two runs side by side; figures are of the tasks that both have."""

    tasks: int
    changed: tuple[ComparedTask, ...]
    better: int
    """Tasks of which the second run solved a larger share."""
    worse: int
    chance: float
    """How likely a difference as large as this is by chance alone, from 0 to 1."""
    before: RunSummary
    after: RunSummary
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    edited: tuple[str, ...]
    """Tasks whose files are not the same in both runs."""

    @property
    def may_be_chance(self) -> bool:
        """Whether the difference says nothing for sure."""
        return self.chance >= CHANCE


def compare_runs(before: Sequence[TryResult], after: Sequence[TryResult]) -> RunComparison:
    """Return two runs side by side."""
    names = {r.task for r in before} & {r.task for r in after}
    shared = [[r for r in results if r.task in names] for results in (before, after)]
    earlier, later = map(sum_results, shared)
    changed = tuple(
        ComparedTask(first.task, first.rate, second.rate)
        for first, second in zip(earlier.tasks, later.tasks, strict=True)
        if _has_changed(first, second)
    )
    better = sum(task.after > task.before for task in changed)
    digests = [{(r.task, r.digest) for r in results} for results in shared]
    return RunComparison(
        len(names),
        changed,
        better,
        len(changed) - better,
        compute_sign_test(better, len(changed) - better),
        earlier,
        later,
        tuple(sorted({r.task for r in before} - names)),
        tuple(sorted({r.task for r in after} - names)),
        tuple(sorted({task for task, _ in digests[0] ^ digests[1]})),
    )


def _has_changed(first: TaskSummary, second: TaskSummary) -> bool:
    return first.solved * second.tries != second.solved * first.tries


def compute_sign_test(wins: int, losses: int) -> float:
    """Return the exact two-sided probability of so uneven a split of wins and losses."""
    count, fewer = wins + losses, min(wins, losses)
    if wins == losses:
        return 1.0
    chance: float = 2 * sum(comb(count, at) for at in range(fewer + 1)) / 2**count
    return min(1.0, chance)


def explain_chance(comparison: RunComparison) -> str:
    """Return in one sentence what the comparison shows."""
    if not comparison.tasks:
        return "The runs have no task in common: nothing can be compared."
    if not comparison.changed:
        count = format_count(comparison.tasks, "task")
        return f"No difference: both solved the same share of each of {count}."
    which = "second" if comparison.better > comparison.worse else "first"
    counts = f"{comparison.better} better, {comparison.worse} worse"
    if comparison.better == comparison.worse:
        return f"No run is better: {counts}."
    if comparison.may_be_chance:
        return (
            f"The difference may be chance: {counts}; of two equally good agents"
            f" {comparison.chance:.0%} would differ at least so much."
        )
    return (
        f"The {which} run is better, which is hardly chance: {counts}; of two equally good agents"
        f" {comparison.chance:.1%} would differ at least so much."
    )
