"""What every command that takes something away does first: show it, and ask."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import UsageError
from .out import say
from .terminal import erase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REFUSED = 1
"""Exit code of a command whose question was answered with no."""


class How(NamedTuple):
    """What the options say of asking."""

    yes: bool
    dry_run: bool
    as_json: bool

    def agreed(self, plan: Iterable[str]) -> bool:
        """Show what would be done, and tell whether it may be.

        Asks on a terminal; elsewhere raises UsageError, unless --yes was said. Whoever is asked
        sees the plan, on standard error where standard output goes elsewhere or holds JSON.
        """
        plan, asks = list(plan), not (self.yes or self.dry_run)
        if not self.as_json:
            say(plan)
        if asks and not sys.stdin.isatty():
            raise UsageError("nothing was done: nobody is there to ask, so add --yes")
        if not asks:
            return self.yes and not self.dry_run
        if self.as_json or not sys.stdout.isatty():
            click.echo("\n".join(plan), err=True)
        sys.stdout.flush()
        erase()
        return click.confirm("Do it?", err=True)

    def undone(self) -> int:
        """Return the exit code where it was not agreed to; say so where somebody said no."""
        if self.dry_run:
            return 0
        click.echo("nothing was done", err=True)
        return REFUSED


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options --yes and --dry-run, as `yes` and `dry_run`."""
    dry_run = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(dry_run(command))
