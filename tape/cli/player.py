"""Playing a session on a terminal: the timing, and the keys that pause, skip and quit.

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

from ..clock import parse_timestamp
from ..entries import Assistant, User
from ..render import render_conversation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from ..line import Entry
    from .walk import DecodedLine

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


def build_scenes(path: Iterable[DecodedLine], pace: Pace) -> Iterator[Scene]:
    """Yield how entries appear: prompts letter by letter, answers by words, all else at once.

    The first beat of each waits as long as the session did; entries that show nothing are left out.
    """
    before: str | None = None
    for step in path:
        found = list(_split_beats(step.entry))
        if found:
            time, pause = step.entry.time, 0.0
            if before is not None:
                passed = max(parse_timestamp(time) - parse_timestamp(before), 0)
                pause = min(passed / 1_000_000, pace.max_pause)
            before = time
            found[0] = found[0]._replace(wait=pause)
            yield Scene(step, [Beat(beat.wait / pace.speed, beat.text) for beat in found])


def _split_beats(entry: Entry) -> Iterator[Beat]:
    lines = list(render_conversation((entry,)))
    if not lines:
        return
    if isinstance(entry.data, User | Assistant):
        heading, *body = lines
        yield Beat(0, f"{heading}\n")
        for line in body:
            yield from _split_typed(line, isinstance(entry.data, User))
        return
    if len(lines) > PLAYED_LINES + 2:
        lines = [*lines[: PLAYED_LINES + 1], f"… {len(lines) - PLAYED_LINES - 2} more lines", ""]
    yield Beat(0, "\n".join(lines) + "\n")


def _split_typed(line: str, letters: bool) -> Iterator[Beat]:
    pieces = list(line) if letters else _WORD.findall(line)
    for piece in pieces:
        yield Beat(1 / (LETTERS_PER_SECOND if letters else WORDS_PER_SECOND), piece)
    yield Beat(0, "\n")


def play_scenes(shown: Iterable[Scene], wait: WaitForKey, show: Callable[[str], None]) -> None:
    """Show every beat at its time, until the end or until a key quits."""
    for scene in shown:
        hurries = False
        for beat in scene.beats:
            act = wait(0 if hurries else beat.wait)
            if act is KeyAction.PAUSE:
                act = _wait_paused(wait)
            if act is KeyAction.QUIT:
                return
            hurries = hurries or act is KeyAction.NEXT
            show(beat.text)


def _wait_paused(wait: WaitForKey) -> KeyAction | None:
    """Wait until a key ends the pause, and return its action."""
    while (act := wait(float("inf"))) is None:
        pass
    return None if act is KeyAction.PAUSE else act


@contextmanager
def read_keys() -> Iterator[WaitForKey]:
    """Yield a wait that a key ends early; the terminal passes single keys meanwhile.

    Without a terminal to type on, it only waits.
    """
    if not sys.stdin.isatty():
        yield _sleep_seconds
        return
    import termios  # noqa: PLC0415 (only a terminal needs these)
    import tty  # noqa: PLC0415

    fd = sys.stdin.fileno()
    kept = termios.tcgetattr(fd)
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
            found = [_KEY_ACTIONS[key] for key in _KEY.findall(typed) if key in _KEY_ACTIONS]
            pressed.extend(found if typed else [KeyAction.QUIT])
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
        termios.tcsetattr(fd, termios.TCSADRAIN, kept)
        for number, handler in before.items():
            signal.signal(number, handler)


def _sleep_seconds(seconds: float) -> KeyAction | None:
    if seconds > 0:
        time.sleep(seconds)
    return None
