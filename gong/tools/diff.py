"""A change as people read it: removed and added lines with their numbers, and some around (pure).

A line reads sign, number, text: `- 12 old`, `+ 12 new`, `  13 same`; `...` stands for lines left
out. Numbers of removed lines are those of the old text, all others those of the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .match import Replacement

CONTEXT_LINES = 4
COMPARED_LINES = 4_000
"""Beyond it a span is shown as all removed and all added: comparing costs its square."""
Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Diff:
    """A change in lines."""

    lines: tuple[str, ...]
    first_changed_line: int
    """Number of the first line that is not as before, in the new text."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The lines a change touches with some around them; `first` is the number of the first."""

    old: Sequence[bytes]
    new: Sequence[bytes]
    first: int


def diff_of(change: Replacement) -> Diff:
    """Return the lines that a replacement changed."""
    window = _window(change)
    opcodes = _opcodes(window)
    width = len(str(window.first + max(len(window.old), len(window.new))))
    lines = tuple(
        f"{sign} {number:>{width}} {text}" if number else f"  {'':>{width}} ..."
        for sign, number, text in _numbered(window, opcodes)
    )
    first = next(start for tag, _, _, start, _ in opcodes if tag != "equal")
    return Diff(lines, window.first + first)


def _window(change: Replacement) -> _Window:
    first = change.before.count(b"\n", 0, change.start)
    # One line more than is shown: it becomes the "..." that says the file goes on there.
    around = CONTEXT_LINES + 1
    top = max(0, first - around)
    old_bottom = change.before.count(b"\n", 0, change.old_end) + 1 + around
    new_bottom = change.after.count(b"\n", 0, change.new_end) + 1 + around
    old, new = _lines(change.before)[top:old_bottom], _lines(change.after)[top:new_bottom]
    return _Window(old, new, top + 1)


def _lines(data: bytes) -> list[bytes]:
    """Return the lines with their ends."""
    *whole, last = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _opcodes(window: _Window) -> list[Opcode]:
    if len(window.old) + len(window.new) > COMPARED_LINES:
        return _ends_compared(window.old, window.new)
    return list(SequenceMatcher(None, window.old, window.new, autojunk=False).get_opcodes())


def _ends_compared(old: Sequence[bytes], new: Sequence[bytes]) -> list[Opcode]:
    top = _alike(old, new)
    bottom = _alike(reversed(old[top:]), reversed(new[top:]))
    old_end, new_end = len(old) - bottom, len(new) - bottom
    return [
        ("equal", 0, top, 0, top),
        ("replace", top, old_end, top, new_end),
        ("equal", old_end, len(old), new_end, len(new)),
    ]


def _alike(one: Iterable[bytes], other: Iterable[bytes]) -> int:
    """Return how many lines at the start are the same in both."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _numbered(window: _Window, opcodes: Sequence[Opcode]) -> Iterator[tuple[str, int, str]]:
    """Yield sign, number and text of each line; number 0 for lines left out."""
    for tag, old_start, old_end, new_start, new_end in opcodes:
        if tag == "equal":
            edges = (new_start == 0, new_end == len(window.new))
            yield from _unchanged(window, new_start, new_end, edges)
            continue
        for place in range(old_start, old_end):
            yield "-", window.first + place, _text(window.old[place])
        for place in range(new_start, new_end):
            yield "+", window.first + place, _text(window.new[place])


def _unchanged(
    window: _Window, start: int, end: int, edges: tuple[bool, bool]
) -> Iterator[tuple[str, int, str]]:
    """Yield what lies around or between changes, no more than the context of each."""
    at_top, at_bottom = edges
    after = start if at_top else min(start + CONTEXT_LINES, end)
    before = end if at_bottom else max(end - CONTEXT_LINES, after)
    for place in range(start, after):
        yield " ", window.first + place, _text(window.new[place])
    if after < before:
        yield "", 0, ""
    for place in range(before, end):
        yield " ", window.first + place, _text(window.new[place])


def _text(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    end = "" if text.endswith("\n") else "\n\\ No newline at end of file"
    return text.removesuffix("\n").removesuffix("\r") + end
