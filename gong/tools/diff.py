"""A diff for people: removed and added lines with their numbers, and some context (pure).

A line reads sign, number, text: `- 12 old`, `+ 12 new`, `  13 same`; `...` marks lines left out
. Numbers of removed lines are those of the old text, all others those of the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from tape.files.git_patch import compare_lines, count_equal_lines

from .text_files import FileReplacement, is_binary

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTEXT_LINES = 4


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
        start = change.start
        for _ in range(around + 1):
            start = change.before.rfind(b"\n", 0, start)
            if start < 0:
                break
        start += 1
        sides = []
        for data, end in ((change.before, change.old_end), (change.after, change.new_end)):
            for _ in range(around + 1):
                end = data.find(b"\n", end) + 1 or len(data)  # noqa: PLW2901
            sides.append(BytesIO(data[start:end]).readlines())
        old, new = sides
        return cls(old, new, change.before.count(b"\n", 0, start) + 1)


def build_file_diff(before: bytes, after: bytes) -> LineDiff | None:
    """Return the lines in which two versions of a file differ; None where none do, or no text."""
    if before == after or is_binary(before + after):
        return None
    # The lines that differ, from the first to the last, as one span.
    old, new = before.split(b"\n"), after.split(b"\n")
    top = count_equal_lines(old, new, 0, 0)
    bottom = count_equal_lines(old[top:][::-1], new[top:][::-1], 0, 0)
    start = min(_count_line_bytes(old[:top]), len(before), len(after))
    below = _count_line_bytes(old[len(old) - bottom :])
    ends = (max(start, len(data) - below) for data in (before, after))
    return build_diff(FileReplacement(before, after, start, *ends))


def _count_line_bytes(lines: Sequence[bytes]) -> int:
    return sum(map(len, lines)) + len(lines)


def build_diff(change: FileReplacement) -> LineDiff:
    """Return the lines that a replacement changed."""
    window = _DiffWindow.from_change(change)
    opcodes = compare_lines(window.old, window.new)
    width = len(str(window.first + max(len(window.old), len(window.new))))
    rows: list[str] = []

    def show(sign: str, lines: Sequence[bytes], start: int, end: int) -> None:
        for number, line in enumerate(lines[start:end], window.first + start):
            text = line.decode("utf-8", "replace")
            missing = "" if text.endswith("\n") else "\n\\ No newline at end of file"
            text = text.removesuffix("\n").removesuffix("\r")
            rows.append(f"{sign} {number:>{width}} {text}{missing}")

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
            rows.append(f"  {'':>{width}} ...")
        show(" ", window.new, before, end)
    first = next(start for tag, _, _, start, _ in opcodes if tag != "equal")
    return LineDiff(tuple(rows), window.first + first)
