"""A diff for people: removed and added lines with their numbers, and some context (pure).

A line reads sign, number, text: `- 12 old`, `+ 12 new`, `  13 same`; `...` stands for lines left
out. Numbers of removed lines are those of the old text, all others those of the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .text_files import FileReplacement

CONTEXT_LINES = 4
COMPARED_LINES = 4_000
"""Beyond it a span is compared change by change: comparing it whole costs its square."""
AGREEING_LINES = 3
"""As many lines the same in both end a change, in a long span."""
LOOKED_AHEAD = (16, 256, 4_096)
"""How far behind the start of a change its end is looked for, in lines, a little first."""
Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class LineDiff:
    """A change in lines."""

    lines: tuple[str, ...]
    first_changed_line: int
    """Number of the first line that is not as before, in the new text."""


@dataclass(frozen=True, slots=True)
class _DiffWindow:
    """The lines a change touches with some around them; `first` is the number of the first."""

    old: Sequence[bytes]
    new: Sequence[bytes]
    first: int

    @classmethod
    def from_change(cls, change: FileReplacement) -> _DiffWindow:
        # One line more than is shown: it becomes the "..." that says the file goes on there.
        around = CONTEXT_LINES + 1
        top = max(0, change.before.count(b"\n", 0, change.start) - around)
        sides = []
        for data, end in ((change.before, change.old_end), (change.after, change.new_end)):
            sides.append(BytesIO(data).readlines()[top : data.count(b"\n", 0, end) + 1 + around])
        old, new = sides
        return cls(old, new, top + 1)

    @property
    def opcodes(self) -> list[Opcode]:
        """What becomes of the lines, as difflib says it."""
        if len(self.old) + len(self.new) > COMPARED_LINES:
            return list(_compare_stepwise(self.old, self.new))
        return list(SequenceMatcher(None, self.old, self.new, autojunk=False).get_opcodes())


def build_diff(change: FileReplacement) -> LineDiff:
    """Return the lines that a replacement changed."""
    window = _DiffWindow.from_change(change)
    opcodes = window.opcodes
    width = len(str(window.first + max(len(window.old), len(window.new))))
    shown: list[str] = []

    def show(sign: str, lines: Sequence[bytes], start: int, end: int) -> None:
        for number, line in enumerate(lines[start:end], window.first + start):
            text = line.decode("utf-8", "replace")
            missing = "" if text.endswith("\n") else "\n\\ No newline at end of file"
            text = text.removesuffix("\n").removesuffix("\r")
            shown.append(f"{sign} {number:>{width}} {text}{missing}")

    for tag, old_start, old_end, start, end in opcodes:
        if tag != "equal":
            show("-", window.old, old_start, old_end)
            show("+", window.new, start, end)
            continue
        # What lies around or between changes: no more than the context of each.
        after = start if start == 0 else min(start + CONTEXT_LINES, end)
        before = end if end == len(window.new) else max(end - CONTEXT_LINES, after)
        show(" ", window.new, start, after)
        if after < before:
            shown.append(f"  {'':>{width}} ...")
        show(" ", window.new, before, end)
    first = next(start for tag, _, _, start, _ in opcodes if tag != "equal")
    return LineDiff(tuple(shown), window.first + first)


def _compare_stepwise(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[Opcode]:
    i = j = 0
    while True:
        same = count_equal_lines(old, new, i, j)
        if same:
            yield "equal", i, i + same, j, j + same
            i, j = i + same, j + same
        if i == len(old) and j == len(new):
            return
        old_end, new_end = _find_change_end(old, new, i, j)
        yield "replace", i, old_end, j, new_end
        i, j = old_end, new_end


def count_equal_lines(old: Sequence[bytes], new: Sequence[bytes], i: int, j: int) -> int:
    """Return how many lines from `i` and `j` on are the same in both."""
    most, same, step = min(len(old) - i, len(new) - j), 0, 1
    while same < most:
        step = min(step, most - same)
        if old[i + same : i + same + step] == new[j + same : j + same + step]:
            same, step = same + step, step * 2
        elif step == 1:
            break
        else:
            step = max(1, step // 4)
    return same


def _find_change_end(old: Sequence[bytes], new: Sequence[bytes], i: int, j: int) -> tuple[int, int]:
    """Return where lines agree again behind `i` and `j`; both ends where that is too far."""
    for ahead in LOOKED_AHEAD:
        places: dict[tuple[bytes, ...], int] = {}
        for place in range(j, min(j + ahead, len(new)) + 1):
            places.setdefault(tuple(new[place : place + AGREEING_LINES]), place)
        found = [
            (old_end, new_end)
            for old_end in range(i, min(i + ahead, len(old)) + 1)
            if (new_end := places.get(tuple(old[old_end : old_end + AGREEING_LINES]))) is not None
        ]
        if found:
            return min(found, key=sum)
    return len(old), len(new)
