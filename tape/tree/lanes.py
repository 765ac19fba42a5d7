"""Lanes: the lines that a tree is drawn with, as `git log --graph` draws them; pure.

A lane waits for the stretch it leads to. Two that wait for the same one become one at once.
"""

from __future__ import annotations

from typing import NamedTuple

Row = list["Cell"]


class Cell(NamedTuple):
    """One column of a drawing: its character, and the number of the lane it belongs to."""

    char: str
    lane: int


BLANK = Cell(" ", -1)


class _Lane(NamedTuple):
    waits_for: int
    number: int


class Lanes:
    """The open lanes, from left to right; fed with stretches, what grows from one before it."""

    def __init__(self) -> None:
        self._open: list[_Lane] = []
        self._count = 0

    def begin(self, stretch: int) -> int:
        """Return the column of a stretch: of the lane that waits for it, else a new one."""
        for column, lane in enumerate(self._open):
            if lane.waits_for == stretch:
                return column
        self._open.append(_Lane(stretch, self._count))
        self._count += 1
        return len(self._open) - 1

    def row(self, column: int, mark: str) -> Row:
        """Return the row of one entry: `mark` in its column, a line in every other."""
        row = self._lines(len(self._open))
        row[2 * column] = Cell(mark, self._open[column].number)
        return row

    def end(self, column: int, parent: int | None) -> list[Row]:
        """End the stretch in a column, going on to its parent; return the rows this takes."""
        if parent is None:
            return self._drop(column)
        twin = next((at for at, lane in enumerate(self._open) if lane.waits_for == parent), None)
        self._open[column] = self._open[column]._replace(waits_for=parent)
        return [] if twin is None else self._join(min(twin, column), max(twin, column))

    def _drop(self, column: int) -> list[Row]:
        if column == len(self._open) - 1:
            del self._open[column]
            return []
        row = self._lines(column)
        row += self._moved_left(column)
        del self._open[column]
        return [row]

    def _join(self, left: int, right: int) -> list[Row]:
        """Lead the lane `right` into the lane `left`; those beyond move one column to the left."""
        lane = self._open[right].number
        first = self._lines(right)
        for column in range(left + 1, right - 1):
            first[2 * column + 1] = Cell("_", lane)
        first[2 * right - 1] = Cell("/", lane)
        first += self._moved_left(right)
        del self._open[right]
        if right == left + 1:
            return [first]
        second = self._lines(len(self._open))
        second[2 * left + 1] = Cell("/", lane)
        return [first, second]

    def _lines(self, count: int) -> Row:
        """Return the lines of the leftmost lanes, each with the blank behind it."""
        return [cell for lane in self._open[:count] for cell in (Cell("|", lane.number), BLANK)]

    def _moved_left(self, column: int) -> Row:
        """Return the cells in which the lanes right of a column move over by one."""
        beyond = self._open[column + 1 :]
        return [cell for lane in beyond for cell in (BLANK, Cell("/", lane.number))]
