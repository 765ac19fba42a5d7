"""list_dir, grep_search and glob: tool variants of ls, grep and find.

What comes first survives every cut: the first matches, the newest files.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from tape.model.entries import Text

from ...env.protocol import Search
from ...tool_settings import OutputCaps
from ..find import PathDisplay, find_paths, format_entry, list_folder, show_paths
from ..grep import (
    GrepMatches,
    MatchDisplay,
    SearchDetails,
    describe_binary_files,
    search_path,
    show_matches,
)
from ..limits import choose_family_limits
from ..output_storage import keep_full_output
from ..paths import format_path
from ..tool import AgentTool, ToolOutcome
from ..truncation import cut_with_notices, describe_limit_reached

if TYPE_CHECKING:
    from ...tool_settings import ToolSettings
    from ..limits import OutputLimits
    from ..tool import ToolContext


class ListDirArguments(Struct, frozen=True):
    """What to list."""

    path: Annotated[str, Meta(description="Path of the folder; here if absent")] = "."
    depth: Annotated[int, Meta(ge=1, description="How many levels deep")] = 1


class ListDirDetails(Struct, frozen=True):
    """What the folder holds, as deep as was asked."""

    path: str
    entry_count: int
    total_size: int
    """Bytes of the files."""


async def _run_list_dir(arguments: ListDirArguments, context: ToolContext) -> ToolOutcome:
    entries = await list_folder(context.env, arguments.path, arguments.depth)
    if isinstance(entries, ToolOutcome):
        return entries
    size = sum(entry.size or 0 for entry in entries)
    names = "\n".join(format_entry(entry.name, is_dir=entry.is_dir) for entry in entries)
    details = ListDirDetails(arguments.path, len(entries), size)
    return ToolOutcome.from_text(names or "(empty directory)", details)


GREP_SEARCH_LIMIT = 100
COUNTED_MATCHES = 10_000
"""Matching lines that are looked at where only files or their numbers of lines are asked for."""


class GrepSearchArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Regular expression")]
    path: Annotated[str, Meta(description="Folder or file to search; here if absent")] = "."
    glob_filter: Annotated[str, Meta(description="Only files that match, such as *.py")] | None = (
        None
    )
    case_insensitive: Annotated[bool, Meta(description="Take a and A for the same")] = False
    max_results: Annotated[int, Meta(ge=1, description="Matches, or files, to show at most")] = (
        GREP_SEARCH_LIMIT
    )
    output_mode: Annotated[
        Literal["content", "files_with_matches", "count"],
        Meta(description="Lines, only the files, or how many lines in each"),
    ] = "content"


async def _run_grep_search(
    arguments: GrepSearchArguments, context: ToolContext, *, limits: OutputLimits
) -> ToolOutcome:
    by_file = arguments.output_mode != "content"
    search = Search(
        pattern=arguments.pattern,
        glob=arguments.glob_filter,
        ignore_case=arguments.case_insensitive,
        limit=max(COUNTED_MATCHES, arguments.max_results) if by_file else arguments.max_results,
    )
    result = await search_path(context.env, arguments.path, search)
    if not isinstance(result, GrepMatches):
        return result
    if by_file and result.matches.found:
        return await _show_matching_files(arguments, context, result, limits)
    manner = MatchDisplay(0, _to_caps(limits), "max_results", "read_file")
    return await show_matches(context, result, search, manner)


async def _show_matching_files(
    arguments: GrepSearchArguments,
    context: ToolContext,
    grep_result: GrepMatches,
    limits: OutputLimits,
) -> ToolOutcome:
    """Return the files that match, or how many lines of each do."""
    counts = Counter(match.path for match in grep_result.matches.found)
    limit, counted = arguments.max_results, arguments.output_mode == "count"
    every = [
        f"{format_path(path)}:{n}" if counted else format_path(path) for path, n in counts.items()
    ]
    matches = grep_result.matches
    notices = []
    if len(counts) > limit:
        notices.append(describe_limit_reached(limit, "files", "max_results"))
    if matches.limited:
        seen = len(matches.found)
        notices.append(f"Stopped after {seen} matches: there may be more. Refine pattern")
    is_part = bool(notices)
    if matches.binary:
        notices.append(describe_binary_files(matches.binary))
    page = cut_with_notices("\n".join(every[:limit]), _to_caps(limits), notices)
    details = SearchDetails(
        *(arguments.pattern, len(counts), len(matches.found)),
        truncated=is_part or page.cut.truncated,
    )
    if page.cut.output_lines == len(every):
        return ToolOutcome((Text(page.content),), details)
    full = await keep_full_output("\n".join(every), context.describe_output())
    return ToolOutcome((Text(page.content),), details).add_full(full)


class GlobArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Pattern of paths, such as **/*.ts")]
    path: Annotated[str, Meta(description="Folder to look in; here if absent")] = "."


async def _run_glob(
    arguments: GlobArguments, context: ToolContext, *, limits: OutputLimits
) -> ToolOutcome:
    paths = await find_paths(context.env, arguments.path, arguments.pattern)
    if isinstance(paths, ToolOutcome):
        return paths
    files = [entry for entry in paths if not entry.is_dir]
    newest_first = sorted(files, key=lambda entry: (-entry.changed_ns, entry.path))
    limit = limits.lines or len(files)
    more = f"{limit} newest of {len(files)} files shown. Refine pattern or path to see others"
    manner = PathDisplay(arguments.pattern, _to_caps(limits), limit, more)
    return await show_paths(context, newest_first, manner)


def _to_caps(limits: OutputLimits) -> OutputCaps:
    """Return the limits of a family as those of a head: what comes first is what counts here."""
    return OutputCaps(limits.lines, limits.chars)


def build_searching_tools(tuning: ToolSettings) -> tuple[AgentTool, ...]:
    """Return the tool variants that search and list; the registry cuts what list_dir returns."""
    grep_limits = choose_family_limits("grep_search", tuning)
    glob_limits = choose_family_limits("glob", tuning)
    return (
        AgentTool(
            "grep_search",
            f"Search the content of files for a pattern; at most {GREP_SEARCH_LIMIT} matches.",
            GrepSearchArguments,
            partial(_run_grep_search, limits=grep_limits),
            "safe",
            limits=grep_limits,
        ),
        AgentTool(
            "glob",
            "Find files by a pattern of their paths, the last changed first.",
            GlobArguments,
            partial(_run_glob, limits=glob_limits),
            "safe",
            limits=glob_limits,
        ),
        AgentTool(
            "list_dir",
            "List a folder, several levels deep.",
            ListDirArguments,
            _run_list_dir,
            "safe",
        ),
    )
