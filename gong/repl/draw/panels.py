"""What stands above the prompt: queued input, the todo list, an open question; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from tape.text import shorten_to_width

from .choice_list import Choice, ChoiceList
from .lines import INDENT, StyledLine, StyledPart, escape_text, join_parts, wrap_parts
from .own_cards import render_todo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...tools.dialogue import Todo

QUEUE_ROWS = 3


class QueuedLine(NamedTuple):
    """Input that waits."""

    kind: Literal["steering", "follow_up", "prompt"]
    """What becomes of it: it is put in after this step, after the run, or it is the next prompt."""
    text: str


_QUEUED_LOOK = {
    "steering": ("steering", "call"),
    "follow_up": ("follow-up", "note"),
    "prompt": ("next prompt", "note"),
}
"""Kind → how its line begins, and its style."""


def render_queue(waiting: Sequence[QueuedLine], columns: int) -> list[StyledLine]:
    """Return the queued input as lines, at most a few."""
    lines = []
    for kind, text in waiting[:QUEUE_ROWS]:
        label, style = _QUEUED_LOOK[kind]
        lines.append(StyledLine(shorten_to_width(f"{label}: {text}", columns), style))
    rest = len(waiting) - QUEUE_ROWS
    return [*lines, StyledLine(f"… {rest} more queued", "note")] if rest > 0 else lines


TODO_ROWS = 8
"""Rows of the todo list above the prompt."""


def render_todos(todos: Sequence[Todo], columns: int) -> list[StyledLine]:
    """Return a todo list as lines; nothing once all is done, and of a long one what is next."""
    first = next((n for n, todo in enumerate(todos) if todo.status != "completed"), None)
    if first is None:
        return []
    start = max(min(first, len(todos) - TODO_ROWS), 0)
    nearest = todos[start : start + TODO_ROWS]
    lines = [render_todo(msgspec.to_builtins(todo), columns) for todo in nearest]
    rest = len(todos) - len(lines)
    return [*lines, StyledLine(f"… {rest} more to do or done", "note")] if rest else lines


PLAN_CHOICES = ("approve", "keep planning")


def build_choices(question: OpenChoice) -> ChoiceList:
    """Return the answers to a question as a list, own words the last of them."""
    letters = question.letters.ljust(len(question.options))
    choices = [
        Choice(label, label, str(number), letter.strip(), meaning)
        for number, ((label, meaning), letter) in enumerate(
            zip(question.options, letters, strict=False), 1
        )
    ]
    words = "several with Space or their numbers, then Enter" if question.is_many else ""
    if choices:
        choices.append(Choice("", "or type your own words", "", meaning=words))
    return ChoiceList(tuple(choices), question.is_many)


def render_choices(
    question: OpenChoice, choices: ChoiceList, columns: int, place: tuple[int, int] = (1, 1)
) -> list[StyledLine]:
    """Return an open question with its answers; `place` is its number, and of how many."""
    number, count = place
    rows: list[StyledLine] = []
    for line in escape_text(question.text).split("\n"):
        mark = INDENT if rows else f"? ({number} of {count}) " if count > 1 else "? "
        row_parts = wrap_parts(
            [StyledPart(line)], columns, first=[StyledPart(mark)], rest=[StyledPart(INDENT)]
        )
        rows += [join_parts(row, "call") for row in row_parts]
    if not choices.choices:
        return [*rows, StyledLine(f"{INDENT}type your answer", "note")]
    return [*rows, *choices.render(columns)]


class OpenChoice(NamedTuple):
    """A question with what can be chosen."""

    text: str
    options: tuple[tuple[str, str], ...]
    """Label and meaning of each."""
    is_many: bool = False
    """Whether several may be chosen."""
    letters: str = ""
    """A letter for each option that has one."""

    def read_answer(self, line: str) -> tuple[str, ...]:
        """Return the labels of a line of numbers, or the label it is, else the line itself."""
        numbers = line.replace(",", " ").split()
        by_number = {str(place): label for place, (label, _) in enumerate(self.options, 1)}
        fits = all(number in by_number for number in numbers)
        if fits and (len(numbers) == 1 or (self.is_many and numbers)):
            return tuple(dict.fromkeys(by_number[number] for number in numbers))
        words = line.strip()
        labels = (label for label, _ in self.options if label.lower() == words.lower())
        return (next(labels, words),)
