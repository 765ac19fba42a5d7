"""grep: lines of files that match a pattern."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from ..env.protocol import Search
from .searching import Found, Manner, found_in, shown
from .settings import Caps, Tuning
from .tool import Tool
from .truncate import in_short

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


async def run(
    arguments: Arguments,
    context: ToolContext,
    *,
    caps: Caps = Caps(None),  # noqa: B008 (a frozen value)
) -> ToolResult:
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
    return await shown(context.env, found, search, Manner(arguments.context, caps))


def grep(tuning: Tuning = Tuning()) -> Tool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    caps = tuning.caps("grep", by_lines=False)
    return Tool(
        name="grep",
        description=(
            "Search the content of files for a pattern. Shows file, line number and line; hidden"
            " files are searched too, binary ones and those .gitignore leaves out are not. At most"
            f" {DEFAULT_LIMIT} matches or {in_short(caps.max_bytes)}."
        ),
        arguments=Arguments,
        run=partial(run, caps=caps),
        replay="safe",
    )


TOOL = grep()
