"""Text → lines that fit a screen: model text, tool output, remarks; pure.

No line contains a control character, whatever its source.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tape.render import measure_width, shorten_to_width, show_controls

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULT_LINES = 5
QUEUE_ROWS = 3
INDENT = "  "
_ESCAPE_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_TOOL_NOTICE = re.compile(
    r"\n+\[[^\n]*?\b(?:lines (?P<first>\d+)-(?P<last>\d+) of (?P<all>\d+)|of line (?P<line>\d+)"
    r"|(?P<more>\d+) more (?:entries|lines)"
    r"|limit reached(?!, \d+ more ))\b[^\n]*\]"
    r"(?P<ending>(?:\n\n[^\n]+)?)\s*\Z"
)
"""A tool's notice of omitted output, after the output; an error text may follow it."""
_NOTICE_CHARS = 4_000
"""Number of characters at the end in which the notice is searched."""


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


def split_output(text: str) -> list[str]:
    """Return a tool's output as lines: escape sequences are removed, other controls shown."""
    return (
        escape_text(_ESCAPE_SEQUENCES.sub("", text).replace("\r\n", "\n")).strip("\n").split("\n")
    )


def format_seconds(duration: float) -> str:
    """Return a duration as text, such as "1 min 5 s"."""
    minutes, rest = divmod(int(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def format_count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number} {one if number == 1 else many or one + 's'}"


class _ResultOutput(NamedTuple):
    """The shown lines of a tool's output, and the number of omitted ones."""

    lines: list[str]
    before: int = 0
    after: int = 0
    whole: bool = True
    """Whether the numbers are exact; if not, more lines were omitted."""


def render_result(text: str, columns: int, *, is_error: bool) -> list[StyledLine]:
    """Return a result in a few lines, with the number of lines not shown.

    Shows the beginning; for a failure, and if the tool gave only the end, the end.
    """
    output = _parse_result_output(text)
    lines, at_end = output.lines, is_error or output.before > 0
    rest = max(len(lines) - RESULT_LINES, 0) + output.before + output.after
    kept = lines[-RESULT_LINES:] if at_end else lines[:RESULT_LINES]
    style = "error" if is_error else "result"
    result = [StyledLine(clip_line(INDENT + line, columns).rstrip(), style) for line in kept]
    if not rest and output.whole:
        return result
    words = (
        format_count(rest, "more line")
        if output.whole
        else f"at least {format_count(rest, 'more line')}"
    )
    more = StyledLine(f"{INDENT}… {words if rest else 'more'}", style)
    return [more, *result] if at_end else [*result, more]


def _parse_result_output(text: str) -> _ResultOutput:
    """Return the lines of a result without the tool's notice, whose numbers are counted."""
    notice = _TOOL_NOTICE.search(text, max(len(text) - _NOTICE_CHARS, 0))
    if notice is None:
        return _ResultOutput(split_output(text))
    lines = split_output(text[: notice.start()] + notice["ending"])
    if notice["more"]:
        return _ResultOutput(lines, after=int(notice["more"]))
    if notice["line"]:
        return _ResultOutput(lines, before=int(notice["line"]) - 1)
    if not notice["all"]:
        return _ResultOutput(lines, whole=False)
    first, last, count = (int(notice[name]) for name in ("first", "last", "all"))
    if last == count:
        return _ResultOutput(lines, before=first - 1)
    return _ResultOutput(lines, after=count - last)


def render_remark(text: str, style: str = "note") -> StyledLine:
    """Return a message of gong as one line; the terminal wraps it."""
    return StyledLine(" ".join(show_controls(text).split()), style)


def render_queue(words: tuple[str, ...], columns: int) -> list[StyledLine]:
    """Return the queued input as lines, at most a few."""
    shown = [
        StyledLine(shorten_to_width(f"queued: {text}", columns), "note")
        for text in words[:QUEUE_ROWS]
    ]
    rest = len(words) - QUEUE_ROWS
    return [*shown, StyledLine(f"… {rest} more queued", "note")] if rest > 0 else shown
