"""The cut that model families expect of tools made for them: characters first, then lines (pure).

Characters go first because they bound everything: two lines may be ten megabytes each. Characters
are code points, and a cut never falls inside one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["head_tail", "tail"]
"""What stays: both ends of a text, or its end."""


class Limits(NamedTuple):
    """How long a result of one tool may be."""

    chars: int
    mode: Mode
    lines: int | None = None


LIMITS: Mapping[str, Limits] = {
    "read_file": Limits(50_000, "head_tail"),
    "shell": Limits(30_000, "head_tail", 256),
    "grep": Limits(20_000, "tail", 200),
    "glob": Limits(20_000, "tail", 500),
    "edit_file": Limits(10_000, "tail"),
    "apply_patch": Limits(10_000, "tail"),
    "write_file": Limits(1_000, "tail"),
    "spawn_agent": Limits(20_000, "head_tail"),
}
"""Limits by the tool's name in model families; settings may put others in their place."""


def limits_of(
    tool_name: str, chars: Mapping[str, int] | None = None, lines: Mapping[str, int] | None = None
) -> Limits | None:
    """Return the limits of a tool with what is set for it; None for one the table does not know."""
    limits = LIMITS.get(tool_name)
    if limits is None:
        return None
    return limits._replace(
        chars=(chars or {}).get(tool_name, limits.chars),
        lines=(lines or {}).get(tool_name, limits.lines),
    )


def limited(text: str, limits: Limits) -> str:
    """Return the text cut by characters and then by lines, each cut said in its place."""
    return joined(text, text, len(text), text.count("\n") + 1, limits)


def joined(head: str, tail: str, chars: int, lines: int, limits: Limits) -> str:
    """Return `limited` of a text of which only both ends are at hand, with its exact counts.

    Both ends have `limits.chars` characters at least, or are the whole text.
    """
    cut = _by_characters(head, tail, chars, limits)
    return cut if limits.lines is None else _by_lines(cut, lines, limits.lines)


def _by_characters(head: str, tail: str, chars: int, limits: Limits) -> str:
    if chars <= limits.chars:
        return tail
    removed = chars - limits.chars
    if limits.mode == "tail":
        return f"{_warning(f'First {removed} characters were removed.')}\n\n{_end(tail, limits)}"
    first = head[: limits.chars // 2]
    middle = _warning(f"{removed} characters were removed from the middle.")
    return f"{first}\n\n{middle}\n\n{_end(tail, limits)}"


def _end(tail: str, limits: Limits) -> str:
    count = limits.chars if limits.mode == "tail" else limits.chars - limits.chars // 2
    return tail[len(tail) - count :]


_WARNING = "[WARNING: Tool output was truncated. "


def _warning(what: str) -> str:
    return (
        f"{_WARNING}{what} The full output is available in the event stream."
        " If you need to see specific parts, re-run the tool with more targeted parameters.]"
    )


def _by_lines(text: str, total: int, limit: int) -> str:
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
