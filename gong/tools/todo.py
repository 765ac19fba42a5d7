"""The todo list of a session: the model replaces the whole of it; screens and the tape have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .dialogue import Todo
from .tool import AgentTool, ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tool import ToolContext

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class TodoArguments(Struct, frozen=True):
    """The new list."""

    todos: Annotated[
        tuple[Todo, ...], Meta(max_length=100, description="The whole list; it replaces the old")
    ]


class TodoDetails(Struct, frozen=True):
    """The list, for people and programs."""

    todos: tuple[Todo, ...]


def render_todos(todos: Sequence[Todo]) -> str:
    """Return a list as lines, such as `[x] Read the code`."""
    return "\n".join(f"{_MARKS[todo.status]} {' '.join(todo.content.split())}" for todo in todos)


async def run_todo(arguments: TodoArguments, context: ToolContext) -> ToolOutcome:
    """Replace the todo list of the session."""
    if context.dialogue is None:
        return ToolOutcome.error("There is no session here that could keep a todo list.")
    todos = arguments.todos
    context.dialogue.record_todos(todos)
    if not todos:
        return ToolOutcome.from_text("The todo list is empty now.", TodoDetails(()))
    working = sum(todo.status == "in_progress" for todo in todos)
    advice = "\n\n(Keep only one of them in progress at a time.)" if working > 1 else ""
    return ToolOutcome.from_text(
        f"The todo list is now:\n{render_todos(todos)}{advice}", TodoDetails(todos)
    )


TODO_TOOL = AgentTool(
    name="todo",
    description=(
        "Keep a todo list for work of three or more steps; the user sees it. Give the whole list"
        " each time: it replaces the old one. Mark one step in_progress before you begin it, and"
        " completed as soon as it is done, not before. Do not use it for what takes one or two"
        " steps."
    ),
    arguments=TodoArguments,
    run=run_todo,
    replay="safe",
)
