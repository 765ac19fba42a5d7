"""The group of commands, each imported when it is used, and what running one gives.

Every outcome becomes an exit code, and an error one line on standard error:

    the command returns a code      that code; None is 0
    an error with `exit_code`       that code (tape.errors, gong.errors)
    a wrong option or argument      2
    any other error                 1; --debug shows the traceback
    Ctrl+C, or an aborted question  130
    the reader of a pipe left       0, silently
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ..clock import show_times
from ..damage import catch_damage_warnings
from ..errors import NotFound, UsageError
from ..store.locks import DEFAULT_LOCK_WAIT, limit_lock_wait
from ..text import replace_surrogates, shorten_to_width, show_controls
from ..version import __version__
from .git_words import ALIASES, explain_file, explain_unknown_command, translate_git_words
from .streams import INTERRUPTED_CODE, silence_stream, use_visible_streams
from .terminal import open_pager, print_warning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from click.shell_completion import CompletionItem


COMMANDS = {
    "new": ("record", "Create a tape and print its id."),
    "append": ("record", "Record entries from JSON lines on standard input."),
    "ls": ("listing", "List tapes, newest first."),
    "status": ("status", "Show the state of a tape, and what was left unfinished."),
    "show": ("show", "Show a tape, or one entry."),
    "log": ("log", "List the entries of a path."),
    "cat": ("log", "Print a whole conversation."),
    "tail": ("log", "Show the newest entries; with -f, follow new ones."),
    "fork": ("branching", "Start a branch, or a new tape, at an entry."),
    "branches": ("show", "List the branches of a tape and their heads."),
    "switch": ("branching", "Choose the current branch of a tape."),
    "rename": ("branching", "Give a tape a title."),
    "label": ("branching", "Name an entry, or list the labels of a tape."),
    "anchors": ("context", "Show the phases of a tape with their summaries."),
    "context": ("context", "Show what the next model call would be built from."),
    "diff": ("diff", "Show how two branches differ."),
    "merge": ("merge", "Bring a branch back as a summary, with picked entries."),
    "replay": ("playback", "Replay a session, or check that it still gives the same view."),
    "search": ("search_view", "Search all tapes for words."),
    "stats": ("stats_view", "Show tokens, cost, tools and time."),
    "files": ("changed_files", "List the files that a path changed, or print one as it was."),
    "blame": ("blame", "Show which entry and prompt last changed each line of a file."),
    "export": ("exporting", "Export a tape as one self-contained file, or as Markdown."),
    "import": ("importing", "Import a tape from a file, or the sessions of other agents."),
    "hook": ("hook", "Record live sessions of other agents, by hooks that they call."),
    "mcp": ("mcp", "Serve the sessions to agents, as an MCP server."),
    "serve": ("serve", "Show the sessions in a browser."),
    "remote": ("remote", "List the remotes of this store, add and remove them."),
    "push": ("pushing", "Bring tapes to a remote."),
    "unpush": ("retention", "Take tapes from a remote again."),
    "hold": ("retention", "Keep a tape at a remote from being taken away."),
    "pull": ("pushing", "Bring what a remote has of tapes here."),
    "clone": ("pushing", "Make a store of all tapes of a remote."),
    "unite": ("unite", "Bring everything of another copy of a store or tape here."),
    "archive": ("archive", "Make one compressed file of each tape, in place of its folder."),
    "unarchive": ("archive", "Make folders of archived tapes again."),
    "rm": ("trash", "Move tapes to the trash."),
    "restore": ("trash", "Restore tapes from the trash, or list it."),
    "mv": ("maintain", "Record that the project of a tape moved."),
    "machine": ("maintain", "Show or set the name of this machine on new tapes."),
    "detach": ("maintain", "Make a forked tape independent of its origin."),
    "redact": ("maintain", "Overwrite the data of entries permanently."),
    "gc": ("trash", "Delete unreachable files permanently; empty the trash."),
    "reindex": ("maintain", "Rebuild the index from the tapes."),
    "completion": ("completion", "Print the completion script of a shell."),
    "verify": ("check", "Recompute every hash and report damage."),
    "fsck": ("check", "Explain damage, and repair what can be repaired."),
    "doctor": ("doctor", "Verify all tapes, or all that a remote holds."),
}
"""Module and help line of each command, in the order of the help page."""

PAGED_COMMANDS = {
    "ls", "show", "log", "cat", "branches", "label", "anchors", "context",
    "diff", "files", "search", "stats", "blame",
}  # fmt: skip
"""The commands whose text goes through a pager if it is taller than the terminal."""

_TYPED = "tape.typed"
"""Where a context keeps the words that were typed, the command first."""

EPILOG = """\b
REF is [TAPE][:BRANCH][@ENTRY | @{N}][~N | ^N], or a branch of this folder's
tape: ids by any unique prefix of three digits or more, @LABEL too, @{N} the
head N moves ago, ~N entries back, ^N before the Nth newest prompt.
Without a REF: the newest tape of this folder, else of its repository, in
this checkout or another one.

Commands and options of git (checkout, branch -d, log --stat …) work here too,
or name the command to use.
"""


class GlobalOptions:
    """The options that may be given before the command or after it."""

    def __init__(self, store: str | None = None) -> None:
        self.store = store
        """Value of --store."""
        self.debug = False
        """Show tracebacks."""
        self.utc = False
        """Show times in UTC, and read typed ones so."""
        self.no_pager = False
        """Do not page long listings."""


def _keep_option(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        setattr(ctx.obj, option.name or "", value)


def _keep_utc(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    _keep_option(ctx, option, value)
    ctx.with_resource(show_times(local=not ctx.obj.utc))


def _build_common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--store"],
            type=click.Path(),
            help="The store: a folder, or the URL of a remote. Default: $TAPE_HOME, else ~/.tape.",
            expose_value=False,
            callback=_keep_option,
        ),
        click.Option(
            ["--utc"],
            is_flag=True,
            help="Times in UTC instead of local time.",
            expose_value=False,
            is_eager=True,
            callback=_keep_utc,
        ),
        click.Option(
            ["--no-pager"],
            is_flag=True,
            help="Never page; so does an empty PAGER or TAPE_PAGER.",
            expose_value=False,
            callback=_keep_option,
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            help="Show where an error came from.",
            expose_value=False,
            callback=_keep_option,
        ),
    ]


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports only the one that is used.

    `table` holds the module in `package` and the help line of each, in the order of the help page.
    """

    def __init__(
        self, name: str, *, package: str, table: Mapping[str, tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(name, context_settings={"help_option_names": ["-h", "--help"]}, **options)
        self._package, self._table = package, table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the command names in the order of the help page."""
        return list(self._table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; return None for an unknown name."""
        if name not in self._table:
            return None
        module, help_line = self._table[name]
        verb: click.Command = getattr(import_module(f".{module}", self._package), name)
        verb.short_help = help_line
        return verb

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, or options, that begin with `incomplete`, without importing any."""
        from click.shell_completion import CompletionItem  # only a shell asks

        verbs = [
            CompletionItem(name, help=line)
            for name, (_, line) in self._table.items()
            if name.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._table.items()])


class CommandGroup(LazyGroup):
    """The group of `tape`: its commands take the common options too, and know git's words."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Set the common options, also where another program's group calls this one."""
        return super().make_context(info_name, args, parent, **{"obj": GlobalOptions(), **extra})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command and add the common options; return None for an unknown name."""
        verb = super().get_command(ctx, name)
        if verb is not None and not any(option.name == "store" for option in verb.params):
            for command in (
                verb,
                *(verb.commands.values() if isinstance(verb, click.Group) else ()),
            ):
                command.params = [*command.params, *_build_common_options()]
            verb.callback = (
                _wrap_paged(verb.callback, name) if name in PAGED_COMMANDS else verb.callback
            )
        return verb

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named; what it cannot find may be a file."""
        try:
            return super().invoke(ctx)
        except NotFound as error:
            name, *words = ctx.meta[_TYPED]
            text = str(error)
            files = [word for word in words if repr(word) in text and os.path.lexists(word)]
            if advice := explain_file(name, files):
                raise UsageError(advice) from None
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name, in git's words too, and the rest of them."""
        ctx.meta[_TYPED] = args
        args = translate_git_words(args)
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(explain_unknown_command("tape", args[0], [*COMMANDS, *ALIASES]))
        return super().resolve_command(ctx, args)


def _wrap_paged(callback: Any, name: str) -> Any:
    """Wrap a command's function so that its output is paged, unless it is JSON.

    The pager opens at the end of what stands newest last.
    """

    @wraps(callback)
    def run_with_pager(*args: Any, **options: Any) -> Any:
        if options.get("as_json") or click.get_current_context().obj.no_pager:
            return callback(*args, **options)
        at_end = name == "log" and not options["graphic"] and options["reverse"] is not False
        with open_pager(at_end=at_end):
            return callback(*args, **options)

    return run_with_pager


tape = CommandGroup(
    "tape",
    package=__package__,
    table=COMMANDS,
    params=_build_common_options(),
    help="Records of coding-agent sessions: append-only, branching, checked by hashes.",
    epilog=EPILOG,
    subcommand_metavar="COMMAND [ARGS]...",
)
click.version_option(__version__, message="tape %(version)s")(tape)


def run_command(arguments: Sequence[str]) -> int:
    """Run a command of `tape` and return its exit code."""
    options = GlobalOptions()
    with limit_lock_wait(DEFAULT_LOCK_WAIT, print_warning):
        return run_guarded(
            "tape", lambda: invoke_group(tape, arguments, options), lambda: options.debug
        )


def invoke_group(group: click.Group, arguments: Sequence[str], options: object = None) -> int:
    """Run a click group with these arguments, and return the exit code."""
    try:
        with group.make_context(group.name, list(arguments), obj=options) as ctx:
            code = group.invoke(ctx)
    except click.exceptions.Exit as end:
        code = end.exit_code
    sys.stdout.flush()
    return int(code or 0)


def run_guarded(program: str, command: Callable[[], int], debug: Callable[[], bool]) -> int:
    """Return the exit code of `command`; print an error as one line, with a traceback if `debug`.

    An error gives its own exit code in the attribute `exit_code`.
    """
    with use_visible_streams():
        try:
            try:
                with catch_damage_warnings(lambda text: print_warning(text, program)):
                    return command()
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 (the top of a command line: all are reported)
                if debug():
                    import traceback  # slow to load, and seldom needed

                    traceback.print_exc()
                return _report_error(program, error)
        except BrokenPipeError:
            silence_stream(sys.stdout)
            return 0
        except KeyboardInterrupt:
            return INTERRUPTED_CODE


def _report_error(program: str, error: Exception) -> int:
    """Print an error and return its exit code."""
    try:
        sys.stdout.flush()  # output from before the error comes first
    except BrokenPipeError:
        raise
    except OSError:
        silence_stream(sys.stdout)  # a full disk, for example: do not retry the flush at exit
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.UsageError():
            verb = error.ctx.command_path if error.ctx else program
            print_warning(f"{error.format_message().rstrip('.')}; see `{verb} --help`", program)
            return 2
        case click.Abort():
            return INTERRUPTED_CODE
        case _ if hasattr(error, "exit_code"):
            print_warning(str(error), program)
            return int(error.exit_code)
        case OSError(strerror=str()):
            description = (
                f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            )
            print_warning(str(description), program)
        case UnicodeEncodeError(object=str(text)) if text != replace_surrogates(text):
            line = next(row for row in text.split("\n") if row != replace_surrogates(row))
            print_warning(
                f"this is not UTF-8: {shorten_to_width(show_controls(line), 80)}", program
            )
            return 2
        case _:
            print_warning(f"{type(error).__name__}: {error}; --debug shows where", program)
    return 1
