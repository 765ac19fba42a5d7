"""ls: what a folder holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from .text_files import failure
from .tool import Tool, ToolResult
from .truncate import MAX_BYTES, format_size, truncate_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import DirEntry
    from .tool import ToolContext

DEFAULT_LIMIT = 500


class Arguments(Struct, frozen=True):
    """What to list."""

    path: Annotated[str, Meta(description="Path of the folder; here if absent")] = "."
    limit: Annotated[int, Meta(ge=1, description="Entries to show at most")] = DEFAULT_LIMIT


class Details(Struct, frozen=True):
    """What the folder holds in all."""

    path: str
    entry_count: int
    total_size: int
    """Bytes of the files directly in it."""
    truncated: bool


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    """Return the names, folders with "/", in alphabetical order whatever their case."""
    try:
        entries = await context.env.list_directory(context.env.resolve(arguments.path))
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {arguments.path}")
    except OSError as error:
        return ToolResult.error(failure(error, arguments.path))
    if not entries:
        return ToolResult.from_text("(empty directory)", Details(arguments.path, 0, 0, False))
    ordered = sorted(entries, key=lambda entry: (entry.name.lower(), entry.name))
    return _shown(ordered, arguments)


def _shown(entries: Sequence[DirEntry], arguments: Arguments) -> ToolResult:
    names = "\n".join(_label(entry) for entry in entries[: arguments.limit])
    cut = truncate_head(names, max_lines=None)
    rest = len(entries) - cut.output_lines
    details = Details(
        arguments.path, len(entries), sum(entry.size or 0 for entry in entries), rest > 0
    )
    if not rest:
        return ToolResult.from_text(names, details)
    if cut.truncated:
        notice = f"[{format_size(MAX_BYTES)} limit reached, {rest} more entries. List a subfolder.]"
    else:
        notice = (
            f"[{arguments.limit} entries limit reached, {rest} more entries."
            f" Use limit={len(entries)} to see all.]"
        )
    return ToolResult.from_text(f"{cut.content}\n\n{notice}", details)


def _label(entry: DirEntry) -> str:
    """Return the name on one line, as UTF-8 whatever bytes the folder holds."""
    name = os.fsencode(entry.name).decode("utf-8", "replace").replace("\n", "\\n")
    return f"{name}/" if entry.is_dir else name


TOOL = Tool(
    name="ls",
    description=(
        "List a folder: names in alphabetical order, folders with a trailing slash, hidden ones"
        f" too; at most {DEFAULT_LIMIT} entries unless limit says otherwise."
    ),
    arguments=Arguments,
    run=run,
    replay="safe",
)
