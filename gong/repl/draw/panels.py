"""What stands above the prompt: queued input, the todo list, an open question; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from tape.text import shorten_to_width, show_controls

from .lines import StyledLine, escape_text, render_remark

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
    shown = []
    for kind, text in waiting[:QUEUE_ROWS]:
        label, style = _QUEUED_LOOK[kind]
        shown.append(StyledLine(shorten_to_width(f"{label}: {text}", columns), style))
    rest = len(waiting) - QUEUE_ROWS
    return [*shown, StyledLine(f"… {rest} more queued", "note")] if rest > 0 else shown


_TODO_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}
TODO_ROWS = 8
"""Rows of the todo list above the prompt."""


def render_todos(todos: Sequence[Todo], columns: int) -> list[StyledLine]:
    """Return a todo list as lines; nothing once all is done, and of a long one what is next."""
    first = next((n for n, todo in enumerate(todos) if todo.status != "completed"), None)
    if first is None:
        return []
    start = max(min(first, len(todos) - TODO_ROWS), 0)
    lines = []
    for todo in todos[start : start + TODO_ROWS]:
        is_now = todo.status == "in_progress"
        words = (todo.active_form if is_now else "") or todo.content
        text = shorten_to_width(f"{_TODO_MARKS[todo.status]} {show_controls(words)}", columns)
        lines.append(StyledLine(text, "call" if is_now else "note"))
    rest = len(todos) - len(lines)
    return [*lines, StyledLine(f"… {rest} more to do or done", "note")] if rest else lines


PLAN_CHOICES = ("approve", "keep planning")


def render_choices(choice: OpenChoice) -> list[StyledLine]:
    """Return an open question with its numbered answers."""
    first, *more = escape_text(choice.text).split("\n")
    rows = [StyledLine(f"? {first}", "call"), *(StyledLine(f"  {row}", "call") for row in more)]
    for number, (label, meaning) in enumerate(choice.options, 1):
        option = f"{number}  {label}{f' – {meaning}' if meaning else ''}"
        rows.append(StyledLine(f"  {render_remark(option).text}", "call"))
    how = "numbers, as in 1,3" if choice.is_many else "a number"
    return [*rows, StyledLine(f"  {f'{how}, or ' if choice.options else ''}your words", "note")]


class OpenChoice(NamedTuple):
    """A question with what can be chosen."""

    text: str
    options: tuple[tuple[str, str], ...]
    """Label and meaning of each."""
    is_many: bool = False
    """Whether several may be chosen."""

    def read_answer(self, line: str) -> tuple[str, ...]:
        """Return the labels of a line of numbers, else the line itself."""
        numbers = line.replace(",", " ").split()
        if numbers and all(number.isdecimal() for number in numbers):
            places = [int(number) - 1 for number in numbers]
            fits = all(0 <= place < len(self.options) for place in places)
            if fits and (self.is_many or len(places) == 1):
                return tuple(dict.fromkeys(self.options[place][0] for place in places))
        return (line.strip(),)
