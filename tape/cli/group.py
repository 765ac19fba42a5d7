"""The group of verbs: each is imported when it is used, and its help line stands here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from .terminal import paged

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

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
    "rename": ("names", "Give a tape a title."),
    "label": ("names", "Name an entry, or list the labels of a tape."),
    "anchors": ("anchors", "Show the phases of a tape with their summaries."),
    "context": ("context", "Show what the next model call would be built from."),
    "diff": ("diff", "Explain how two branches differ."),
    "replay": ("replay", "Play a session again, or prove that it still says the same."),
    "search": ("search", "Find words in all tapes."),
    "stats": ("stats", "Show tokens, cost, tools and time."),
    "blame": ("blame", "Show which entry and prompt brought in each line of a file."),
    "export": ("export", "Write a tape as one file that stands alone, or as Markdown."),
    "import": ("import_", "Make a tape from a file."),
    "rm": ("removing", "Move tapes to the trash."),
    "restore": ("removing", "Bring tapes back from the trash, or list it."),
    "mv": ("upkeep", "Record that the project of a tape moved."),
    "detach": ("upkeep", "Make a tape stand without the one it was forked from."),
    "redact": ("upkeep", "Overwrite the data of entries for good."),
    "gc": ("removing", "Delete for good what nothing leads to; empty the trash."),
    "reindex": ("upkeep", "Make the index anew from the tapes."),
    "completion": ("completion", "Print the completion script of a shell."),
    "verify": ("verify", "Compute every hash anew and name what does not hold."),
    "fsck": ("fsck", "Explain damage, and mend what can be mended."),
}
"""Module and help line of each verb, in the order of the help page."""

PAGED = {
    *("ls", "show", "log", "cat", "branches", "label", "anchors", "context"),
    *("diff", "search", "stats", "blame"),
}
"""The verbs whose text goes through a pager where it is taller than the terminal."""

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
    no_pager: bool = False
    """Long listings are not paged."""


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
            ["--no-pager"],
            is_flag=True,
            help="Never page; so does an empty PAGER or TAPE_PAGER.",
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
            verb.callback = _paged(verb.callback) if name in PAGED else verb.callback
        verb.short_help = help_line
        return verb

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs, or options, that begin so, without importing any."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 (only a shell asks)

        begun = [name for name in VERBS if name.startswith(incomplete)]
        verbs = [CompletionItem(name, help=VERBS[name][1]) for name in begun]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


def _paged(callback: Any) -> Any:
    """Return a verb's function with what it prints paged, unless that is JSON."""

    @wraps(callback)
    def shown(*args: Any, **options: Any) -> Any:
        if options.get("as_json") or click.get_current_context().obj.no_pager:
            return callback(*args, **options)
        with paged():
            return callback(*args, **options)

    return shown


tape = Verbs(
    "tape",
    params=_common(),
    help="Records of coding-agent sessions: append-only, branching, checked by hashes.",
    epilog=EPILOG,
    subcommand_metavar="VERB [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
click.version_option(__version__, message="tape %(version)s")(tape)
