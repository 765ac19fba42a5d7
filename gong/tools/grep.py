"""grep: lines of files that match a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from ..env.protocol import Search
from .searching import Found, found_in, shown
from .tool import Tool

if TYPE_CHECKING:
    from .tool import ToolContext, ToolResult

DEFAULT_LIMIT = 100


class Arguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Regular expression, or text if literal")]
    path: Annotated[str, Meta(description="Folder or file to search; here if absent")] = "."
    glob: Annotated[str, Meta(description="Only files that match, such as *.py")] | None = None
    ignore_case: Annotated[bool, Meta(description="Take a and A for the same")] = field(
        default=False, name="ignoreCase"
    )
    literal: Annotated[bool, Meta(description="Take the pattern as plain text")] = False
    context: Annotated[int, Meta(ge=0, description="Lines to show around each match")] = 0
    limit: Annotated[int, Meta(ge=1, description="Matches to show at most")] = DEFAULT_LIMIT


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    """Return the matching lines, by file and number."""
    search = Search(
        pattern=arguments.pattern,
        glob=arguments.glob,
        ignore_case=arguments.ignore_case,
        literal=arguments.literal,
        limit=arguments.limit,
    )
    found = await found_in(context.env, arguments.path, search)
    if not isinstance(found, Found):
        return found
    return await shown(context.env, found, search, arguments.context)


TOOL = Tool(
    name="grep",
    description=(
        "Search the content of files for a pattern. Shows file, line number and line; hidden files"
        " are searched too, binary ones and those .gitignore leaves out are not. At most"
        f" {DEFAULT_LIMIT} matches or 50KB."
    ),
    arguments=Arguments,
    run=run,
    replay="safe",
)
