"""`gong eval`: tasks tried by an agent and judged by their tests; each command imported when used.

Words that name no command are folders of tasks: `gong eval DIR` is `gong eval run DIR`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tape.cli.group import LazyGroup
from tape.cli.output import format_examples

if TYPE_CHECKING:
    import click

COMMANDS = {
    "run": ("eval_run", "Try tasks, or continue a run: the command if none is named."),
    "compare": ("eval_compare", "Compare two runs, and say whether it may be chance."),
    "check": ("eval_check", "Check sessions of any agent: calls, files, budget."),
    "list": ("eval_tasks", "List tasks, and what is wrong with them."),
}
"""Module and help line of each command, in the order of the help page."""


class _EvalGroup(LazyGroup):
    """A group whose first word may be a folder of tasks."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` before what names no command and asks for no help."""
        if args and args[0] not in {*self._table, "--help", "-h"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


eval: Any = _EvalGroup(  # noqa: A001 (the group finds a command by its name)
    "eval",
    package=__package__,
    table=COMMANDS,
    subcommand_metavar="COMMAND [ARGS]... | DIR|FILE...",
    help="Try tasks in Harbor's format, and compare runs: docs/evals.md.",
    epilog=format_examples(
        "gong eval tasks --agent solution",
        "gong eval list tasks",
    ),
)
