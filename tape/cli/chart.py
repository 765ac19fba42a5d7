"""Bars for a terminal: a number as a length, in eighths of a column; pure."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL = "█"


def draw_bar(value: float, most: float, columns: int) -> str:
    """Return a bar of `value` out of `most`, scaled to `columns`.

    A value above 0 shows at least an eighth of a column.
    """
    if value <= 0 or most <= 0:
        return ""
    eighths = max(round(8 * columns * min(value / most, 1.0)), 1)
    return (_FULL * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
