"""list_dir: the tool variant of ls, several levels deep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from ..locate import locate
from ..ls import label
from ..text_files import failure
from ..tool import Tool, ToolResult

if TYPE_CHECKING:
    from ..settings import Tuning
    from ..tool import ToolContext


class ListArguments(Struct, frozen=True):
    """What to list."""

    path: Annotated[str, Meta(description="Path of the folder; here if absent")] = "."
    depth: Annotated[int, Meta(ge=1, description="How many levels deep")] = 1


class Details(Struct, frozen=True):
    """What the folder holds, as deep as was asked."""

    path: str
    entry_count: int
    total_size: int
    """Bytes of the files."""


async def _list(arguments: ListArguments, context: ToolContext) -> ToolResult:
    try:
        path = await locate(context.env, arguments.path)
        entries = await context.env.list_directory(path, arguments.depth)
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {arguments.path}", kind="FileNotFound")
    except PermissionError as error:
        return ToolResult.error(failure(error, arguments.path), kind="PermissionDenied")
    except OSError as error:
        return ToolResult.error(failure(error, arguments.path))
    details = Details(arguments.path, len(entries), sum(entry.size or 0 for entry in entries))
    return ToolResult.from_text("\n".join(map(label, entries)) or "(empty directory)", details)


def listing(tuning: Tuning) -> tuple[Tool, ...]:  # noqa: ARG001 (made like all faces)
    """Return the list_dir tool; the truncation service cuts its results."""
    return (Tool("list_dir", "List a folder, several levels deep.", ListArguments, _list, "safe"),)
