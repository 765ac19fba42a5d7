#!/bin/bash
cat > table.py <<'PY'
"""Tables of texts for a terminal."""

from itertools import zip_longest
from unicodedata import category, east_asian_width


def measure(text):
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if category(char) in {"Mn", "Me", "Cf"} else 2 if east_asian_width(char) in "WF" else 1
        for char in text
    )


def show(text):
    """Return a text with its control characters replaced."""
    shown = text.replace("\n", "⏎").replace("\t", " ")
    return "".join("·" if category(char) == "Cc" else char for char in shown)


def cut(text, width):
    """Return a text as wide as may be."""
    if measure(text) <= width:
        return text
    end = 0
    while measure(text[: end + 1]) < width:
        end += 1
    return text[:end] + "…"


def draw_table(rows, max_width=None):
    """Return the rows as lines, with columns of the same width; wider cells are cut."""
    cells = [[show(cell) for cell in row] for row in rows]
    if max_width is not None:
        cells = [[cut(cell, max_width) for cell in row] for row in cells]
    widths = [max(map(measure, column)) for column in zip_longest(*cells, fillvalue="")]
    lines = (
        "  ".join(cell + " " * (width - measure(cell)) for cell, width in zip(row, widths))
        for row in cells
    )
    return "".join(f"{line.rstrip(' ')}\n" for line in lines)
PY
