"""Tables of texts for a terminal."""


def draw_table(rows):
    """Return the rows as lines, with columns of the same width."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        lines.append("  ".join(cells) + "\n")
    return "".join(lines)
