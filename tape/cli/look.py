"""`show`, `log` and `cat`: the content of a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ..render import beginning, conversation, oneline, readable
from .call import entry, found, home
from .out import Count, array, as_json, columns, document, examples, raw, ref, say
from .summary import described, summary
from .walk import entry_at, line_at, steps

if TYPE_CHECKING:
    from .group import Options

CUT = 12
"""Lines of each entry that `log` shows."""


@click.command(
    epilog=examples(
        "tape show", "tape show 3f2a", "tape show 3f2a:main~2", "tape show 3f2a@9c1b --raw"
    )
)
@ref
@click.option("--raw", "as_line", is_flag=True, help="Print the entry's line as stored.")
@as_json
@click.pass_obj
def show(options: Options, ref: str, as_line: bool, as_json: bool) -> None:
    """Show a tape, or the one entry that a REF with @ or ~ names.

    --json prints a tape as {id, path, title, …, branches, phases}, an entry as its line.
    """
    with found(options, ref) as place:
        if place.head is None and not as_line:
            about = summary(place.tape, home(options))
            document(about) if as_json else say(described(about))
            return
        head = place.head or place.tape.head(place.branch)
        if as_line:
            raw(line_at(place.tape, head) + b"\n")
            return
        step = entry_at(place.tape, head)
        if as_json:
            raw(step.line + b"\n")
        else:
            say(readable(step.entry))


@click.command(
    epilog=examples(
        "tape log --oneline",
        "tape log 3f2a:fork-1 -n 5",
        "tape log --type user --json",
        "tape log --graph",
        "tape log --graph --fold",
    )
)
@ref
@click.option("--oneline", "short", is_flag=True, help="Show one line per entry.")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type; repeatable."
)
@click.option("-n", "newest", type=Count(), metavar="N", help="Show only the newest N.")
@click.option("--graph", "graphic", is_flag=True, help="Draw all branches as a tree, newest first.")
@click.option(
    "--fold",
    is_flag=True,
    help="With --graph: show only prompts, anchors and named entries; count the rest.",
)
@as_json
@click.pass_obj
def log(
    options: Options,
    ref: str,
    short: bool,
    types: tuple[str, ...],
    newest: int | None,
    graphic: bool,
    fold: bool,
    as_json: bool,
) -> None:
    """List the entries of a path, newest last.

    Long entries are cut, with a count; `tape cat` and `tape show` cut nothing. --json prints an
    array of the lines as stored.

    --graph draws the whole tape of REF, as git does: one line per entry, newest first, each branch
    before its base. `*` is an entry, `#` an anchor, `o` an undone entry: it is on the tape but on
    no branch. Brackets hold the branches whose head is the entry, `*` before the current one, and
    its labels. --type and --fold leave out entries, but never named ones. --json prints {tape,
    current, branches, phases, labels, damage}: the tree itself.
    """
    if fold and not graphic:
        raise UsageError("--fold needs --graph")
    if graphic:
        graph(options, ref, frozenset(types), newest, fold=fold, as_json=as_json)
        return
    with entry(options, ref) as (tape, head):
        chosen = steps(tape, head, beginning, types=frozenset(types), newest=newest)
        if as_json:
            array(step.line for step in chosen)
        elif short:
            wide = columns()
            say(oneline(step.entry, wide) for step in chosen)
        else:
            say(line for step in chosen for line in [*readable(step.entry, CUT), ""])


def graph(
    options: Options,
    ref: str,
    types: frozenset[str],
    newest: int | None,
    *,
    fold: bool,
    as_json: bool,
) -> None:
    """Draw the whole tape of a REF."""
    from .graph import Choice, drawing, tree_of  # noqa: PLC0415 (only a drawing needs it)

    with found(options, ref) as place:
        if as_json:
            document(tree_of(place.tape))
        else:
            say(drawing(place.tape, Choice(types, fold=fold), newest))


@click.command(epilog=examples("tape cat", "tape cat 3f2a:main --md > session.md"))
@ref
@click.option("--md", "markdown", is_flag=True, help="Markdown.")
@as_json
@click.pass_obj
def cat(options: Options, ref: str, markdown: bool, as_json: bool) -> None:
    """Print a whole conversation; nothing is cut.

    --json prints an array of the lines of its entries as stored.
    """
    if markdown and as_json:
        raise UsageError("--md and --json cannot be combined")
    with entry(options, ref) as (tape, head):
        if as_json:
            array(step.line for step in steps(tape, head, beginning))
        else:
            whole = (step.entry for step in steps(tape, head))
            say(conversation(whole, markdown=markdown))
