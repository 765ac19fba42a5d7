"""find: files and folders by the pattern of their names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from .locate import format_path, locate_path
from .searching import append_notices, describe_cap_reached, describe_limit_reached
from .settings import OutputCaps, ToolSettings
from .text_files import describe_os_error
from .tool import AgentTool, ToolResult
from .truncate import format_limit, keep_full_text, truncate_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import ExecutionEnvironment, ListedPath
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
    """Return the first of what was found; `more` is said where the limit leaves some out."""
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
