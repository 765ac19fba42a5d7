"""Lines for a terminal: their style, their width, and text that is safe in them; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.text import measure_width, show_controls

if TYPE_CHECKING:
    from collections.abc import Iterator

INDENT = "  "


class StyledLine(NamedTuple):
    """One line without newline; `style` is you, thinking, call, result, note, error or empty."""

    text: str
    style: str = ""


def clip_line(text: str, columns: int) -> str:
    """Return a line cut to at most `columns`, spaces kept, with `…` if it was cut."""
    if measure_width(text) <= columns:
        return text
    return f"{next(_wrap_rows(text, max(columns - 1, 1)))}…"


def wrap_last_rows(text: str, columns: int, most: int) -> list[str]:
    """Return the last rows of a line on a screen of `columns`.

    A long beginning is dropped in big steps, so that the rows do not move while the line grows.
    """
    step = columns * most * 2
    start = max(len(text) - step, 0) // step * step
    return list(_wrap_rows(text[start:], columns))[-most:]


def _wrap_rows(text: str, columns: int) -> Iterator[str]:
    row, used = "", 0
    for char in text:
        wide = measure_width(char)
        if used + wide > columns:
            yield row
            row, used = "", 0
        row, used = row + char, used + wide
    yield row


def escape_text(text: str) -> str:
    """Return text that is safe to show on a screen."""
    return show_controls(text.removesuffix("\r")).expandtabs(4)


def format_seconds(duration: float) -> str:
    """Return a duration as text, such as "1 min 5 s"."""
    minutes, rest = divmod(int(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def format_count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def render_remark(text: str, style: str = "note") -> StyledLine:
    """Return a message of gong as one line; the terminal wraps it."""
    return StyledLine(" ".join(show_controls(text).split()), style)
