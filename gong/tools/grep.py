"""grep: lines of files that match a pattern."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from ..env.protocol import Search
from .searching import GrepMatches, MatchDisplay, search_path, show_matches
from .settings import OutputCaps, ToolSettings
from .tool import AgentTool
from .truncate import format_limit

if TYPE_CHECKING:
    from .tool import ToolContext, ToolResult

GREP_LIMIT = 100


class GrepArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Regular expression, or text if literal")]
    path: Annotated[str, Meta(description="Folder or file to search; here if absent")] = "."
    glob: Annotated[str, Meta(description="Only files that match, such as *.py")] | None = None
    ignore_case: Annotated[bool, Meta(description="Take a and A for the same")] = field(
        default=False, name="ignoreCase"
    )
    literal: Annotated[bool, Meta(description="Take the pattern as plain text")] = False
    context: Annotated[int, Meta(ge=0, description="Lines to show around each match")] = 0
    limit: Annotated[int, Meta(ge=1, description="Matches to show at most")] = GREP_LIMIT


async def run_grep(
    arguments: GrepArguments,
    context: ToolContext,
    *,
    caps: OutputCaps = OutputCaps(None),  # noqa: B008 (a frozen value)
) -> ToolResult:
    """Return the matching lines, by file and number."""
    search = Search(
        pattern=arguments.pattern,
        glob=arguments.glob,
        ignore_case=arguments.ignore_case,
        literal=arguments.literal,
        limit=arguments.limit,
    )
    found = await search_path(context.env, arguments.path, search)
    if not isinstance(found, GrepMatches):
        return found
    return await show_matches(context.env, found, search, MatchDisplay(arguments.context, caps))


def build_grep_tool(tuning: ToolSettings = ToolSettings()) -> AgentTool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    caps = tuning.caps("grep", by_lines=False)
    return AgentTool(
        name="grep",
        description=(
            "Search the content of files for a pattern. Shows file, line number and line; hidden"
            " files are searched too, binary ones and those .gitignore leaves out are not. At most"
            f" {GREP_LIMIT} matches or {format_limit(caps.max_bytes)}."
        ),
        arguments=GrepArguments,
        run=partial(run_grep, caps=caps),
        replay="safe",
    )


GREP_TOOL = build_grep_tool()
