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
from ..render import SHORT, beginning, readable
from .call import found
from .out import Count, array, as_json, examples, raw, ref, say, warn
from .walk import Line, legible, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..follow import Gained
    from .call import Found
    from .group import Options
    from .walk import Step

CUT = 12
"""Lines of each entry to show."""


@click.command(
    epilog=examples(
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
    type=Count(),
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
def tail(options: Options, ref: str, newest: int, follows: bool, as_json: bool) -> None:
    """Show the newest entries of a path, newest last, as `log` does.

    With -f, show each entry that any process appends to the branch. TAPE:BRANCH follows that
    branch. TAPE alone follows the current branch, and stays on it when another becomes current.
    When the branch moves back to an earlier entry, a line on standard error says so.

    --json prints an array of the lines as stored; with -f one line per entry, no array.
    """
    with found(options, ref) as place:
        if follows:
            go_on(place, newest, as_json=as_json)
        else:
            head = place.head or place.tape.head(place.branch)
            chosen = steps(place.tape, head, beginning, newest=newest)
            array(step.line for step in chosen) if as_json else show(chosen)


def go_on(place: Found, newest: int, *, as_json: bool) -> None:
    """Show the newest entries of a branch, then new ones, until interrupted."""
    if place.head is not None:
        raise UsageError("-f follows a branch, not an entry: write TAPE or TAPE:BRANCH")
    tell = show_lines if as_json else show
    with follow(place.tape, place.branch, skipped=warn_of_line) as follower:
        tell(steps(place.tape, follower.head, beginning, newest=newest))
        for news in follower.live(waiting()):
            if isinstance(news, Moved):
                warn(f"{news.head.branch} moved to {news.head.entry[:SHORT]} ({news.why})")
            else:
                tell(legible([line_of(news)], beginning))


def line_of(gained: Gained) -> Line:
    """Return the line of a new entry, with its place."""
    return Line(gained.source, gained.head.phase, gained.head.offset, gained.line)


def show(chosen: Iterable[Step]) -> None:
    """Print entries as text, and flush."""
    say(line for step in chosen for line in [*readable(step.entry, CUT), ""])
    sys.stdout.flush()


def show_lines(chosen: Iterable[Step]) -> None:
    """Print the lines of entries as stored, and flush."""
    for step in chosen:
        raw(step.line + b"\n")
    sys.stdout.flush()


def warn_of_line(text: str) -> None:
    """Warn of a skipped line."""
    warn(f"{text}; left out, `tape verify` says more")


def waiting() -> Callable[[float], None]:
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
