"""`replay`: play a session on a terminal at reading speed, or check that it gives the same view.

A path becomes scenes, one for each entry that shows something; a scene is beats of text:

    path → build_scenes: Scene(step, [Beat(wait, text), …]) → play_scenes: wait, show, wait, show, …

    key while playing   effect
    space               wait until the next key; space resumes, the others act as below
    → or Enter          show the rest of this entry at once
    q or Ctrl+D         end

Invariant: the terminal is restored however the playing ends.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import Struct

from ..clock import parse_timestamp
from ..errors import Damaged
from ..history.entry_lines import read_path
from ..history.replay import ReplayDifference
from ..history.replay import replay_path as fold_again
from ..model.entries import Assistant, User
from ..render.entries import Conversation, RenderOptions
from ..text import SHORT, format_count, to_single_line
from .output import as_json, format_examples, print_json, print_json_array, ref
from .resolve import open_entry
from .terminal import paint_line, print_lines, style_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from ..history.entry_lines import DecodedLine
    from ..history.replay import ReplayResult
    from ..model.line import Entry
    from ..store.refs import Head
    from ..store.tape import Tape
    from .group import GlobalOptions


LETTERS_PER_SECOND, WORDS_PER_SECOND = 40, 12
"""Letters of a prompt, and words of an answer, that appear per second."""
PLAYED_LINES = 12
"""Lines shown of an entry that is neither a prompt nor an answer."""
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_WORD = re.compile(rf"\s*(?:[{_WIDE}]|[^\s{_WIDE}]+)|\s+")
_KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)


class Beat(NamedTuple):
    """A piece of text, and the seconds to wait before it appears."""

    wait: float
    text: str


class KeyAction(Enum):
    """What a key asks for."""

    PAUSE = "pause"
    NEXT = "next"
    QUIT = "quit"


_KEY_ACTIONS = {
    b" ": KeyAction.PAUSE,
    b"\x1b[C": KeyAction.NEXT,
    b"\x1bOC": KeyAction.NEXT,
    b"\r": KeyAction.NEXT,
    b"\n": KeyAction.NEXT,
    b"q": KeyAction.QUIT,
    b"\x04": KeyAction.QUIT,
}
WaitForKey = Callable[[float], KeyAction | None]
"""Returns after this many seconds, or earlier with the action of a key."""


class Pace(NamedTuple):
    """How fast a session is played."""

    speed: float
    max_pause: float
    """Longest pause between two entries, in seconds before `speed` divides them."""


class Scene(NamedTuple):
    """An entry that is shown, and how."""

    step: DecodedLine
    beats: list[Beat]


def build_scenes(
    path: Iterable[DecodedLine], pace: Pace, conversation: Conversation | None = None
) -> Iterator[Scene]:
    """Yield how entries appear: prompts letter by letter, answers by words, all else at once.

    The first beat of each waits as long as the session did; entries that show nothing are left out.
    """
    conversation = conversation or Conversation()
    before: str | None = None
    last: Scene | None = None
    for step in path:
        beats = list(_split_beats(step.entry, conversation))
        if beats:
            if last is not None:
                yield last
            time, pause = step.entry.time, 0.0
            if before is not None:
                passed = max(parse_timestamp(time) - parse_timestamp(before), 0)
                pause = min(passed / 1_000_000, pace.max_pause)
            before = time
            beats[0] = beats[0]._replace(wait=pause)
            last = Scene(step, [Beat(beat.wait / pace.speed, beat.text) for beat in beats])
    if last is not None:
        end = conversation.end()
        text = "".join(f"{line}\n" for line in end)
        yield last._replace(beats=[*last.beats, *([Beat(0, text)] if end else [])])


def _split_beats(entry: Entry, conversation: Conversation) -> Iterator[Beat]:
    lines = [line for part in conversation.render_turn(entry) for line in part.split("\n")]
    if not lines:
        return
    if isinstance(entry.data, User | Assistant):
        heading, *body = lines
        yield Beat(0, f"{heading}\n")
        letters = isinstance(entry.data, User)
        wait = 1 / (LETTERS_PER_SECOND if letters else WORDS_PER_SECOND)
        for line in body:
            yield from (Beat(wait, piece) for piece in (line if letters else _WORD.findall(line)))
            yield Beat(0, "\n")
        return
    if len(lines) > PLAYED_LINES + 2:
        lines = [*lines[: PLAYED_LINES + 1], f"… {len(lines) - PLAYED_LINES - 2} more lines", ""]
    yield Beat(0, "\n".join(lines) + "\n")


def play_scenes(scenes: Iterable[Scene], wait: WaitForKey, show: Callable[[str], None]) -> None:
    """Show every beat at its time, until the end or until a key quits."""
    for scene in scenes:
        hurries = False
        for beat in scene.beats:
            act = wait(0 if hurries else beat.wait)
            if act is KeyAction.PAUSE:
                while (act := wait(float("inf"))) is None:
                    pass
            if act is KeyAction.QUIT:
                return
            hurries = hurries or act is KeyAction.NEXT
            show(beat.text)


@contextmanager
def read_keys() -> Iterator[WaitForKey]:
    """Yield a wait that a key ends early; the terminal passes single keys meanwhile.

    Without a terminal to type on, it only waits.
    """
    if not sys.stdin.isatty():
        yield lambda seconds: time.sleep(max(seconds, 0))
        return
    import termios  # only a terminal needs these
    import tty

    fd = sys.stdin.fileno()
    terminal_mode = termios.tcgetattr(fd)
    pressed: list[KeyAction] = []

    def wait(seconds: float) -> KeyAction | None:
        until = time.monotonic() + seconds
        while not pressed:
            left = until - time.monotonic()
            if left == float("inf"):
                ready, _, _ = select.select([fd], [], [])
            else:
                ready, _, _ = select.select([fd], [], [], max(left, 0))
            if not ready:
                return None
            typed = os.read(fd, 64)
            actions = [_KEY_ACTIONS[key] for key in _KEY.findall(typed) if key in _KEY_ACTIONS]
            pressed.extend(actions if typed else [KeyAction.QUIT])
        return pressed.pop(0)

    def again(_signal: int, _frame: FrameType | None) -> None:
        tty.setcbreak(fd)

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    handlers = {signal.SIGCONT: again, signal.SIGTERM: end, signal.SIGHUP: end}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        tty.setcbreak(fd)
        yield wait
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, terminal_mode)
        for number, handler in before.items():
            signal.signal(number, handler)


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
    result = fold_again(tape, head)
    if as_json:
        counts = (getattr(result, name) for name in result.__struct_fields__)
        print_json(ReplayCheck(tape.id, head.branch, head.entry, *counts))
    else:
        print_lines(format_replay_check(tape, head, result))
    return Damaged.exit_code if result.differences else 0


def format_replay_check(tape: Tape, head: Head, result: ReplayResult) -> Iterator[str]:
    """Yield a line for each difference, and a summary."""
    for difference in result.differences:
        yield to_single_line(
            f"difference: {difference.entry[:12] if difference.entry else '?'}: {difference.what}"
        )
    counts = [
        format_count(result.entries, "entry"),
        f"{format_count(result.anchors, 'anchor')} ({format_count(result.kept, 'kept range')})",
        format_count(result.repairs, "repair"),
        format_count(result.messages, "message"),
    ]
    if result.unanswered:
        counts.append(
            f"{format_count(result.unanswered, 'repair')} without an answer after it, not compared"
        )
    bad = len(result.differences)
    end = f"{format_count(bad, 'difference')}, see above" if bad else "replayed, no differences"
    at = f"{tape.id[:SHORT]}:{head.branch}@{head.entry[:SHORT]}"
    yield f"{at}: {', '.join(counts)}: {end}"


def encode_cues(tape: Tape, head: Head, pace: Pace) -> Iterator[bytes]:
    """Yield {at, entry} of each shown entry, as JSON."""
    now = 0.0
    for scene in build_scenes(read_path(tape, head), pace, _start_conversation(tape)):
        begins = now + scene.beats[0].wait
        yield b'{"at":%.3f,"entry":%b}' % (begins, scene.step.line)
        now += sum(beat.wait for beat in scene.beats)


def _start_conversation(tape: Tape) -> Conversation:
    return Conversation(RenderOptions(tape.load, paint_line))


def perform_session(tape: Tape, head: Head, pace: Pace) -> None:
    """Play a path on the terminal; into a pipe or a file, print it."""
    scenes = build_scenes(read_path(tape, head), pace, _start_conversation(tape))
    if not sys.stdout.isatty():
        print_lines("".join(beat.text for beat in scene.beats)[:-1] for scene in scenes)
        return
    with read_keys() as wait:
        if sys.stdin.isatty():
            write_text(style_text("space pause · → next · q quit", dim=True) + "\n")
        play_scenes(scenes, wait, write_text)


def write_text(text: str) -> None:
    """Write a piece of text and flush."""
    sys.stdout.write(text)
    sys.stdout.flush()
