"""find: files and folders by the pattern of their names; ls: what a folder holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from tape.model.entries import Text

from ..tool_settings import DEFAULT_SETTINGS, NO_LINE_CAPS, OutputCaps, ToolSettings
from .limits import format_limit
from .output_storage import keep_full_output
from .paths import build_path_error, format_path, locate_path
from .tool import AgentTool, ToolOutcome
from .truncation import (
    cut_with_notices,
    describe_cap_reached,
    describe_limit_reached,
    truncate_head,
)

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
    caps: OutputCaps = NO_LINE_CAPS,
) -> ToolOutcome:
    """Return the paths, folders with "/", in the order of their names."""
    paths = await find_paths(context.env, arguments.path, arguments.pattern)
    if isinstance(paths, ToolOutcome):
        return paths
    more = describe_limit_reached(arguments.limit, "results", "limit")
    manner = PathDisplay(arguments.pattern, caps, arguments.limit, more)
    return await show_paths(context, paths, manner)


async def find_paths(
    env: ExecutionEnvironment, path: str, pattern: str
) -> tuple[ListedPath, ...] | ToolOutcome:
    """Return what matches below a folder, or what went wrong."""
    try:
        return await env.glob(await locate_path(env, path), pattern)
    except (OSError, ValueError) as error:
        return build_path_error(error, path, "Path not found")


class PathDisplay(NamedTuple):
    """How results are shown."""

    pattern: str
    caps: OutputCaps
    limit: int
    more: str
    """The notice if the limit leaves some out."""


async def show_paths(
    context: ToolContext, listed: Sequence[ListedPath], manner: PathDisplay
) -> ToolOutcome:
    """Return the first results."""
    pattern, caps, limit, more = manner
    if not listed:
        return ToolOutcome.from_text(NO_FILES_TEXT, FindDetails(pattern, 0, truncated=False))
    names = [format_entry(entry.path, is_dir=entry.is_dir) for entry in listed]
    notices = (more,) if len(listed) > limit else ()
    page = cut_with_notices("\n".join(names[:limit]), caps, notices)
    details = FindDetails(pattern, min(len(listed), limit), truncated=page.noted)
    if not page.noted:
        return ToolOutcome((Text(page.content),), details)
    full = await keep_full_output("\n".join(names), context.describe_output())
    return ToolOutcome((Text(page.content),), details).add_full(full)


def format_entry(path: str, *, is_dir: bool) -> str:
    """Return a path on one line, folders with "/", as UTF-8 whatever bytes its names hold."""
    return format_path(path) + "/" * is_dir


def build_find_tool(tuning: ToolSettings = DEFAULT_SETTINGS) -> AgentTool:
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
    caps: OutputCaps = NO_LINE_CAPS,
) -> ToolOutcome:
    """Return the names, folders with "/", in alphabetical order whatever their case."""
    path, limit = arguments.path, arguments.limit
    entries = await list_folder(context.env, path)
    if isinstance(entries, ToolOutcome):
        return entries
    ordered = sorted(entries, key=lambda entry: (entry.name.lower(), entry.name))
    names = [format_entry(entry.name, is_dir=entry.is_dir) for entry in ordered]
    cut = truncate_head("\n".join(names[:limit]), *caps)
    rest = len(names) - cut.output_lines if names else 0
    size = sum(entry.size or 0 for entry in entries)
    details = LsDetails(path, len(entries), size, rest > 0)
    if not rest:
        return ToolOutcome.from_text(cut.content or "(empty directory)", details)
    notice = (
        f"{describe_cap_reached(cut)}, {rest} more entries. List a subfolder."
        if cut.truncated
        else f"{limit} entries limit reached, {rest} more entries."
        f" Use limit={len(entries)} to see all."
    )
    block = Text(f"{cut.content}\n\n[{notice}]")
    full = await keep_full_output("\n".join(names), context.describe_output())
    return ToolOutcome((block,), details).add_full(full)


async def list_folder(
    env: ExecutionEnvironment, path: str, depth: int = 1
) -> tuple[DirEntry, ...] | ToolOutcome:
    """Return what a folder holds, or what went wrong."""
    try:
        return await env.list_directory(await locate_path(env, path), depth)
    except (OSError, ValueError) as error:
        return build_path_error(error, path, "Path not found")


def build_ls_tool(tuning: ToolSettings = DEFAULT_SETTINGS) -> AgentTool:
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
