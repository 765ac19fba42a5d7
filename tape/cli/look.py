"""`show`, `log` and `cat`: what stands on a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ..render import beginning, conversation, oneline, readable
from .call import entry, found, home
from .out import array, as_json, columns, document, examples, raw, ref, say
from .summary import described, summary
from .walk import entry_at, steps

if TYPE_CHECKING:
    from .group import Options

CUT = 12
"""Lines of an entry that `log` shows."""


@click.command(
    epilog=examples(
        "tape show", "tape show 3f2a", "tape show 3f2a:main~2", "tape show 3f2a@9c1b --raw"
    )
)
@ref
@click.option("--raw", "as_line", is_flag=True, help="Print the line of the entry as it stands.")
@as_json
@click.pass_obj
def show(options: Options, ref: str, as_line: bool, as_json: bool) -> None:
    """Show a tape, or the one entry a REF with @ or ~ means.

    --json prints a tape as {id, path, title, …, branches, phases}, an entry as its line.
    """
    with found(options, ref) as place:
        if place.head is None and not as_line:
            about = summary(place.tape, home(options))
            document(about) if as_json else say(described(about))
            return
        step = entry_at(place.tape, place.head or place.tape.head(place.branch))
        if as_line or as_json:
            raw(step.line + b"\n")
        else:
            say(readable(step.entry))


@click.command(
    epilog=examples(
        "tape log --oneline", "tape log 3f2a:fork-1 -n 5", "tape log --type user --json"
    )
)
@ref
@click.option("--oneline", "short", is_flag=True, help="One line for each entry.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type; repeatable."
)
@click.option("-n", "newest", type=click.IntRange(min=0), metavar="N", help="Only the newest N.")
@as_json
@click.pass_obj
def log(
    options: Options,
    ref: str,
    short: bool,
    types: tuple[str, ...],
    newest: int | None,
    as_json: bool,
) -> None:
    """List the entries of a path, newest last.

    Long entries are cut, with a count; `tape cat` and `tape show` cut nothing. --json prints an
    array of the lines as they stand.
    """
    with entry(options, ref) as (tape, head):
        chosen = steps(tape, head, beginning, types=frozenset(types), newest=newest)
        if as_json:
            array(step.line for step in chosen)
        elif short:
            wide = columns()
            say(oneline(step.entry, wide) for step in chosen)
        else:
            say(line for step in chosen for line in [*readable(step.entry, CUT), ""])


@click.command(epilog=examples("tape cat", "tape cat 3f2a:main --md > session.md"))
@ref
@click.option("--md", "markdown", is_flag=True, help="Markdown.")
@as_json
@click.pass_obj
def cat(options: Options, ref: str, markdown: bool, as_json: bool) -> None:
    """Print a whole conversation; nothing is cut.

    --json prints an array of the lines of its entries as they stand.
    """
    if markdown and as_json:
        raise UsageError("--md and --json exclude each other")
    with entry(options, ref) as (tape, head):
        if as_json:
            array(step.line for step in steps(tape, head, beginning))
        else:
            whole = (step.entry for step in steps(tape, head))
            say(conversation(whole, markdown=markdown))
