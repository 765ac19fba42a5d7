"""`tail`: the newest entries of a path, and with -f those that its branch gains."""

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
"""Lines of an entry that are shown."""


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
    help="Only the newest N.",
)
@click.option(
    "-f", "--follow", "follows", is_flag=True, help="Go on with what comes, until interrupted."
)
@as_json
@click.pass_obj
def tail(options: Options, ref: str, newest: int, follows: bool, as_json: bool) -> None:
    """Show the newest entries of a path, newest last, as `log` does.

    With -f, go on with each entry the branch gains, from whatever process. TAPE:BRANCH follows that
    branch. TAPE alone follows the branch that is current now, and stays on it when another becomes
    current. Where the branch goes back to an earlier entry, standard error says so.

    --json prints an array of the lines as they stand; with -f a line for each entry, no array.
    """
    with found(options, ref) as place:
        if follows:
            go_on(place, newest, as_json=as_json)
        else:
            head = place.head or place.tape.head(place.branch)
            chosen = steps(place.tape, head, beginning, newest=newest)
            array(step.line for step in chosen) if as_json else show(chosen)


def go_on(place: Found, newest: int, *, as_json: bool) -> None:
    """Show the newest entries of a branch and what it gains, without end."""
    if place.head is not None:
        raise UsageError("-f follows a branch, not an entry: write TAPE or TAPE:BRANCH")
    tell = show_lines if as_json else show
    with follow(place.tape, place.branch, skipped=warn_of_line) as follower:
        tell(steps(place.tape, follower.head, beginning, newest=newest))
        for news in follower.live(waiting()):
            if isinstance(news, Moved):
                warn(f"{news.head.branch} went to {news.head.entry[:SHORT]} ({news.why})")
            else:
                tell(legible([line_of(news)], beginning))


def line_of(gained: Gained) -> Line:
    """Return the line of an entry that was gained, with its place."""
    return Line(gained.source, gained.head.phase, gained.head.offset, gained.line)


def show(chosen: Iterable[Step]) -> None:
    """Print entries as text, at once."""
    say(line for step in chosen for line in [*readable(step.entry, CUT), ""])
    sys.stdout.flush()


def show_lines(chosen: Iterable[Step]) -> None:
    """Print the lines of entries as they stand, at once."""
    for step in chosen:
        raw(step.line + b"\n")
    sys.stdout.flush()


def warn_of_line(text: str) -> None:
    """Say which line was left out."""
    warn(f"{text}; left out, `tape verify` says more")


def waiting() -> Callable[[float], None]:
    """Return how to wait for seconds; into a pipe, the end comes when its reader goes away."""
    out = sys.stdout.fileno()
    if not stat.S_ISFIFO(os.fstat(out).st_mode):
        return time.sleep
    pipe = select.poll()
    pipe.register(out, 0)  # errors alone are told: nobody reads any more

    def wait(seconds: float) -> None:
        if pipe.poll(seconds * 1000):
            raise BrokenPipeError

    return wait
