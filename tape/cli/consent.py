"""Confirmation of commands that delete or overwrite: show the plan, then ask."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import UsageError
from .out import print_lines
from .terminal import erase_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REFUSED_CODE = 1
"""Exit code of a command whose question was answered with no."""


class Confirmation(NamedTuple):
    """How to ask: the options --yes, --dry-run and --json."""

    yes: bool
    dry_run: bool
    as_json: bool

    def confirm_plan(self, plan: Iterable[str]) -> bool:
        """Show the plan, and return whether it may be done.

        Asks on a terminal; elsewhere raises UsageError, unless --yes was given. A question always
        comes with the plan, on standard error where standard output is redirected or holds JSON.
        """
        plan, asks = list(plan), not (self.yes or self.dry_run)
        if not self.as_json:
            print_lines(plan)
        if asks and not sys.stdin.isatty():
            raise UsageError("nothing was done: not a terminal: pass --yes")
        if not asks:
            return self.yes and not self.dry_run
        if self.as_json or not sys.stdout.isatty():
            click.echo("\n".join(plan), err=True)
        sys.stdout.flush()
        erase_progress()
        return click.confirm("Do it?", err=True)

    def report_refusal(self) -> int:
        """Return the exit code after a refusal, and print a line where the user answered no."""
        if self.dry_run:
            return 0
        click.echo("nothing was done", err=True)
        return REFUSED_CODE


def add_confirmation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --yes and --dry-run to a command, as `yes` and `dry_run`."""
    dry_run = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(dry_run(command))
