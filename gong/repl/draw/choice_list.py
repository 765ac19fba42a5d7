"""Answers to choose from: a list with a cursor, in which each answer has a number; pure.

      1  yes, once (y)
    ▶ 3  always in this project · 5 everywhere      "5" stands beside "3", in its row
      4  no (n)

Arrows walk over all answers; those beside others are reached like those below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .lines import StyledLine, StyledPart, escape_text, join_parts, wrap_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

_CURSOR = "▶ "
_NUMBER_COLUMNS = 5
"""Where the words of an answer begin: behind the cursor and its number."""
_BOXES = {True: "☑ ", False: "☐ "}


class Choice(NamedTuple):
    """An answer."""

    value: str
    """What it means to whoever asks."""
    label: str
    key: str
    """Its number, a digit; empty for one that only the cursor reaches."""
    letter: str = ""
    """A letter that chooses it, too."""
    meaning: str = ""
    """What choosing it means, behind the label."""
    is_beside: bool = False
    """Whether it stands in the row of the one before."""


@dataclass(slots=True)
class ChoiceList:
    """Answers, the one under the cursor, and of several that may be chosen the chosen ones."""

    choices: Sequence[Choice]
    is_many: bool = False
    """Whether several may be chosen."""
    cursor: int = 0
    chosen: list[str] = field(default_factory=list)
    """Values that are chosen, of several, in the order of choosing."""

    @property
    def current(self) -> Choice:
        """The answer under the cursor."""
        return self.choices[self.cursor]

    def move(self, by: int) -> None:
        """Move the cursor; behind the last answer comes the first."""
        self.cursor = (self.cursor + by) % len(self.choices)

    def move_to(self, value: str) -> None:
        """Put the cursor on an answer."""
        self.cursor = next(n for n, choice in enumerate(self.choices) if choice.value == value)

    def find(self, key: str) -> Choice | None:
        """Return the answer that a digit or letter chooses."""
        return next((item for item in self.choices if key and key in {item.key, item.letter}), None)

    def switch(self, value: str) -> None:
        """Choose an answer of several, or leave it out again."""
        if value in self.chosen:
            self.chosen.remove(value)
        else:
            self.chosen.append(value)

    def render(self, columns: int) -> list[StyledLine]:
        """Return the answers as rows of at most `columns`, words not broken."""
        rows: list[list[int]] = []
        for place, choice in enumerate(self.choices):
            if choice.is_beside and rows:
                rows[-1].append(place)
            else:
                rows.append([place])
        return [line for row in rows for line in self._render_row(row, columns)]

    def _render_row(self, places: Sequence[int], columns: int) -> list[StyledLine]:
        first, *beside = places
        mark = _CURSOR if self.cursor == first else " " * len(_CURSOR)
        number = self.choices[first].key.ljust(_NUMBER_COLUMNS - len(_CURSOR))
        parts = self._render_choice(first)
        for place in beside:
            gap = f" {_CURSOR}" if self.cursor == place else " · "
            parts += [StyledPart(f"{gap}{self.choices[place].key} "), *self._render_choice(place)]
        style = "you" if self.cursor == first else ""
        rows = wrap_parts(
            parts,
            columns,
            first=[StyledPart(mark + number, style)],
            rest=[StyledPart(" " * _NUMBER_COLUMNS)],
        )
        return [join_parts(row) for row in rows]

    def _render_choice(self, place: int) -> list[StyledPart]:
        choice = self.choices[place]
        box = _BOXES[choice.value in self.chosen] if self.is_many and choice.key else ""
        label = escape_text(f"{box}{choice.label}").replace("\n", " ")
        style = "you" if self.cursor == place else ""
        more = f" – {choice.meaning}" if choice.meaning else ""
        more += f" ({choice.letter})" if choice.letter else ""
        return [
            StyledPart(label, style),
            *([StyledPart(escape_text(more).replace("\n", " "), "faint")] if more else []),
        ]
