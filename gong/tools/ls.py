"""ls: what a folder holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from .locate import locate, printable_path
from .searching import cap_reached
from .settings import Caps, Tuning
from .text_files import failure
from .tool import Tool, ToolResult
from .truncate import kept_whole, truncate_head

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


async def run(
    arguments: Arguments,
    context: ToolContext,
    *,
    caps: Caps = Caps(None),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Return the names, folders with "/", in alphabetical order whatever their case."""
    try:
        entries = await context.env.list_directory(await locate(context.env, arguments.path))
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {arguments.path}", kind="FileNotFound")
    except PermissionError as error:
        return ToolResult.error(failure(error, arguments.path), kind="PermissionDenied")
    except OSError as error:
        return ToolResult.error(failure(error, arguments.path))
    if not entries:
        return ToolResult.from_text("(empty directory)", Details(arguments.path, 0, 0, False))
    ordered = sorted(entries, key=lambda entry: (entry.name.lower(), entry.name))
    return _shown(ordered, arguments, caps)


def _shown(entries: Sequence[DirEntry], arguments: Arguments, caps: Caps) -> ToolResult:
    every = [label(entry) for entry in entries]
    names = "\n".join(every[: arguments.limit])
    cut = truncate_head(names, *caps)
    rest = len(entries) - cut.output_lines
    details = Details(
        arguments.path, len(entries), sum(entry.size or 0 for entry in entries), rest > 0
    )
    if not rest:
        return ToolResult.from_text(names, details)
    if cut.truncated:
        notice = f"[{cap_reached(cut)}, {rest} more entries. List a subfolder.]"
    else:
        notice = (
            f"[{arguments.limit} entries limit reached, {rest} more entries."
            f" Use limit={len(entries)} to see all.]"
        )
    shown = f"{cut.content}\n\n{notice}"
    return ToolResult((Text(shown),), details, full=kept_whole("\n".join(every)))


def label(entry: DirEntry) -> str:
    """Return the name on one line, as UTF-8 whatever bytes the folder holds."""
    name = printable_path(entry.name)
    return f"{name}/" if entry.is_dir else name


def ls(tuning: Tuning = Tuning()) -> Tool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    return Tool(
        name="ls",
        description=(
            "List a folder: names in alphabetical order, folders with a trailing slash, hidden ones"
            f" too; at most {DEFAULT_LIMIT} entries unless limit says otherwise."
        ),
        arguments=Arguments,
        run=partial(run, caps=tuning.caps("ls", by_lines=False)),
        replay="safe",
    )


TOOL = ls()
