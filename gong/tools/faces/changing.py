"""write_file, edit_file and replace: tool variants of write and edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .. import write
from ..replacing import ReplaceRequest, replace_text
from ..tool import AgentTool, ToolResult
from .limits import choose_family_limits

if TYPE_CHECKING:
    from ..settings import ToolSettings
    from ..tool import ToolContext

_PATH = "Path of the file, absolute or relative"


class WriteFileArguments(Struct, frozen=True):
    """What to write, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    content: Annotated[str, Meta(description="The whole new content of the file")]


async def _run_write_file(arguments: WriteFileArguments, context: ToolContext) -> ToolResult:
    return await write.run_write(
        write.WriteArguments(arguments.file_path, arguments.content), context
    )


class EditFileArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="The new text")]
    replace_all: Annotated[bool, Meta(description="Replace every place, not the only one")] = False


async def _run_edit_file(arguments: EditFileArguments, context: ToolContext) -> ToolResult:
    return await _replace_in_file(arguments, context, every=arguments.replace_all)


class ReplaceArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="The new text")]
    instruction: Annotated[str, Meta(description="What the change is for")] = ""
    allow_multiple: Annotated[bool, Meta(description="Replace every place")] = False


async def _run_replace(arguments: ReplaceArguments, context: ToolContext) -> ToolResult:
    return await _replace_in_file(arguments, context, every=arguments.allow_multiple)


async def _replace_in_file(
    arguments: EditFileArguments | ReplaceArguments, context: ToolContext, *, every: bool
) -> ToolResult:
    path = arguments.file_path
    wish = ReplaceRequest(path, arguments.old_string, arguments.new_string, every, "old_string")
    made = await replace_text(context.env, wish)
    if isinstance(made, ToolResult):
        return made
    times = "1 occurrence" if made.replacements == 1 else f"{made.replacements} occurrences"
    loosely = "" if made.exact else " It matched but for blanks, quotes or dashes."
    return ToolResult.from_text(f"Successfully replaced {times} in {path}.{loosely}", made)


def build_changing_tools(tuning: ToolSettings) -> tuple[AgentTool, ...]:
    """Return the tool variants that change files."""
    return (
        AgentTool(
            "write_file",
            "Write a file: creates it with the folders it needs, or replaces its content.",
            WriteFileArguments,
            _run_write_file,
            limits=choose_family_limits("write_file", tuning),
        ),
        AgentTool(
            "edit_file",
            "Replace text in a file. old_string must occur once, unless replace_all.",
            EditFileArguments,
            _run_edit_file,
            limits=choose_family_limits("edit_file", tuning),
        ),
        AgentTool(
            "replace",
            "Replace text in a file. old_string must occur once, unless allow_multiple.",
            ReplaceArguments,
            _run_replace,
            limits=choose_family_limits("replace", tuning),
        ),
    )
