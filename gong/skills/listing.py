"""What the system prompt says of skills: names and descriptions, within a budget; pure.

The budget is one percent of the context window, and a description has 1,536 characters at most.
Where they do not fit, the longest descriptions are cut first, all to the same length, so that every
skill keeps its name and as many words as there is room for:

    room 90, texts of 20, 40 and 100 characters  →  20, 35 and 35
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.text import shorten_to_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .skill import Skill

MAX_DESCRIPTION_CHARS = 1_536
_SHARE = 0.01
_CHARS_PER_TOKEN = 4
_UNKNOWN_WINDOW = 200_000
_MIN_CHARS = 24
"""A description that is cut further tells nothing."""
_HEADING = (
    "Skills are instructions for certain tasks. When one of them fits what you are asked to do,"
    " load it with `Skill` before you begin, and follow it:"
)


def list_for_model(skills: Sequence[Skill], window: int | None) -> str:
    """Return the lines about skills for a model with a context window in tokens; None: unknown."""
    offered = [skill for skill in skills if skill.is_active and skill.for_model]
    if not offered:
        return ""
    budget = int((window or _UNKNOWN_WINDOW) * _SHARE) * _CHARS_PER_TOKEN
    texts = [skill.summary[:MAX_DESCRIPTION_CHARS] for skill in offered]
    names = sum(len(f"- {skill.qualified_name}: \n") for skill in offered)
    width = choose_width([len(text) for text in texts], budget - len(_HEADING) - names)
    lines = [_HEADING]
    for place, (skill, text) in enumerate(zip(offered, texts, strict=True)):
        summary = shorten_to_width(text, width) if width >= min(_MIN_CHARS, len(text)) else ""
        line = f"- {skill.qualified_name}: {summary}" if summary else f"- {skill.qualified_name}"
        if sum(map(len, lines)) + len(lines) + len(line) > budget and place:
            lines.append(f"- and {len(offered) - place} more, by the name that the user gives")
            break
        lines.append(line)
    return "\n".join(lines)


def choose_width(lengths: Sequence[int], room: int) -> int:
    """Return to how many characters texts of these lengths are cut so that they fit together."""
    left, rest = max(room, 0), len(lengths)
    for length in sorted(lengths):
        if length * rest > left:
            return left // rest
        left, rest = left - length, rest - 1
    return max(lengths, default=0)
