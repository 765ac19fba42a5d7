"""Where lines stand in a file: as they are first, then more and more kindly (pure).

Four passes over the whole range, each weaker than the one before; in a pass the earliest place
wins. A weaker pass never overrules a stronger one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.lookalikes import replace_lookalikes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def normalize_line(line: str) -> str:
    """Return a line without blanks at its ends, typographic characters made plain."""
    return replace_lookalikes(line.strip())


_PASSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", str),
    ("blanks at the ends of lines", str.rstrip),
    ("indentation", str.strip),
    ("indentation and typographic characters", normalize_line),
)
"""What each pass overlooks, and how it sees a line."""


class SeekMatch(NamedTuple):
    """A place where lines were found."""

    start: int
    overlooked: str
    """What differs and was overlooked; "" when nothing was."""


class SeekLines:
    """The lines of a file, without their ends, as each pass sees them."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.texts = lines
        self._seen: dict[str, list[str]] = {}

    @property
    def plain(self) -> list[str]:
        """The lines as the last pass sees them."""
        return self.view_lines(len(_PASSES) - 1)

    def view_lines(self, number: int) -> list[str]:
        """Return the lines as pass `number` sees them."""
        name, view = _PASSES[number]
        if name not in self._seen:
            self._seen[name] = [view(line) for line in self.texts]
        return self._seen[name]


def seek_lines(
    lines: SeekLines, pattern: Sequence[str], start: int, *, at_end: bool = False
) -> SeekMatch | None:
    """Return where `pattern` stands from line `start` on, 0 being the first; no lines are there.

    `at_end` tries the last lines of the file first.
    """
    last = len(lines.texts) - len(pattern)
    if not pattern:
        return SeekMatch(start, "")
    if at_end and last > start:
        found = _seek_in_passes(lines, pattern, last)
        if found:
            return found
    return _seek_in_passes(lines, pattern, start)


def _seek_in_passes(lines: SeekLines, pattern: Sequence[str], start: int) -> SeekMatch | None:
    for number, (overlooked, view) in enumerate(_PASSES):
        index = _index_lines(lines.view_lines(number), [view(line) for line in pattern], start)
        if index is not None:
            return SeekMatch(index, overlooked)
    return None


def _index_lines(lines: list[str], pattern: list[str], start: int) -> int | None:
    """Return where `pattern`, which is not empty, first stands from `start` on."""
    end = len(lines) - len(pattern) + 1
    while start < end:
        try:
            start = lines.index(pattern[0], start, end)
        except ValueError:
            return None
        if lines[start : start + len(pattern)] == pattern:
            return start
        start += 1
    return None
