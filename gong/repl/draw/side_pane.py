"""What stands beside the transcript in full screen: todo list, tasks, changed files, and usage."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from tape.model.entries import ToolResult
from tape.text import shorten_to_width

from .lines import StyledLine
from .panels import render_todos

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...agent.session import Session
    from ...tools.dialogue import Todo

_MAX_FILES = 12


def render_side_pane(
    session: Session, usage: Sequence[str], todos: Sequence[Todo], columns: int
) -> list[StyledLine]:
    """Return the lines of the pane; a part that has nothing to say is left out.

    `usage` says how much of the context window is used, and what the session has cost. Alone it is
    no reason for a pane: the status line says the same.
    """
    folder = session.setup.env.working_directory
    tasks = [
        f"{command.shell_id}  {command.command}" for command in session.run_state.background.running
    ]
    files = [
        f"{letter} {posixpath.relpath(path, folder)}"
        for path, letter in list_changed_files(session)[-_MAX_FILES:]
    ]
    work = (
        ("Todo", render_todos(todos, columns)),
        ("Tasks", [StyledLine(text) for text in tasks]),
        ("Files", [StyledLine(text) for text in files]),
    )
    if not any(part for _, part in work):
        return []
    parts = (*work, ("Session", [StyledLine(text) for text in (folder, *usage)]))
    lines: list[StyledLine] = []
    for name, part in parts:
        if part:
            lines += [StyledLine("")] * bool(lines) + [StyledLine(name, "heading")]
            lines += [line._replace(text=shorten_to_width(line.text, columns)) for line in part]
    return lines


_LETTERS = {"created": "A", "deleted": "D", "renamed": "R"}


def list_changed_files(session: Session) -> list[tuple[str, str]]:
    """Return path and letter of each file that calls in view changed, the newest change last."""
    changed: dict[str, str] = {}
    for entry in session.recorder.path if session.recorder else ():
        if isinstance(entry.data, ToolResult):
            for file in entry.data.files:
                path = posixpath.join(session.setup.env.working_directory, file.path)
                changed.pop(path, None)
                changed[path] = _LETTERS.get(file.op, "M")
    return list(changed.items())
