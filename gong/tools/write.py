"""write: a whole file, whether it is there or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from ..env.paths import climbs_out
from .text_files import failure, refusal
from .tool import Tool, ToolResult

if TYPE_CHECKING:
    from .tool import ToolContext


class Arguments(Struct, frozen=True):
    """What to write, and where."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    content: Annotated[str, Meta(description="The whole new content of the file")]


class Details(Struct, frozen=True):
    """What was written."""

    path: str
    byte_size: int
    created: bool
    """Whether there was no such file before."""


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    """Write the file and say how long it is now."""
    path, env = arguments.path, context.env
    resolved = env.resolve(path)
    if climbs_out(path, resolved, env.working_directory):
        return ToolResult.error(refusal(path))
    data = arguments.content.encode()
    try:
        created = not await env.file_exists(resolved)
        await env.write_file(resolved, data)
    except OSError as error:
        return ToolResult.error(failure(error, path))
    return ToolResult.from_text(
        f"Successfully wrote {len(data)} bytes to {path}", Details(path, len(data), created)
    )


TOOL = Tool(
    name="write",
    description=(
        "Write a file: creates it with the folders it needs, or replaces all of its content."
        " To change a part of a file use edit."
    ),
    arguments=Arguments,
    run=run,
)
