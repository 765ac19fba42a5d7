"""Which skills the entries of a session have loaded, and their texts; pure.

A skill that a person uses is a `context` entry of origin `system`, one that the model uses is the
result of the tool `Skill`. Both hold the same text, so that nothing else has to be remembered: a
summary that covers it is followed by it again, and a session that is continued has it in view.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tape.model.entries import Context, Text, ToolResult, join_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tape.model.line import Entry

TOOL_NAME = "Skill"
MAX_REPEATED_CHARS = 15_000
"""Characters of one skill that stay after a summary: about 5,000 tokens."""
MAX_ALL_CHARS = 75_000
"""Characters of all of them."""
_WRAPPED = re.compile(r'\A<skill name="(?P<name>[^"\n]*)"')


class LoadedSkill(NamedTuple):
    """A skill that an entry has loaded."""

    name: str
    text: str


def wrap_text(name: str, path: str, text: str) -> str:
    """Return the text of a skill as the model gets it."""
    return f'<skill name="{name}" path="{path}">\n{text}\n</skill>'


def find_loaded_skills(entries: Iterable[Entry]) -> list[LoadedSkill]:
    """Return the skills that entries have loaded, each once, with its newest text; newest last."""
    by_name: dict[str, LoadedSkill] = {}
    for entry in entries:
        match entry.data:
            case Context(origin="system", content=content):
                text = join_texts(content)
            case ToolResult(name=name, is_error=False, content=content) if name == TOOL_NAME:
                text = join_texts(content)
            case _:
                continue
        if (begin := _WRAPPED.match(text)) is not None:
            by_name.pop(begin["name"], None)
            by_name[begin["name"]] = LoadedSkill(begin["name"], text)
    return [*by_name.values()]


def build_reminders(
    covered: Iterable[Entry], visible: Iterable[Entry], room: int = MAX_ALL_CHARS
) -> list[Context]:
    """Return the entries that repeat the skills which a summary covers, within `room` characters.

    The newest come first where not all fit; those that are still in view are not repeated.
    """
    there = {skill.name for skill in find_loaded_skills(visible)}
    reminders: list[Context] = []
    left = min(room, MAX_ALL_CHARS)
    for skill in reversed(find_loaded_skills(covered)):
        if skill.name in there:
            continue
        text = skill.text
        if len(text) > MAX_REPEATED_CHARS:
            text = f"{text[:MAX_REPEATED_CHARS]}\n[the rest was left out]\n</skill>"
        if len(text) > left:
            break
        left -= len(text)
        reminders.insert(0, Context("user", "system", (Text(text),)))
    return reminders
