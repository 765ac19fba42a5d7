"""Notice a model that goes in circles: the same calls or the same text again and again. Pure.

A pattern is a cycle of 1, 2 or 3 calls, alike in name, arguments and result, that fills the last
`window` calls: 10, 10, 9. It is counted for itself, and again after `window` further calls:

| a pattern is found | then |
|---|---|
| the first time, at 10 calls | the model is warned |
| the second time, at 20 | it is counted |
| the third time, at 30 | the run ends |

Calls whose results change get somewhere, such as those that wait for a server: they are no pattern.
How long a call took is no change.
Calls that wait for a task are not looked at. New input of a person makes a new guard. Text that
repeats inside one answer ends that answer: see `TextGuard`. (mission.md M018 and C14.)
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import ToolCall, ToolResult

WINDOW = 10
"""Calls that a cycle is looked for in."""
MAX_FINDINGS = 3
"""Findings of one pattern after which the run ends."""
_MAX_CYCLE = 3
_DURATION = r"\b[0-9]+(?:\.[0-9]+)? ?(?:ms|s|seconds?)\b"
_WAITING_TOOLS = {"bash_output", "taskoutput", "wait"}


class Repetition(NamedTuple):
    """A pattern that the newest calls follow."""

    message: str
    """The warning for the model."""
    is_new: bool
    """Whether the model has not been told of it yet."""
    is_last: bool
    """Whether the run ends with it."""


class _CallTrace(NamedTuple):
    """One call and its result, as digests."""

    call: str
    result: str


class _Pattern(NamedTuple):
    """A cycle that the newest calls follow."""

    length: int
    """Calls of its whole cycles."""
    calls: tuple[str, ...]
    """The calls of a cycle, sorted: A B A B and B A B A are one pattern, seen a call later."""


class RepetitionGuard:
    """Remembers the calls since the newest input of a person."""

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.clear()

    def clear(self) -> None:
        """Forget all calls: a person spoke."""
        self._traces: list[_CallTrace] = []
        self._count = 0
        """Calls since the start, also those that are forgotten."""
        self._findings: dict[tuple[str, ...], tuple[int, int]] = {}
        """Calls of a pattern → how often it was found, and how many calls there were then."""

    def record_calls(
        self, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> Repetition | None:
        """Add the calls of a turn with their results; return a pattern that is found with them."""
        for call, result in zip(calls, results, strict=True):
            if call.name.lower() in _WAITING_TOOLS:
                continue
            args = bytes(call.args) if call.args_text is None else call.args_text.encode()
            content = re.sub(_DURATION, "", repr(result.content)).encode("utf-8", "surrogatepass")
            self._traces.append(
                _CallTrace(
                    f"{call.name} {hashlib.sha256(args).hexdigest()}",
                    hashlib.sha256(content).hexdigest(),
                )
            )
            self._count += 1
        del self._traces[: -self.window]
        for pattern in _find_patterns(self._traces, self.window):
            findings, found_at = self._findings.get(pattern.calls, (0, 0))
            if findings and self._count - found_at < self.window:
                continue
            self._findings[pattern.calls] = findings + 1, self._count
            message = (
                f"Loop detected: the last {pattern.length} tool calls follow a repeating pattern."
                " Try a different approach."
            )
            return Repetition(message, not findings, findings + 1 >= MAX_FINDINGS)
        return None


REPEATED_TEXT = "Loop detected: the answer repeats the same text. It was ended there."
"""What is told of an answer that `TextGuard` ended."""
_MIN_COPIES = 6
_MIN_REPEATED = 3_000  # characters: shorter ones are rulers, tables and lists of zeros
_MAX_UNIT = 2_000
_MAX_TAIL = _MIN_COPIES * _MAX_UNIT
_STEP = 1_000
_PROBE = 48
_MAX_PROBES = 8


class TextGuard:
    """Notices one streamed answer whose newest text is the same piece over and over.

    | unit, in characters | copies that must end the text |
    |---|---|
    | 1 to 500 | as many as 3,000 characters hold |
    | 501 to 2,000 | 6 |

    It looks every 1,000 characters, at the 12,000 newest at most, and only where the last words
    stood before: the time is linear in the length of the answer.
    """

    def __init__(self) -> None:
        self._tail = ""
        self._new: list[str] = []
        self._length = 0
        """Characters of the new pieces."""
        self._block: int | None = None

    def add_piece(self, block: int, piece: str) -> bool:
        """Add text of a block, by its index; return whether the block repeats itself."""
        # Text and thinking of one answer often say the same: that is no repetition.
        if block != self._block:
            self._block, self._tail, self._new, self._length = block, "", [], 0
        self._new.append(piece)
        self._length += len(piece)
        if self._length < _STEP:
            return False
        self._tail = "".join((self._tail, *self._new))[-_MAX_TAIL:]
        self._new, self._length = [], 0
        text = self._tail
        if len(text) < _MIN_REPEATED:
            return False
        probe, place = text[-_PROBE:], len(text) - _PROBE
        for _ in range(_MAX_PROBES):
            place = text.rfind(probe, 0, place + _PROBE - 1)
            unit = len(text) - _PROBE - place
            length = max(_MIN_COPIES * unit, _MIN_REPEATED)
            if place < 0 or length > len(text):
                return False
            if text[-length + unit :] == text[-length:-unit]:
                return True
        return False


def _find_patterns(traces: Sequence[_CallTrace], window: int) -> list[_Pattern]:
    """Return every cycle that the newest calls follow, the shortest first."""
    patterns = []
    for cycle in range(1, _MAX_CYCLE + 1):
        length = window - window % cycle
        newest = traces[-length:]
        if length > cycle and _is_cycle(newest, cycle, length):
            calls = sorted(trace.call for trace in newest[:cycle])
            patterns.append(_Pattern(length, tuple(calls)))
    return patterns


def _is_cycle(items: Sequence[object], cycle: int, length: int) -> bool:
    """Return whether `length` items repeat a cycle that is not one item again and again."""
    if len(items) != length or (cycle > 1 and len({*items[:cycle]}) == 1):
        return False
    return all(items[place] == items[place - cycle] for place in range(cycle, length))
