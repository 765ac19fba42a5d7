"""Lines, warnings and tables: text output of a command.

Nothing slow is imported: the fast path of `tape ls` uses this.
"""

from __future__ import annotations

import os
import sys

from ..text import measure_width, to_single_line
from .streams import format_cell
from .terminal import erase_progress, strip_style

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        erase_progress()
        sys.stdout.write(f"{line}\n")


def print_warning(text: str, program: str = "tape") -> None:
    """Print a warning on standard error, in one line."""
    erase_progress()
    sys.stderr.write(f"{program}: {to_single_line(text)}\n")
    sys.stderr.flush()


def format_table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Return rows as aligned columns; those whose index is in `right` are right-aligned."""
    rows = [[format_cell(cell) for cell in row] for row in rows]
    widths = [max(map(_measure_cell, column)) for column in zip(*rows, strict=True)]
    sided = set(right)
    return [
        "  ".join(
            _align_cell(cell, wide, at in sided)
            for at, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _align_cell(cell: str, wide: int, right: bool) -> str:
    room = " " * (wide - _measure_cell(cell))
    return room + cell if right else cell + room


def _measure_cell(cell: str) -> int:
    """Return the width of a cell in columns, colours not counted."""
    return measure_width(strip_style(cell))


def silence_stdout() -> None:
    """Redirect closed streams to the null device, so that no error is raised at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
