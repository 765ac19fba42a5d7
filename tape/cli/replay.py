"""`replay`: replay a session at reading speed, or check that it gives the same view."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import Damaged
from ..render import SHORT, single
from ..replay import Difference
from ..replay import replay as fold_again
from .call import entry
from .out import array, as_json, counted, document, examples, ref, say
from .player import Pace, keys, play, scenes
from .terminal import style
from .walk import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..branches import Head
    from ..replay import Replayed
    from ..tape import Tape
    from .group import Options


class Checked(Struct, frozen=True):
    """What `replay --check --json` prints; see `Replayed` for the counts."""

    tape: str
    branch: str
    head: str
    entries: int
    anchors: int
    kept: int
    repairs: int
    unanswered: int
    messages: int
    differences: tuple[Difference, ...]


@click.command(
    epilog=examples(
        "tape replay",
        "tape replay 3f2a:main --speed 3 --max-pause 0.5",
        "tape replay 3f2a --check",
    )
)
@ref
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    metavar="X",
    help="Speed factor.",
)
@click.option(
    "--max-pause",
    type=click.FloatRange(min=0),
    default=2.0,
    show_default=True,
    metavar="S",
    help="Longest pause between two entries, in seconds.",
)
@click.option("--check", "checks", is_flag=True, help="Play nothing: recompute and compare.")
@as_json
@click.pass_obj
def replay(
    options: Options, ref: str, speed: float, max_pause: float, checks: bool, as_json: bool
) -> int:
    """Replay a session at reading speed.

    Prompts appear as if typed and answers word by word, with the session's own pauses between them,
    up to a limit. Space pauses and resumes, → shows the rest of an entry at once, q quits. Tool
    results are cut; `tape cat` cuts nothing. Output to a pipe or a file has no pauses. --json
    prints an array of {at, entry}: the second at which each entry would appear, and its line.

    --check verifies that the path still gives the same view. Two independent readers must agree;
    ids, parents, depths, times and hashes must be consistent; anchors must cover and keep the
    entries they name; and recorded repairs are computed again. Exits with 4 when something differs.
    --json prints {tape, branch, head, entries, anchors, kept, repairs, unanswered, messages,
    differences [{entry, what}]}.
    """
    with entry(options, ref) as (tape, head):
        if checks:
            return check(tape, head, as_json=as_json)
        if as_json:
            array(cues(tape, head, Pace(speed, max_pause)))
        else:
            perform(tape, head, Pace(speed, max_pause))
    return 0


def check(tape: Tape, head: Head, *, as_json: bool) -> int:
    """Replay a path, print the comparison, and return the exit code."""
    made = fold_again(tape, head)
    if as_json:
        counts = (getattr(made, name) for name in made.__struct_fields__)
        document(Checked(tape.id, head.branch, head.entry, *counts))
    else:
        say(lines(tape, head, made))
    return Damaged.exit_code if made.differences else 0


def lines(tape: Tape, head: Head, made: Replayed) -> Iterator[str]:
    """Yield a line for each difference, and a summary."""
    for one in made.differences:
        yield single(f"difference: {one.entry[:12] if one.entry else '?'}: {one.what}")
    counts = [
        counted(made.entries, "entry"),
        f"{counted(made.anchors, 'anchor')} ({counted(made.kept, 'kept range')})",
        counted(made.repairs, "repair"),
        counted(made.messages, "message"),
    ]
    if made.unanswered:
        counts.append(
            f"{counted(made.unanswered, 'repair')} without an answer after it, not compared"
        )
    bad = len(made.differences)
    end = f"{counted(bad, 'difference')}, see above" if bad else "replayed, no differences"
    at = f"{tape.id[:SHORT]}:{head.branch}@{head.entry[:SHORT]}"
    yield f"{at}: {', '.join(counts)}: {end}"


def cues(tape: Tape, head: Head, pace: Pace) -> Iterator[bytes]:
    """Yield {at, entry} of each shown entry, as JSON."""
    now = 0.0
    for scene in scenes(steps(tape, head), pace):
        begins = now + scene.beats[0].wait
        yield b'{"at":%.3f,"entry":%b}' % (begins, scene.step.line)
        now += sum(beat.wait for beat in scene.beats)


def perform(tape: Tape, head: Head, pace: Pace) -> None:
    """Play a path on the terminal; into a pipe or a file, print it."""
    shown = scenes(steps(tape, head), pace)
    if not sys.stdout.isatty():
        say("".join(beat.text for beat in scene.beats)[:-1] for scene in shown)
        return
    with keys() as wait:
        if sys.stdin.isatty():
            show(style("space pause · → next · q quit", dim=True) + "\n")
        play(shown, wait, show)


def show(text: str) -> None:
    """Write a piece of text and flush."""
    sys.stdout.write(text)
    sys.stdout.flush()
