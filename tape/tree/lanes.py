"""Lanes: the lines that a tree is drawn with, as `git log --graph` draws them; pure.

A lane waits for the stretch it leads to. Two that wait for the same one become one at once.
"""

from __future__ import annotations

from typing import NamedTuple

CellRow = list["Cell"]


class GraphCell(NamedTuple):
    """One column of a drawing: its character, and the number of the lane it belongs to."""

    char: str
    lane: int


BLANK_CELL = GraphCell(" ", -1)


class _Lane(NamedTuple):
    waits_for: int
    number: int


class GraphLanes:
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

    def draw_row(self, column: int, mark: str) -> CellRow:
        """Return the row of one entry: `mark` in its column, a line in every other."""
        row = self._draw_lines(len(self._open))
        row[2 * column] = GraphCell(mark, self._open[column].number)
        return row

    def end(self, column: int, parent: int | None) -> list[CellRow]:
        """End the stretch in a column, going on to its parent; return the rows this takes."""
        if parent is None:
            return self._drop_lane(column)
        twin = next((at for at, lane in enumerate(self._open) if lane.waits_for == parent), None)
        self._open[column] = self._open[column]._replace(waits_for=parent)
        return [] if twin is None else self._join_lanes(min(twin, column), max(twin, column))

    def _drop_lane(self, column: int) -> list[CellRow]:
        if column == len(self._open) - 1:
            del self._open[column]
            return []
        row = self._draw_lines(column)
        row += self._draw_left_shift(column)
        del self._open[column]
        return [row]

    def _join_lanes(self, left: int, right: int) -> list[CellRow]:
        """Lead the lane `right` into the lane `left`; those beyond move one column to the left."""
        lane = self._open[right].number
        first = self._draw_lines(right)
        for column in range(left + 1, right - 1):
            first[2 * column + 1] = GraphCell("_", lane)
        first[2 * right - 1] = GraphCell("/", lane)
        first += self._draw_left_shift(right)
        del self._open[right]
        if right == left + 1:
            return [first]
        second = self._draw_lines(len(self._open))
        second[2 * left + 1] = GraphCell("/", lane)
        return [first, second]

    def _draw_lines(self, count: int) -> CellRow:
        """Return the lines of the leftmost lanes, each with the blank behind it."""
        return [
            cell
            for lane in self._open[:count]
            for cell in (GraphCell("|", lane.number), BLANK_CELL)
        ]

    def _draw_left_shift(self, column: int) -> CellRow:
        """Return the cells in which the lanes right of a column move over by one."""
        beyond = self._open[column + 1 :]
        return [cell for lane in beyond for cell in (BLANK_CELL, GraphCell("/", lane.number))]
