"""`show` and `branches`: what a tape is, without its history; or one of its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from .environment import find_store_home
from .output import (
    as_json,
    format_examples,
    print_json,
    ref,
)
from .resolve import open_ref
from .tape_summary import (
    describe_tape,
    format_branches,
    read_session_facts,
    summarize_branches,
    summarize_tape,
)
from .terminal import (
    print_lines,
)

if TYPE_CHECKING:
    from .group import GlobalOptions


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

    A tool's result is shown with its call, and with what it changed in files as a diff.

    --json prints a tape as {id, path, title, …, branches, phases, model, provider, tokens,
    input_tokens, output_tokens, git_branch, mode, todos, repository, person, machine}, these last
    ones of the current branch, and an entry as its line.
    """
    with open_ref(options, ref) as place:
        if place.head is None and not as_line:
            about = summarize_tape(place.tape, find_store_home(options.store))
            if as_json:
                print_json({**asdict(about), **asdict(read_session_facts(place.tape))})
                return
            print_lines(describe_tape(about))
            return
        from .entry_view import print_entry, print_line  # a tape needs none of it

        head = place.head or place.tape.head(place.branch)
        if as_line:
            print_line(place.tape, head)
        else:
            print_entry(place.tape, head, as_json=as_json)


@click.command(epilog=format_examples("tape branches", "tape branches 3f2a --json"))
@ref
@as_json
@click.pass_obj
def branches(options: GlobalOptions, ref: str, as_json: bool) -> None:
    """List the branches of a tape with their heads: entry, depth, time and type.

    --json prints an array of {branch, current, phase, entry, n, time, type, pinned, moves, error}.
    """
    with open_ref(options, ref) as (tape, _, __):
        rows = summarize_branches(tape, tape.refs())
        print_json(rows) if as_json else print_lines(format_branches(rows))
