"""`show`, `log` and `cat`: the content of a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ..render import render_blob_head, render_conversation, render_entry, render_entry_line
from .call import get_store_home, open_entry, open_ref
from .out import (
    CountType,
    as_json,
    format_examples,
    get_columns,
    print_bytes,
    print_json,
    print_json_array,
    print_lines,
    ref,
)
from .summary import describe_tape, summarize_tape
from .walk import read_entry_at, read_line_at, read_path

if TYPE_CHECKING:
    from .group import GlobalOptions

LOG_LINES = 12
"""Lines of each entry that `log` shows."""


@click.command(
    epilog=format_examples(
        "tape show", "tape show 3f2a", "tape show 3f2a:main~2", "tape show 3f2a@9c1b --raw"
    )
)
@ref
@click.option("--raw", "as_line", is_flag=True, help="Print the entry's line as stored.")
@as_json
@click.pass_obj
def show(options: GlobalOptions, ref: str, as_line: bool, as_json: bool) -> None:
    """Show a tape, or the one entry that a REF with @ or ~ names.

    --json prints a tape as {id, path, title, …, branches, phases}, an entry as its line.
    """
    with open_ref(options, ref) as place:
        if place.head is None and not as_line:
            about = summarize_tape(place.tape, get_store_home(options))
            print_json(about) if as_json else print_lines(describe_tape(about))
            return
        head = place.head or place.tape.head(place.branch)
        if as_line:
            print_bytes(read_line_at(place.tape, head) + b"\n")
            return
        step = read_entry_at(place.tape, head)
        if as_json:
            print_bytes(step.line + b"\n")
        else:
            print_lines(render_entry(step.entry))


@click.command(
    epilog=format_examples(
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
@click.option("-n", "newest", type=CountType(), metavar="N", help="Show only the newest N.")
@click.option("--graph", "graphic", is_flag=True, help="Draw all branches as a tree, newest first.")
@click.option(
    "--fold",
    is_flag=True,
    help="With --graph: show only prompts, anchors and named entries; count the rest.",
)
@as_json
@click.pass_obj
def log(
    options: GlobalOptions,
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
        print_graph(options, ref, frozenset(types), newest, fold=fold, as_json=as_json)
        return
    with open_entry(options, ref) as (tape, head):
        chosen = read_path(tape, head, render_blob_head, types=frozenset(types), newest=newest)
        if as_json:
            print_json_array(step.line for step in chosen)
        elif short:
            wide = get_columns()
            print_lines(render_entry_line(step.entry, wide) for step in chosen)
        else:
            print_lines(
                line for step in chosen for line in [*render_entry(step.entry, LOG_LINES), ""]
            )


def print_graph(
    options: GlobalOptions,
    ref: str,
    types: frozenset[str],
    newest: int | None,
    *,
    fold: bool,
    as_json: bool,
) -> None:
    """Draw the whole tape of a REF."""
    from .graph import EntryFilter, build_tree, draw_tree  # noqa: PLC0415 (only a drawing needs it)

    with open_ref(options, ref) as place:
        if as_json:
            print_json(build_tree(place.tape))
        else:
            print_lines(draw_tree(place.tape, EntryFilter(types, fold=fold), newest))


@click.command(epilog=format_examples("tape cat", "tape cat 3f2a:main --md > session.md"))
@ref
@click.option("--md", "markdown", is_flag=True, help="Markdown.")
@as_json
@click.pass_obj
def cat(options: GlobalOptions, ref: str, markdown: bool, as_json: bool) -> None:
    """Print a whole conversation; nothing is cut.

    --json prints an array of the lines of its entries as stored.
    """
    if markdown and as_json:
        raise UsageError("--md and --json cannot be combined")
    with open_entry(options, ref) as (tape, head):
        if as_json:
            print_json_array(step.line for step in read_path(tape, head, render_blob_head))
        else:
            whole = (step.entry for step in read_path(tape, head))
            print_lines(render_conversation(whole, markdown=markdown))
