"""The cut that model families expect of tools made for them: characters first, then lines (pure).

Characters go first because they bound everything: two lines may be ten megabytes each. Characters
are code points, and a cut never falls inside one.

Output limits of a tool variant: from the table of its family, or from the settings (pure).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .limits import ToolSettings


LimitMode = Literal["head_tail", "tail"]
"""What stays: both ends of a text, or its end."""


class OutputLimits(NamedTuple):
    """How long a result of one tool may be."""

    chars: int
    mode: LimitMode
    lines: int | None = None


FAMILY_LIMITS: Mapping[str, OutputLimits] = {
    "read_file": OutputLimits(50_000, "head_tail"),
    "shell": OutputLimits(30_000, "head_tail", 256),
    "grep": OutputLimits(20_000, "tail", 200),
    "glob": OutputLimits(20_000, "tail", 500),
    "edit_file": OutputLimits(10_000, "tail"),
    "apply_patch": OutputLimits(10_000, "tail"),
    "write_file": OutputLimits(1_000, "tail"),
    "spawn_agent": OutputLimits(20_000, "head_tail"),
}
"""Limits by the tool's name in model families; settings may put others in their place."""


def find_family_limits(
    tool_name: str, chars: Mapping[str, int] | None = None, lines: Mapping[str, int] | None = None
) -> OutputLimits | None:
    """Return the limits of a tool with what is set for it; None for one the table does not know."""
    limits = FAMILY_LIMITS.get(tool_name)
    if limits is None:
        return None
    return limits._replace(
        chars=(chars or {}).get(tool_name, limits.chars),
        lines=(lines or {}).get(tool_name, limits.lines),
    )


def limit_text(text: str, limits: OutputLimits) -> str:
    """Return the text cut by characters and then by lines, each cut said in its place."""
    return limit_joined_ends(text, text, len(text), text.count("\n") + 1, limits)


def limit_joined_ends(head: str, tail: str, chars: int, lines: int, limits: OutputLimits) -> str:
    """Return `limited` of a text of which only both ends are at hand, with its exact counts.

    Both ends have `limits.chars` characters at least, or are the whole text.
    """
    cut = _limit_characters(head, tail, chars, limits)
    return cut if limits.lines is None else _limit_lines(cut, lines, limits.lines)


def _limit_characters(head: str, tail: str, chars: int, limits: OutputLimits) -> str:
    if chars <= limits.chars:
        return tail
    removed = chars - limits.chars
    if limits.mode == "tail":
        return f"{_format_warning(f'First {removed} characters were removed.')}\n\n{_take_tail_end(tail, limits)}"
    first = head[: limits.chars // 2]
    middle = _format_warning(f"{removed} characters were removed from the middle.")
    return f"{first}\n\n{middle}\n\n{_take_tail_end(tail, limits)}"


def _take_tail_end(tail: str, limits: OutputLimits) -> str:
    count = limits.chars if limits.mode == "tail" else limits.chars - limits.chars // 2
    return tail[len(tail) - count :]


_WARNING = "[WARNING: Tool output was truncated. "


def _format_warning(what: str) -> str:
    return (
        f"{_WARNING}{what} The full output is available in the event stream."
        " If you need to see specific parts, re-run the tool with more targeted parameters.]"
    )


def _limit_lines(text: str, total: int, limit: int) -> str:
    """Keep half of the lines from each end.

    Where the cut takes the warning of the one before it with it, all that is left are whole lines
    of the text as it came, and the number says how many of its `total` are missing.
    """
    lines = text.split("\n")
    if min(len(lines), total) <= limit:  # a notice of the cut before it makes no line too many
        return text
    first, last = lines[: limit // 2], lines[len(lines) - (limit - limit // 2) :]
    shown = [*first, *last]
    warned = any(line.startswith(_WARNING) for line in shown)
    lost = any(line.startswith(_WARNING) for line in lines) and not warned
    omitted = (total if lost else len(lines)) - limit
    return "\n".join((*first, f"[... {omitted} lines omitted ...]", *last))


FAMILY_LIMIT_NAMES: Mapping[str, str] = {"grep_search": "grep", "replace": "edit_file"}
"""Name of a tool variant in the table of limits, if it differs."""


def choose_family_limits(name: str, tuning: ToolSettings) -> OutputLimits:
    """Return the limits of a tool variant; settings override the table."""
    limits = find_family_limits(
        FAMILY_LIMIT_NAMES.get(name, name), tuning.output_limits, tuning.line_limits
    )
    assert limits is not None
    return limits._replace(
        chars=tuning.output_limits.get(name, limits.chars),
        lines=tuning.line_limits.get(name, limits.lines),
    )
