"""`tail`: the newest entries of a path, and with -f new entries of its branch."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ..follow import Moved, follow
from ..render import SHORT, render_blob_head, render_entry
from .call import open_ref
from .out import (
    CountType,
    as_json,
    format_examples,
    print_bytes,
    print_json_array,
    print_lines,
    print_warning,
    ref,
)
from .walk import LocatedLine, decode_legible, read_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..follow import Gained
    from .call import ResolvedRef
    from .group import GlobalOptions
    from .walk import DecodedLine

TAIL_LINES = 12
"""Lines of each entry to show."""


@click.command(
    epilog=format_examples(
        "tape tail",
        "tape tail 3f2a:main -n 3 --json",
        "tape tail -f 3f2a",
        "tape tail -f --json | jq .type",
    )
)
@ref
@click.option(
    "-n",
    "newest",
    type=CountType(),
    metavar="N",
    default=10,
    show_default=True,
    help="Show only the newest N.",
)
@click.option(
    "-f", "--follow", "follows", is_flag=True, help="Follow new entries until interrupted."
)
@as_json
@click.pass_obj
def tail(options: GlobalOptions, ref: str, newest: int, follows: bool, as_json: bool) -> None:
    """Show the newest entries of a path, newest last, as `log` does.

    With -f, show each entry that any process appends to the branch. TAPE:BRANCH follows that
    branch. TAPE alone follows the current branch, and stays on it when another becomes current.
    When the branch moves back to an earlier entry, a line on standard error says so.

    --json prints an array of the lines as stored; with -f one line per entry, no array.
    """
    with open_ref(options, ref) as place:
        if follows:
            follow_branch(place, newest, as_json=as_json)
        else:
            head = place.head or place.tape.head(place.branch)
            chosen = read_path(place.tape, head, render_blob_head, newest=newest)
            print_json_array(step.line for step in chosen) if as_json else print_entries(chosen)


def follow_branch(place: ResolvedRef, newest: int, *, as_json: bool) -> None:
    """Show the newest entries of a branch, then new ones, until interrupted."""
    if place.head is not None:
        raise UsageError("-f follows a branch, not an entry: write TAPE or TAPE:BRANCH")
    tell = print_entry_lines if as_json else print_entries
    with follow(place.tape, place.branch, skipped=warn_of_left_out_line) as follower:
        tell(read_path(place.tape, follower.head, render_blob_head, newest=newest))
        for news in follower.live(choose_wait()):
            if isinstance(news, Moved):
                print_warning(f"{news.head.branch} moved to {news.head.entry[:SHORT]} ({news.why})")
            else:
                tell(decode_legible([build_gained_line(news)], render_blob_head))


def build_gained_line(gained: Gained) -> LocatedLine:
    """Return the line of a new entry, with its place."""
    return LocatedLine(gained.source, gained.head.phase, gained.head.offset, gained.line)


def print_entries(chosen: Iterable[DecodedLine]) -> None:
    """Print entries as text, and flush."""
    print_lines(line for step in chosen for line in [*render_entry(step.entry, TAIL_LINES), ""])
    sys.stdout.flush()


def print_entry_lines(chosen: Iterable[DecodedLine]) -> None:
    """Print the lines of entries as stored, and flush."""
    for step in chosen:
        print_bytes(step.line + b"\n")
    sys.stdout.flush()


def warn_of_left_out_line(text: str) -> None:
    """Warn of a skipped line."""
    print_warning(f"{text}; left out, `tape verify` says more")


def choose_wait() -> Callable[[float], None]:
    """Return a function that waits some seconds; BrokenPipeError once a pipe's reader is gone."""
    out = sys.stdout.fileno()
    if not stat.S_ISFIFO(os.fstat(out).st_mode):
        return time.sleep
    pipe = select.poll()
    pipe.register(out, 0)  # only errors are polled: the reader is gone

    def wait(seconds: float) -> None:
        if pipe.poll(seconds * 1000):
            raise BrokenPipeError

    return wait
