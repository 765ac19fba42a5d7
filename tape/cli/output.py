"""What commands share: options and arguments, JSON on standard output, asking before deleting."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import UsageError
from ..store.locks import DEFAULT_LOCK_WAIT, limit_lock_wait
from ..text import replace_surrogates
from .git_words import explain_unknown_command
from .terminal import erase_progress, print_lines, print_warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from click.shell_completion import CompletionItem


MAX_COUNT = 10**12
"""An upper bound for any count."""
MAX_WAIT = 1e6
"""The longest wait that may be given, in seconds."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def _limit_lock_wait(ctx: click.Context, _: click.Parameter, seconds: float | None) -> None:
    if seconds is not None:
        ctx.with_resource(limit_lock_wait(seconds, print_warning))


wait = click.option(
    "--wait",
    type=click.FloatRange(min=0, max=MAX_WAIT),
    metavar="SECONDS",
    help="How long to wait while another process updates the branches. "
    f"Default: {DEFAULT_LOCK_WAIT:g}.",
    expose_value=False,
    callback=_limit_lock_wait,
)


def complete_ref(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions of a REF: the `shell_complete` of arguments that are REFs."""
    from .ref_completion import list_ref_completions  # only a shell asks

    return list_ref_completions(ctx, param, incomplete)


def complete_ref_or_path(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions of a REF, or leave what looks like a path to the shell."""
    if incomplete.startswith(("/", ".", "~")):
        from click.shell_completion import CompletionItem  # only a shell asks

        return [CompletionItem(incomplete, type="file")]
    return complete_ref(ctx, param, incomplete)


ref = click.argument("ref", default="", metavar="[REF]", shell_complete=complete_ref)


def format_examples(*lines: str) -> str:
    """Return the examples that end a help page."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class CountedCommand(click.Command):
    """A command that takes -5 for -n 5, as git and tail do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a number with a dash counts up to `--`."""
        end = args.index("--") if "--" in args else len(args)
        counted = [
            f"-n{arg[1:]}" if arg[:1] == "-" and arg[1:].isdecimal() and arg.isascii() else arg
            for arg in args[:end]
        ]
        return super().parse_args(ctx, [*counted, *args[end:]])


class NamingGroup(click.Group):
    """A group that answers a word that is none of its commands with the one it may be a slip of."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name, and the rest of them; raise UsageError."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise UsageError(explain_unknown_command(ctx.command_path, args[0], self.commands))
        return super().resolve_command(ctx, args)


class CountType(click.IntRange):
    """A count of at least `min`; a number above the upper bound means all."""

    def __init__(self, min: int = 0, most: int = MAX_COUNT) -> None:  # noqa: A002 (as click calls it)
        super().__init__(min=min)
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or the upper bound if it is larger."""
        return min(int(super().convert(value, param, ctx)), self._most)


def print_json(value: object) -> None:
    """Print one JSON document; bytes of a file name that are not UTF-8 become U+FFFD."""
    import msgspec  # a tenth of the time to the prompt of `gong chat`

    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_replace_surrogates(msgspec.to_builtins(value)))
    print_bytes(data + b"\n")


def _replace_surrogates(value: Any) -> Any:
    match value:
        case str():
            return replace_surrogates(value)
        case dict():
            return {
                _replace_surrogates(key): _replace_surrogates(inner) for key, inner in value.items()
            }
        case list() | tuple():
            return [_replace_surrogates(inner) for inner in value]
        case _:
            return value


def print_bytes(data: bytes) -> None:
    """Print bytes as they are; on a terminal control characters become JSON escapes."""
    sys.stdout.buffer.write(data)


def print_utf8(data: bytes) -> None:
    """Print UTF-8 text as it is; on a terminal its control characters are made visible."""
    if sys.stdout.isatty():
        sys.stdout.write(data.decode("utf-8", "replace"))
    else:
        print_bytes(data)


def print_json_array(items: Iterable[bytes]) -> None:
    """Print a JSON array, one item per line, as the items come."""
    start = b"[\n"
    for item in items:
        print_bytes(start + item)
        start = b",\n"
    print_bytes(b"[]\n" if start == b"[\n" else b"\n]\n")


def print_line_array(runs: Iterable[bytes]) -> None:
    """Print a JSON array of lines that come many whole ones at a time."""
    # An entry's line has no newline inside, as JSON writes it.
    print_json_array(run.removesuffix(b"\n").replace(b"\n", b",\n") for run in runs)


def format_size(count: int) -> str:
    """Return a number of bytes with its unit (B, kB, MB, GB)."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004
            return f"{amount:.{0 if unit == 'B' else 1}f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


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
