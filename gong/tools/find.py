"""find: files and folders by the pattern of their names.

ls: lists the content of a folder.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.model.entries import Text

from .grep import append_notices, describe_cap_reached, describe_limit_reached
from .limits import OutputCaps, ToolSettings, format_limit, keep_full_text, truncate_head
from .paths import format_path, locate_path
from .text_files import describe_os_error
from .tool import AgentTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import DirEntry, ExecutionEnvironment, ListedPath
    from .tool import ToolContext


FIND_LIMIT = 1000
NO_FILES_TEXT = "No files found matching pattern"


class FindArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Pattern of names, such as *.py or src/**/*.ts")]
    path: Annotated[str, Meta(description="Folder to look in; here if absent")] = "."
    limit: Annotated[int, Meta(ge=1, description="Names to show at most")] = FIND_LIMIT


class FindDetails(Struct, frozen=True):
    """What was found."""

    pattern: str
    result_count: int
    truncated: bool


async def run_find(
    arguments: FindArguments,
    context: ToolContext,
    *,
    caps: OutputCaps = OutputCaps(None),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Return the paths, folders with "/", in the order of their names."""
    found = await find_paths(context.env, arguments.path, arguments.pattern)
    if isinstance(found, ToolResult):
        return found
    more = describe_limit_reached(arguments.limit, "results", "limit")
    return show_paths(found, arguments.pattern, caps, arguments.limit, more)


async def find_paths(
    env: ExecutionEnvironment, path: str, pattern: str
) -> tuple[ListedPath, ...] | ToolResult:
    """Return what matches below a folder, or what went wrong."""
    try:
        return await env.glob(await locate_path(env, path), pattern)
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {path}", kind="FileNotFound")
    except OSError as error:
        return ToolResult.error(describe_os_error(error, path))
    except ValueError as error:
        return ToolResult.error(str(error), kind="ValidationError")


def show_paths(
    found: Sequence[ListedPath], pattern: str, caps: OutputCaps, limit: int, more: str
) -> ToolResult:
    """Return the first results; `more` is the notice if the limit leaves some out."""
    if not found:
        return ToolResult.from_text(NO_FILES_TEXT, FindDetails(pattern, 0, truncated=False))
    names = [_format_listed_path(one) for one in found]
    cut = truncate_head("\n".join(names[:limit]), *caps)
    notices = [more] if len(found) > limit else []
    if cut.truncated:
        notices.append(describe_cap_reached(cut))
    details = FindDetails(pattern, min(len(found), limit), truncated=bool(notices))
    full = keep_full_text("\n".join(names)) if notices else None
    return ToolResult((Text(append_notices(cut.content, notices)),), details, full=full)


def _format_listed_path(one: ListedPath) -> str:
    name = format_path(one.path)
    return f"{name}/" if one.is_dir else name


def build_find_tool(tuning: ToolSettings = ToolSettings()) -> AgentTool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    caps = tuning.caps("find", by_lines=False)
    return AgentTool(
        name="find",
        description=(
            "Find files and folders by a pattern of their names, in all folders below. Hidden ones"
            " too, but not what .gitignore leaves out; links are shown and not followed. At most"
            f" {FIND_LIMIT} results or {format_limit(caps.max_bytes)}."
        ),
        arguments=FindArguments,
        run=partial(run_find, caps=caps),
        replay="safe",
    )


FIND_TOOL = build_find_tool()


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
