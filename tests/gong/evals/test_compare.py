"""Two runs side by side, and whether their difference may be chance."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from gong.evals.compare import compare_runs, compute_sign_test, explain_chance
from gong.evals.result import TryResult


def tries(**solved: str) -> list[TryResult]:
    """Return tries of tasks: a letter for each, s for solved."""
    return [
        TryResult(task, number, "solved" if letter == "s" else "failed", digest="d")
        for task, letters in solved.items()
        for number, letter in enumerate(letters, 1)
    ]


def test_the_sign_test_counts_every_way_to_split_so_unevenly() -> None:
    for count in range(13):
        splits = [sum(way) for way in product((0, 1), repeat=count)]
        for wins in range(count + 1):
            uneven = [s for s in splits if abs(2 * s - count) >= abs(2 * wins - count)]
            exact = Fraction(len(uneven), len(splits))
            assert compute_sign_test(wins, count - wins) == float(exact)


def test_tasks_that_changed_are_named_with_their_rates() -> None:
    comparison = compare_runs(tries(a="sf", b="ff", c="s"), tries(a="ss", b="ff", c="ffff"))
    changed = [(task.task, task.before, task.after) for task in comparison.changed]
    assert changed == [("a", 0.5, 1.0), ("c", 1.0, 0.0)]
    assert (comparison.better, comparison.worse, comparison.chance) == (1, 1, 1.0)
    assert explain_chance(comparison) == "No run is better: 1 better, 1 worse."


def test_five_of_five_may_be_chance_and_six_of_six_is_hardly() -> None:
    names = "abcdef"
    five = compare_runs(
        tries(**dict.fromkeys(names, "f")), tries(**dict.fromkeys("abcde", "s"), f="f")
    )
    assert five.chance == 0.0625
    assert explain_chance(five) == (
        "The difference may be chance: 5 better, 0 worse; of two equally good agents 6% would"
        " differ at least so much."
    )
    six = compare_runs(tries(**dict.fromkeys(names, "f")), tries(**dict.fromkeys(names, "s")))
    assert six.chance == 0.03125
    assert explain_chance(six).startswith("The second run is better, which is hardly chance")
    back = compare_runs(tries(**dict.fromkeys(names, "s")), tries(**dict.fromkeys(names, "f")))
    assert explain_chance(back).startswith("The first run is better")


def test_only_tasks_of_both_runs_count() -> None:
    comparison = compare_runs(tries(a="s", b="s"), tries(b="s", c="f"))
    assert (comparison.tasks, comparison.only_before, comparison.only_after) == (1, ("a",), ("c",))
    assert (comparison.before.tries, comparison.after.tries) == (1, 1)
    assert explain_chance(comparison).startswith("No difference")
    nothing = compare_runs(tries(a="s"), tries(b="s"))
    assert explain_chance(nothing).startswith("The runs have no task in common")


def test_a_task_that_was_edited_between_the_runs_is_named() -> None:
    later = [TryResult("a", 1, "solved", digest="other")]
    assert compare_runs(tries(a="s"), later).edited == ("a",)
