"""write_file, edit_file and replace: tool variants of write and edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .. import write
from ..replacing import Wish, replace_text
from ..tool import Tool, ToolResult
from .limits import limits_for

if TYPE_CHECKING:
    from ..settings import Tuning
    from ..tool import ToolContext

_PATH = "Path of the file, absolute or relative"


class WriteArguments(Struct, frozen=True):
    """What to write, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    content: Annotated[str, Meta(description="The whole new content of the file")]


async def _write(arguments: WriteArguments, context: ToolContext) -> ToolResult:
    return await write.run(write.Arguments(arguments.file_path, arguments.content), context)


class EditArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="The new text")]
    replace_all: Annotated[bool, Meta(description="Replace every place, not the only one")] = False


async def _edit(arguments: EditArguments, context: ToolContext) -> ToolResult:
    return await _edited(arguments, context, every=arguments.replace_all)


class ReplaceArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="The new text")]
    instruction: Annotated[str, Meta(description="What the change is for")] = ""
    allow_multiple: Annotated[bool, Meta(description="Replace every place")] = False


async def _replace(arguments: ReplaceArguments, context: ToolContext) -> ToolResult:
    return await _edited(arguments, context, every=arguments.allow_multiple)


async def _edited(
    arguments: EditArguments | ReplaceArguments, context: ToolContext, *, every: bool
) -> ToolResult:
    path = arguments.file_path
    wish = Wish(path, arguments.old_string, arguments.new_string, every, "old_string")
    made = await replace_text(context.env, wish)
    if isinstance(made, ToolResult):
        return made
    times = "1 occurrence" if made.replacements == 1 else f"{made.replacements} occurrences"
    loosely = "" if made.exact else " It matched but for blanks, quotes or dashes."
    return ToolResult.from_text(f"Successfully replaced {times} in {path}.{loosely}", made)


def changing(tuning: Tuning) -> tuple[Tool, ...]:
    """Return the tool variants that change files."""
    return (
        Tool(
            "write_file",
            "Write a file: creates it with the folders it needs, or replaces its content.",
            WriteArguments,
            _write,
            limits=limits_for("write_file", tuning),
        ),
        Tool(
            "edit_file",
            "Replace text in a file. old_string must occur once, unless replace_all.",
            EditArguments,
            _edit,
            limits=limits_for("edit_file", tuning),
        ),
        Tool(
            "replace",
            "Replace text in a file. old_string must occur once, unless allow_multiple.",
            ReplaceArguments,
            _replace,
            limits=limits_for("replace", tuning),
        ),
    )
