"""What a person sees in a terminal: the screen, and the rows that have scrolled away above it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable

SCROLLBACK = 20_000


class Screen(pyte.HistoryScreen):
    """Answers questions of the program, as terminals do; reads again only rows that changed."""

    # pyte wraps each method, to leave a page of the scrollback: nobody looks at one here.
    __getattribute__ = object.__getattribute__

    def __init__(self, columns: int, rows: int, answer: Callable[[str], object]) -> None:
        self._answer = answer
        self._rows: dict[int, str] = {}
        self._above: list[str] = []
        self.bells = 0
        super().__init__(columns, rows, history=SCROLLBACK, ratio=0.5)

    def bell(self, *_: object) -> None:
        self.bells += 1

    def write_process_input(self, data: str) -> None:
        self._answer(data)

    def read_rows(self) -> list[str]:
        """Return the rows on the screen, without the spaces at their ends."""
        # A combining character changes the row above without a note, where it begins a row.
        for row in {max(0, one - at) for one in self.dirty for at in (0, 1)}:
            self._rows[row] = self._read_row(self.buffer[row])
        self.dirty.clear()
        return [self._rows[row] for row in range(self.lines)]

    def read_text(self) -> str:
        """Return the scrollback and the screen."""
        added = islice(self.history.top, len(self._above), None)
        self._above += [self._read_row(row) for row in added]
        return "\n".join([*self._above, *self.read_rows()])

    def _read_row(self, row: dict[int, pyte.screens.Char]) -> str:
        return "".join([row[column].data for column in range(self.columns)]).rstrip()
