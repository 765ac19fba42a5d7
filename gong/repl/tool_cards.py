"""Calls of tools and their results → lines; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from .lines import INDENT, StyledLine, clip_line, escape_text, format_count

if TYPE_CHECKING:
    from tape.model.entries import ToolCall

RESULT_LINES = 5
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


def split_output(text: str) -> list[str]:
    """Return a tool's output as lines: escape sequences are removed, other controls shown."""
    return (
        escape_text(_ESCAPE_SEQUENCES.sub("", text).replace("\r\n", "\n")).strip("\n").split("\n")
    )


def describe_call(call: ToolCall) -> str:
    """Return a short text for a call: its command, path, or arguments."""
    if call.args_text is not None:
        return f"{call.name} {call.args_text}"
    arguments = msgspec.json.decode(call.args) if call.args else {}
    if call.name == "bash" and "command" in arguments:
        return f"$ {arguments['command']}"
    if "path" in arguments:
        return f"{call.name} {arguments['path']}"
    return f"{call.name} {bytes(call.args).decode() if arguments else ''}"


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
