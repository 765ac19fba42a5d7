"""list_dir: the tool variant of ls, several levels deep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from ..locate import locate_path
from ..ls import format_entry
from ..text_files import describe_os_error
from ..tool import AgentTool, ToolResult

if TYPE_CHECKING:
    from ..settings import ToolSettings
    from ..tool import ToolContext


class ListDirArguments(Struct, frozen=True):
    """What to list."""

    path: Annotated[str, Meta(description="Path of the folder; here if absent")] = "."
    depth: Annotated[int, Meta(ge=1, description="How many levels deep")] = 1


class ListDirDetails(Struct, frozen=True):
    """What the folder holds, as deep as was asked."""

    path: str
    entry_count: int
    total_size: int
    """Bytes of the files."""


async def _run_list_dir(arguments: ListDirArguments, context: ToolContext) -> ToolResult:
    try:
        path = await locate_path(context.env, arguments.path)
        entries = await context.env.list_directory(path, arguments.depth)
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {arguments.path}", kind="FileNotFound")
    except PermissionError as error:
        return ToolResult.error(describe_os_error(error, arguments.path), kind="PermissionDenied")
    except OSError as error:
        return ToolResult.error(describe_os_error(error, arguments.path))
    details = ListDirDetails(
        arguments.path, len(entries), sum(entry.size or 0 for entry in entries)
    )
    return ToolResult.from_text(
        "\n".join(map(format_entry, entries)) or "(empty directory)", details
    )


def build_listing_tools(tuning: ToolSettings) -> tuple[AgentTool, ...]:  # noqa: ARG001 (made like all faces)
    """Return the list_dir tool; the truncation service cuts its results."""
    return (
        AgentTool(
            "list_dir",
            "List a folder, several levels deep.",
            ListDirArguments,
            _run_list_dir,
            "safe",
        ),
    )
