"""`replay`: replay a session at reading speed, or check that it gives the same view."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..errors import Damaged
from ..render import SHORT, to_single_line
from ..replay import ReplayDifference
from ..replay import replay_path as fold_again
from .call import open_entry
from .out import (
    as_json,
    format_count,
    format_examples,
    print_json,
    print_json_array,
    print_lines,
    ref,
)
from .player import Pace, build_scenes, play_scenes, read_keys
from .terminal import style_text
from .walk import read_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..branches import Head
    from ..replay import ReplayResult
    from ..tape import Tape
    from .group import GlobalOptions


class ReplayCheck(Struct, frozen=True):
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
    differences: tuple[ReplayDifference, ...]


@click.command(
    epilog=format_examples(
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
    options: GlobalOptions, ref: str, speed: float, max_pause: float, checks: bool, as_json: bool
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
    with open_entry(options, ref) as (tape, head):
        if checks:
            return check_replay(tape, head, as_json=as_json)
        if as_json:
            print_json_array(encode_cues(tape, head, Pace(speed, max_pause)))
        else:
            perform_session(tape, head, Pace(speed, max_pause))
    return 0


def check_replay(tape: Tape, head: Head, *, as_json: bool) -> int:
    """Replay a path, print the comparison, and return the exit code."""
    made = fold_again(tape, head)
    if as_json:
        counts = (getattr(made, name) for name in made.__struct_fields__)
        print_json(ReplayCheck(tape.id, head.branch, head.entry, *counts))
    else:
        print_lines(format_replay_check(tape, head, made))
    return Damaged.exit_code if made.differences else 0


def format_replay_check(tape: Tape, head: Head, made: ReplayResult) -> Iterator[str]:
    """Yield a line for each difference, and a summary."""
    for one in made.differences:
        yield to_single_line(f"difference: {one.entry[:12] if one.entry else '?'}: {one.what}")
    counts = [
        format_count(made.entries, "entry"),
        f"{format_count(made.anchors, 'anchor')} ({format_count(made.kept, 'kept range')})",
        format_count(made.repairs, "repair"),
        format_count(made.messages, "message"),
    ]
    if made.unanswered:
        counts.append(
            f"{format_count(made.unanswered, 'repair')} without an answer after it, not compared"
        )
    bad = len(made.differences)
    end = f"{format_count(bad, 'difference')}, see above" if bad else "replayed, no differences"
    at = f"{tape.id[:SHORT]}:{head.branch}@{head.entry[:SHORT]}"
    yield f"{at}: {', '.join(counts)}: {end}"


def encode_cues(tape: Tape, head: Head, pace: Pace) -> Iterator[bytes]:
    """Yield {at, entry} of each shown entry, as JSON."""
    now = 0.0
    for scene in build_scenes(read_path(tape, head), pace):
        begins = now + scene.beats[0].wait
        yield b'{"at":%.3f,"entry":%b}' % (begins, scene.step.line)
        now += sum(beat.wait for beat in scene.beats)


def perform_session(tape: Tape, head: Head, pace: Pace) -> None:
    """Play a path on the terminal; into a pipe or a file, print it."""
    shown = build_scenes(read_path(tape, head), pace)
    if not sys.stdout.isatty():
        print_lines("".join(beat.text for beat in scene.beats)[:-1] for scene in shown)
        return
    with read_keys() as wait:
        if sys.stdin.isatty():
            write_text(style_text("space pause · → next · q quit", dim=True) + "\n")
        play_scenes(shown, wait, write_text)


def write_text(text: str) -> None:
    """Write a piece of text and flush."""
    sys.stdout.write(text)
    sys.stdout.flush()
