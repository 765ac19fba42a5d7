"""write: a whole file, whether it is there or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .locks import hold_locks
from .tool import AgentTool, ToolResult
from .truncate import encode_text
from .whereabouts import build_write_error, find_write_target

if TYPE_CHECKING:
    from .tool import ToolContext


class WriteArguments(Struct, frozen=True):
    """What to write, and where."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    content: Annotated[str, Meta(description="The whole new content of the file")]


class WriteDetails(Struct, frozen=True):
    """What was written."""

    path: str
    byte_size: int
    created: bool
    """Whether there was no such file before."""


async def run_write(arguments: WriteArguments, context: ToolContext) -> ToolResult:
    """Write the file and say how long it is now."""
    path, env = arguments.path, context.env
    place = await find_write_target(env, path, new=True)
    if isinstance(place, str):
        return ToolResult.error(place, kind="PermissionDenied")
    data = encode_text(arguments.content)
    try:
        async with hold_locks((place.real,)):
            created = not await env.file_exists(place.real)
            await env.write_file(place.real, data, place.root)
    except OSError as error:
        return build_write_error(error, path)
    return ToolResult.from_text(
        f"Successfully wrote {len(data)} bytes to {path}", WriteDetails(path, len(data), created)
    )


WRITE_TOOL = AgentTool(
    name="write",
    description=(
        "Write a file: creates it with the folders it needs, or replaces all of its content."
        " To change a part of a file use edit."
    ),
    arguments=WriteArguments,
    run=run_write,
)
