"""write: a whole file, whether it is there or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .locks import held
from .tool import Tool, ToolResult
from .truncate import encoded
from .whereabouts import failed, whereabouts

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
    place = await whereabouts(env, path, new=True)
    if isinstance(place, str):
        return ToolResult.error(place, kind="PermissionDenied")
    data = encoded(arguments.content)
    try:
        async with held((place.real,)):
            created = not await env.file_exists(place.real)
            await env.write_file(place.real, data, place.root)
    except OSError as error:
        return failed(error, path)
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
