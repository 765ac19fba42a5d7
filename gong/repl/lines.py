"""Text → lines that fit a screen: model text, tool output, remarks; pure.

No line contains a control character, whatever its source.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tape.render import fitted, visible, width

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULT_LINES = 5
QUEUE_ROWS = 3
INDENT = "  "
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_NOTICE = re.compile(
    r"\n+\[[^\n]*?\b(?:lines (?P<first>\d+)-(?P<last>\d+) of (?P<all>\d+)|of line (?P<line>\d+)"
    r"|(?P<more>\d+) more (?:entries|lines)"
    r"|limit reached(?!, \d+ more ))\b[^\n]*\]"
    r"(?P<ending>(?:\n\n[^\n]+)?)\s*\Z"
)
"""A tool's notice of omitted output, after the output; an error text may follow it."""
_NOTICE_CHARS = 4_000
"""Number of characters at the end in which the notice is searched."""


class Line(NamedTuple):
    """One line without newline; `style` is you, thinking, call, result, note, error or empty."""

    text: str
    style: str = ""


def clipped(text: str, columns: int) -> str:
    """Return a line cut to at most `columns`, spaces kept, with `…` if it was cut."""
    if width(text) <= columns:
        return text
    return f"{next(_folded(text, max(columns - 1, 1)))}…"


def last_rows(text: str, columns: int, most: int) -> list[str]:
    """Return the last rows of a line on a screen of `columns`.

    A long beginning is dropped in big steps, so that the rows do not move while the line grows.
    """
    step = columns * most * 2
    start = max(len(text) - step, 0) // step * step
    return list(_folded(text[start:], columns))[-most:]


def _folded(text: str, columns: int) -> Iterator[str]:
    row, used = "", 0
    for char in text:
        wide = width(char)
        if used + wide > columns:
            yield row
            row, used = "", 0
        row, used = row + char, used + wide
    yield row


def shown(text: str) -> str:
    """Return text that is safe to show on a screen."""
    return visible(text.removesuffix("\r")).expandtabs(4)


def output_lines(text: str) -> list[str]:
    """Return a tool's output as lines: escape sequences are removed, other controls shown."""
    return shown(_SEQUENCES.sub("", text).replace("\r\n", "\n")).strip("\n").split("\n")


def seconds(duration: float) -> str:
    """Return a duration as text, such as "1 min 5 s"."""
    minutes, rest = divmod(int(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun in singular or plural."""
    return f"{number} {one if number == 1 else many or one + 's'}"


class _Output(NamedTuple):
    """The shown lines of a tool's output, and the number of omitted ones."""

    lines: list[str]
    before: int = 0
    after: int = 0
    whole: bool = True
    """Whether the numbers are exact; if not, more lines were omitted."""


def result_lines(text: str, columns: int, *, is_error: bool) -> list[Line]:
    """Return a result in a few lines, with the number of lines not shown.

    Shows the beginning; for a failure, and if the tool gave only the end, the end.
    """
    output = _output(text)
    lines, at_end = output.lines, is_error or output.before > 0
    rest = max(len(lines) - RESULT_LINES, 0) + output.before + output.after
    kept = lines[-RESULT_LINES:] if at_end else lines[:RESULT_LINES]
    style = "error" if is_error else "result"
    result = [Line(clipped(INDENT + line, columns).rstrip(), style) for line in kept]
    if not rest and output.whole:
        return result
    words = counted(rest, "more line") if output.whole else f"at least {counted(rest, 'more line')}"
    more = Line(f"{INDENT}… {words if rest else 'more'}", style)
    return [more, *result] if at_end else [*result, more]


def _output(text: str) -> _Output:
    """Return the lines of a result without the tool's notice, whose numbers are counted."""
    notice = _NOTICE.search(text, max(len(text) - _NOTICE_CHARS, 0))
    if notice is None:
        return _Output(output_lines(text))
    lines = output_lines(text[: notice.start()] + notice["ending"])
    if notice["more"]:
        return _Output(lines, after=int(notice["more"]))
    if notice["line"]:
        return _Output(lines, before=int(notice["line"]) - 1)
    if not notice["all"]:
        return _Output(lines, whole=False)
    first, last, count = (int(notice[name]) for name in ("first", "last", "all"))
    if last == count:
        return _Output(lines, before=first - 1)
    return _Output(lines, after=count - last)


def remark(text: str, style: str = "note") -> Line:
    """Return a message of gong as one line; the terminal wraps it."""
    return Line(" ".join(visible(text).split()), style)


def queued_lines(words: tuple[str, ...], columns: int) -> list[Line]:
    """Return the queued input as lines, at most a few."""
    shown = [Line(fitted(f"queued: {text}", columns), "note") for text in words[:QUEUE_ROWS]]
    rest = len(words) - QUEUE_ROWS
    return [*shown, Line(f"… {rest} more queued", "note")] if rest > 0 else shown
