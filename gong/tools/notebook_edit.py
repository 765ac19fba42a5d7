"""notebook_edit: one cell of a Jupyter notebook replaced, inserted or deleted.

The rest of the file stays byte for byte; the outputs of a cell whose source changes go.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from ..env.protocol import FileUpdate
from .diff import build_file_diff
from .edit import find_edit_target, find_write_target
from .known_files import hash_bytes
from .limits import encode_text
from .notebooks import CannotEdit, CellEdit, CellType, EditMode, NotebookChange, edit_notebook
from .paths import build_path_error, explain_oversize, hold_locks
from .tool import AgentTool, ToolOutcome

if TYPE_CHECKING:
    from .edit import WriteTarget
    from .tool import ToolContext


class NotebookEditArguments(Struct, frozen=True):
    """Which cell, and what becomes of it."""

    notebook_path: Annotated[str, Meta(description="Path of the .ipynb file")]
    new_source: Annotated[str, Meta(description="The whole new source of the cell")] = ""
    cell_id: Annotated[
        str,
        Meta(
            description="Id of the cell, or its number if it has no id; to insert: the cell before"
            " the new one, none for the top"
        ),
    ] = ""
    cell_type: Annotated[
        CellType | None, Meta(description="Of a new cell, code if absent; else to change it")
    ] = None
    edit_mode: Annotated[EditMode, Meta(description="What is done")] = "replace"


class NotebookEditDetails(Struct, frozen=True):
    """What changed, for people."""

    path: str
    cell_id: str
    edit_mode: EditMode
    old_text: str
    new_text: str
    diff_lines: tuple[str, ...]
    """The lines of the cell that changed."""
    diff: str


async def run_notebook_edit(
    arguments: NotebookEditArguments, context: ToolContext, *, is_tried: bool = False
) -> ToolOutcome:
    """Change the cell, or change nothing and return the error; tried, it changes nothing."""
    path = arguments.notebook_path
    if not arguments.cell_id and arguments.edit_mode != "insert":
        return ToolOutcome.error(
            f"Cannot edit {path}: name the cell, cell_id is empty.", kind="ValidationError"
        )
    try:
        place = await find_write_target(context.env, path)
        if isinstance(place, str):
            return ToolOutcome.error(place, kind="PermissionDenied")
        async with hold_locks((place.real,)):
            change = await _change_cell(arguments, context, place, is_tried=is_tried)
    except (OSError, ValueError) as error:
        return build_path_error(error, path, "File not found")
    if isinstance(change, ToolOutcome):
        return change
    old, new = change.old_source, change.new_source
    diff = build_file_diff(*(encode_text(f"{text}\n" if text else "") for text in (old, new)))
    lines = () if diff is None else diff.lines
    details = NotebookEditDetails(
        *(path, change.cell, arguments.edit_mode, old, new, lines, "\n".join(lines))
    )
    verb = {"replace": "replaced", "insert": "inserted", "delete": "deleted"}[arguments.edit_mode]
    return ToolOutcome.from_text(f"Successfully {verb} cell {change.cell} of {path}.", details)


async def _change_cell(
    arguments: NotebookEditArguments, context: ToolContext, place: WriteTarget, *, is_tried: bool
) -> NotebookChange | ToolOutcome:
    path, env, files = arguments.notebook_path, context.env, context.files
    if why := await explain_oversize(env, place.real, place.root):
        return ToolOutcome.error(f"Cannot edit {path}: {why}.", kind="EditConflict")
    data = await env.read_file(place.real, place.root)
    digest = await asyncio.to_thread(hash_bytes, data) if files else None
    if files and (unknown := files.describe_refusal(place.real, digest, path)):
        return ToolOutcome.error(unknown, kind="EditConflict")
    edit = CellEdit(
        *(arguments.edit_mode, arguments.cell_id, arguments.new_source, arguments.cell_type),
        new_id=secrets.token_hex(4),
    )
    try:
        change = await asyncio.to_thread(edit_notebook, data, edit)
    except CannotEdit as error:
        return ToolOutcome.error(f"Cannot edit {path}: {error}.", kind="EditConflict")
    if is_tried:
        return change
    update = FileUpdate(place.real, data, change.data)
    if place.root is None:
        await env.write_file(place.real, change.data)
    elif refused := await env.change_files((update,), place.root):
        raise refused.error
    if files:
        files.note_changes((update,))
    return change


async def preview_notebook_edit(
    arguments: NotebookEditArguments, context: ToolContext
) -> ToolOutcome:
    """Return what a change would be, or why it cannot be made."""
    return await run_notebook_edit(arguments, context, is_tried=True)


def build_notebook_edit_tool(name: str = "notebook_edit") -> AgentTool:
    """Return the tool under the name that a model family knows."""
    return AgentTool(
        name=name,
        description=(
            "Change one cell of a Jupyter notebook: replace its source, insert a cell after it, or"
            " delete it. Read the notebook first: it shows the ids of the cells."
        ),
        arguments=NotebookEditArguments,
        run=run_notebook_edit,
        find_targets=lambda arguments, env: find_edit_target(arguments.notebook_path, env),
        preview=preview_notebook_edit,
    )
