"""The group of verbs: each is imported when it is used, and its help line stands here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from .. import __version__

VERBS = {
    "new": ("record", "Make a tape and print its id."),
    "append": ("record", "Record entries from JSON lines on standard input."),
    "ls": ("listing", "List tapes, newest first."),
    "show": ("look", "Show a tape, or one entry."),
    "log": ("look", "List the entries of a path, newest last."),
    "cat": ("look", "Print a whole conversation."),
    "tail": ("tail", "Show the newest entries; with -f, those that come."),
    "fork": ("branching", "Begin a branch, or a new tape, at an entry."),
    "branches": ("branching", "List where the branches of a tape stand."),
    "switch": ("branching", "Choose the branch that a bare tape name means."),
    "context": ("context", "Show what the next model call would be built from."),
    "verify": ("verify", "Compute every hash anew and name what does not hold."),
    "fsck": ("fsck", "Explain damage, and mend what can be mended."),
}
"""Module and help line of each verb, in the order of the help page."""

EPILOG = """\b
REF is [TAPE][:BRANCH][@ENTRY | @{N}][~N]: ids by any unique prefix of four
digits or more, @{N} where the branch stood N moves ago, ~N entries back.
Nothing at all means the newest tape of this folder.
"""


@dataclass(slots=True)
class Options:
    """What may be said before the verb or behind it."""

    store: Path | None = None
    """Value of --store."""
    debug: bool = False
    """Tracebacks are shown."""


def _keep(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        setattr(ctx.obj, option.name or "", value)


def _common() -> list[click.Parameter]:
    return [
        click.Option(
            ["--store"],
            type=click.Path(path_type=Path),
            help="The store: a folder. Default: $TAPE_HOME, else ~/.tape.",
            expose_value=False,
            callback=_keep,
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            help="Show where an error came from.",
            expose_value=False,
            callback=_keep,
        ),
    ]


class Verbs(click.Group):
    """A group that knows its verbs by name and imports the one that is used."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Give the verbs their options, also where another program's group calls this one."""
        return super().make_context(info_name, args, parent, **{"obj": Options(), **extra})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the verbs in the order of the help page."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Import a verb; None where there is none of that name."""
        if name not in VERBS:
            return None
        module, help_line = VERBS[name]
        verb: click.Command = getattr(import_module(f".{module}", __package__), name)
        if not any(option.name == "store" for option in verb.params):
            verb.params = [*verb.params, *_common()]
        verb.short_help = help_line
        return verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


tape = Verbs(
    "tape",
    params=_common(),
    help="Records of coding-agent sessions: append-only, branching, checked by hashes.",
    epilog=EPILOG,
    subcommand_metavar="VERB [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
click.version_option(__version__, message="tape %(version)s")(tape)
