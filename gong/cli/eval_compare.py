"""`gong eval compare`: two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines, print_warning

from ..context.costs import format_money
from ..errors import ConfigurationError
from ..evals.compare import RunComparison, compare_runs, explain_chance
from ..evals.result import RunFolder, TryResult

if TYPE_CHECKING:
    from ..evals.summary import RunSummary

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(epilog=format_examples("gong eval compare gong-evals/before gong-evals/after"))
@click.argument("before", metavar="RUN", type=_FOLDER)
@click.argument("after", metavar="RUN", type=_FOLDER)
@as_json
def compare(before: Path, after: Path, as_json: bool) -> None:
    """Compare two runs: tasks that changed, rates, cost, turns, and whether it may be chance.

    A RUN is the folder of one. Only tasks of both are compared.

    --json prints {tasks, changed, better, worse, chance, may_be_chance, before, after, only_before,
    only_after, edited, says}.
    """
    comparison = compare_runs(_read_run(before), _read_run(after))
    says = explain_chance(comparison)
    if as_json:
        facts = msgspec.to_builtins(comparison)
        print_json({**facts, "may_be_chance": comparison.may_be_chance, "says": says})
        return
    for names, which in ((comparison.only_before, before), (comparison.only_after, after)):
        if names:
            print_warning(f"only in {which}: {', '.join(names)}", "gong")
    if comparison.edited:
        print_warning(f"changed between the runs: {', '.join(comparison.edited)}", "gong")
    if comparison.changed:
        rows = [(t.task, f"{t.before:.0%}", f"{t.after:.0%}") for t in comparison.changed]
        print_lines([*format_table(rows, headings=("CHANGED TASK", "BEFORE", "AFTER")), ""])
    if comparison.tasks:
        print_lines([*_compare_figures(comparison), ""])
    print_lines([says])


def _read_run(folder: Path) -> list[TryResult]:
    run = RunFolder(folder)
    if run.read_choices() is None:
        raise ConfigurationError(f"{folder} is no run of gong eval")
    return run.read_results()


def _compare_figures(comparison: RunComparison) -> list[str]:
    def list_figures(summary: RunSummary) -> list[str]:
        cost = "unknown" if summary.cost is None else format_money(summary.cost)
        turns = f"{summary.turns / summary.tries:.3g}" if summary.tries else ""
        return [f"{summary.rate:.1%}", f"{summary.solved}/{summary.tries}", turns, cost]

    names = ("solved, mean of tasks", "tries solved", "turns of a try", "cost")
    columns = (names, list_figures(comparison.before), list_figures(comparison.after))
    return format_table(list(zip(*columns, strict=True)), headings=("", "BEFORE", "AFTER"))
