"""grep_search and glob: tool variants of grep and find.

What comes first survives every cut: the first matches, the newest files.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from tape.blocks import Text

from ...env.protocol import Search
from ..find import listed, matching
from ..locate import printable_path
from ..searching import (
    Details,
    Found,
    Manner,
    cap_reached,
    found_in,
    limit_reached,
    noted,
    shown,
)
from ..settings import Caps
from ..tool import Tool, ToolResult
from ..truncate import kept_whole, truncate_head
from .limits import limits_for

if TYPE_CHECKING:
    from ..settings import Tuning
    from ..tool import ToolContext
    from ..truncation.pipeline import Limits

MATCHES = 100
COUNTED = 10_000
"""Matching lines that are looked at where only files or their numbers of lines are asked for."""


class GrepArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Regular expression")]
    path: Annotated[str, Meta(description="Folder or file to search; here if absent")] = "."
    glob_filter: Annotated[str, Meta(description="Only files that match, such as *.py")] | None = (
        None
    )
    case_insensitive: Annotated[bool, Meta(description="Take a and A for the same")] = False
    max_results: Annotated[int, Meta(ge=1, description="Matches, or files, to show at most")] = (
        MATCHES
    )
    output_mode: Annotated[
        Literal["content", "files_with_matches", "count"],
        Meta(description="Lines, only the files, or how many lines in each"),
    ] = "content"


async def _grep(arguments: GrepArguments, context: ToolContext, *, limits: Limits) -> ToolResult:
    by_file = arguments.output_mode != "content"
    search = Search(
        pattern=arguments.pattern,
        glob=arguments.glob_filter,
        ignore_case=arguments.case_insensitive,
        limit=max(COUNTED, arguments.max_results) if by_file else arguments.max_results,
    )
    found = await found_in(context.env, arguments.path, search)
    if not isinstance(found, Found):
        return found
    if by_file and found.matches.found:
        return _files(arguments, found, limits)
    manner = Manner(0, _caps(limits), "max_results", "read_file")
    return await shown(context.env, found, search, manner)


def _files(arguments: GrepArguments, found: Found, limits: Limits) -> ToolResult:
    """Return the files that match, or how many lines of each do."""
    counts: dict[str, int] = {}
    for match in found.matches.found:
        counts[match.path] = counts.get(match.path, 0) + 1
    limit, counted = arguments.max_results, arguments.output_mode == "count"
    every = [
        f"{printable_path(path)}:{n}" if counted else printable_path(path)
        for path, n in counts.items()
    ]
    cut = truncate_head("\n".join(every[:limit]), *_caps(limits))
    notices = []
    if len(counts) > limit:
        notices.append(limit_reached(limit, "files", "max_results"))
    if found.matches.limited:
        seen = len(found.matches.found)
        notices.append(f"Stopped after {seen} matches: there may be more. Refine pattern")
    if cut.truncated:
        notices.append(cap_reached(cut))
    details = Details(
        arguments.pattern, len(counts), len(found.matches.found), truncated=bool(notices)
    )
    full = kept_whole("\n".join(every)) if cut.output_lines < len(every) else None
    return ToolResult((Text(noted(cut.content, notices)),), details, full=full)


class GlobArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Pattern of paths, such as **/*.ts")]
    path: Annotated[str, Meta(description="Folder to look in; here if absent")] = "."


async def _glob(arguments: GlobArguments, context: ToolContext, *, limits: Limits) -> ToolResult:
    found = await matching(context.env, arguments.path, arguments.pattern)
    if isinstance(found, ToolResult):
        return found
    files = [one for one in found if not one.is_dir]
    newest_first = sorted(files, key=lambda one: (-one.changed_ns, one.path))
    limit = limits.lines or len(files)
    more = f"{limit} newest of {len(files)} files shown. Refine pattern or path to see others"
    return listed(newest_first, arguments.pattern, _caps(limits), limit, more)


def _caps(limits: Limits) -> Caps:
    """Return the limits of a family as those of a head: what comes first is what counts here."""
    return Caps(limits.lines, limits.chars)


def searching(tuning: Tuning) -> tuple[Tool, ...]:
    """Return the tool variants that search."""
    return (
        Tool(
            "grep_search",
            f"Search the content of files for a pattern; at most {MATCHES} matches.",
            GrepArguments,
            partial(_grep, limits=limits_for("grep_search", tuning)),
            "safe",
            limits=limits_for("grep_search", tuning),
        ),
        Tool(
            "glob",
            "Find files by a pattern of their paths, the last changed first.",
            GlobArguments,
            partial(_glob, limits=limits_for("glob", tuning)),
            "safe",
            limits=limits_for("glob", tuning),
        ),
    )
