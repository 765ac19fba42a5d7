"""edit: one place of a text file, found by its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from .replacing import EditDetails, ReplaceRequest, replace_text
from .tool import AgentTool, ToolResult

if TYPE_CHECKING:
    from .tool import ToolContext


class EditArguments(Struct, frozen=True):
    """Arguments of edit."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    old_text: Annotated[
        str, Meta(description="Text to replace, exactly as in the file; it must occur there once")
    ] = field(name="oldText")
    new_text: Annotated[str, Meta(description="The new text")] = field(name="newText")


async def run_edit(arguments: EditArguments, context: ToolContext) -> ToolResult:
    """Replace the only occurrence of `old_text`, or return an error and change nothing."""
    wish = ReplaceRequest(
        arguments.path, arguments.old_text, arguments.new_text, every=False, old_name="oldText"
    )
    made = await replace_text(context.env, wish)
    if not isinstance(made, EditDetails):
        return made
    return ToolResult.from_text(f"Successfully replaced text in {arguments.path}.", made)


EDIT_TOOL = AgentTool(
    name="edit",
    description=(
        "Replace text in a file. oldText must match the file exactly, whitespace included, and"
        " occur once: give a few lines around the change. Line endings are kept."
    ),
    arguments=EditArguments,
    run=run_edit,
)
