"""ls: what a folder holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from .locate import format_path, locate_path
from .searching import describe_cap_reached
from .settings import OutputCaps, ToolSettings
from .text_files import describe_os_error
from .tool import AgentTool, ToolResult
from .truncate import keep_full_text, truncate_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import DirEntry
    from .tool import ToolContext

LS_LIMIT = 500


class LsArguments(Struct, frozen=True):
    """What to list."""

    path: Annotated[str, Meta(description="Path of the folder; here if absent")] = "."
    limit: Annotated[int, Meta(ge=1, description="Entries to show at most")] = LS_LIMIT


class LsDetails(Struct, frozen=True):
    """What the folder holds in all."""

    path: str
    entry_count: int
    total_size: int
    """Bytes of the files directly in it."""
    truncated: bool


async def run_ls(
    arguments: LsArguments,
    context: ToolContext,
    *,
    caps: OutputCaps = OutputCaps(None),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Return the names, folders with "/", in alphabetical order whatever their case."""
    try:
        entries = await context.env.list_directory(await locate_path(context.env, arguments.path))
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {arguments.path}", kind="FileNotFound")
    except PermissionError as error:
        return ToolResult.error(describe_os_error(error, arguments.path), kind="PermissionDenied")
    except OSError as error:
        return ToolResult.error(describe_os_error(error, arguments.path))
    if not entries:
        return ToolResult.from_text("(empty directory)", LsDetails(arguments.path, 0, 0, False))
    ordered = sorted(entries, key=lambda entry: (entry.name.lower(), entry.name))
    return _show_entries(ordered, arguments, caps)


def _show_entries(
    entries: Sequence[DirEntry], arguments: LsArguments, caps: OutputCaps
) -> ToolResult:
    every = [format_entry(entry) for entry in entries]
    names = "\n".join(every[: arguments.limit])
    cut = truncate_head(names, *caps)
    rest = len(entries) - cut.output_lines
    details = LsDetails(
        arguments.path, len(entries), sum(entry.size or 0 for entry in entries), rest > 0
    )
    if not rest:
        return ToolResult.from_text(names, details)
    if cut.truncated:
        notice = f"[{describe_cap_reached(cut)}, {rest} more entries. List a subfolder.]"
    else:
        notice = (
            f"[{arguments.limit} entries limit reached, {rest} more entries."
            f" Use limit={len(entries)} to see all.]"
        )
    shown = f"{cut.content}\n\n{notice}"
    return ToolResult((Text(shown),), details, full=keep_full_text("\n".join(every)))


def format_entry(entry: DirEntry) -> str:
    """Return the name on one line, as UTF-8 whatever bytes the folder holds."""
    name = format_path(entry.name)
    return f"{name}/" if entry.is_dir else name


def build_ls_tool(tuning: ToolSettings = ToolSettings()) -> AgentTool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    return AgentTool(
        name="ls",
        description=(
            "List a folder: names in alphabetical order, folders with a trailing slash, hidden ones"
            f" too; at most {LS_LIMIT} entries unless limit says otherwise."
        ),
        arguments=LsArguments,
        run=partial(run_ls, caps=tuning.caps("ls", by_lines=False)),
        replay="safe",
    )


LS_TOOL = build_ls_tool()
