"""Matching lines for a model: search, add context lines, and cut.

grep: lines of files that match a pattern.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct, field

from tape.model.entries import Text

from ..env.protocol import Search
from .limits import (
    MAX_KEPT_BYTES,
    MAX_LINE_CHARS,
    OutputCaps,
    ToolSettings,
    format_limit,
    format_size,
    keep_full_text,
    truncate_head,
    truncate_line,
)
from .paths import format_path, locate_path
from .text_files import decode_text_file, describe_os_error
from .tool import AgentTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import ExecutionEnvironment, LineMatch, LineMatches
    from .limits import TruncatedText
    from .tool import ToolContext


class SearchDetails(Struct, frozen=True):
    """What was found."""

    pattern: str
    file_count: int
    match_count: int
    truncated: bool


class GrepMatches(NamedTuple):
    """Matches and the folder their paths start from."""

    matches: LineMatches
    folder: str


async def search_path(
    env: ExecutionEnvironment, path: str, search: Search
) -> GrepMatches | ToolResult:
    """Return the matches, or what went wrong."""
    place = await locate_path(env, path)
    try:
        matches = await env.grep(place, search)
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {path}", kind="FileNotFound")
    except OSError as error:
        return ToolResult.error(describe_os_error(error, path))
    except ValueError as error:
        return ToolResult.error(str(error), kind="ValidationError")
    names = {match.path for match in matches.found}
    is_file = names == {posixpath.basename(place)} and not await _is_listable_folder(env, place)
    return GrepMatches(matches, posixpath.dirname(place) if is_file else place)


class MatchDisplay(NamedTuple):
    """How matches are shown."""

    context: int = 0
    """Lines around each."""
    caps: OutputCaps = OutputCaps(None)
    limit_name: str = "limit"
    """What the model calls the most matches it wants."""
    read_name: str = "read"
    """The tool that shows whole lines."""


async def show_matches(
    env: ExecutionEnvironment, found: GrepMatches, search: Search, manner: MatchDisplay
) -> ToolResult:
    """Return the lines with their files and numbers, and others around each."""
    matches = found.matches
    details = SearchDetails(
        search.pattern,
        len({match.path for match in matches.found}),
        len(matches.found),
        truncated=matches.limited,
    )
    if not matches.found:
        return ToolResult.from_text("No matches found", details)
    lines, whole, kept = list[str](), list[str](), 0
    for path in dict.fromkeys(match.path for match in matches.found):
        content = await _read_lines(env, posixpath.join(found.folder, path))
        for place, line in _list_file_lines(path, content, matches.found, manner.context):
            lines.append(f"{place}{truncate_line(line).content}")
            if kept <= MAX_KEPT_BYTES:  # one long line may match a hundred times
                whole.append(f"{place}{line}")
                kept += len(whole[-1])
    return _cut_matches("\n".join(lines), "\n".join(whole), matches, search, details, manner)


def _cut_matches(
    text: str,
    whole: str,
    matches: LineMatches,
    search: Search,
    details: SearchDetails,
    manner: MatchDisplay,
) -> ToolResult:
    shortened = text != whole
    cut = truncate_head(text, *manner.caps)
    notices = []
    if matches.limited:
        notices.append(describe_limit_reached(search.limit, "matches", manner.limit_name))
    if cut.truncated:
        notices.append(describe_cap_reached(cut))
    if shortened:
        notices.append(
            f"Some lines truncated to {MAX_LINE_CHARS} chars."
            f" Use {manner.read_name} tool to see full lines"
        )
    if not notices:
        return ToolResult.from_text(text, details)
    told = SearchDetails(details.pattern, details.file_count, details.match_count, truncated=True)
    full = keep_full_text(whole) if cut.truncated or shortened else None
    return ToolResult((Text(append_notices(cut.content, notices)),), told, full=full)


def describe_limit_reached(limit: int, what: str, name: str) -> str:
    """Return the notice that there may be more results."""
    return f"{limit} {what} limit reached. Use {name}={limit * 2} for more, or refine pattern"


def describe_cap_reached(cut: TruncatedText) -> str:
    """Return the notice of a cut text."""
    if cut.truncated_by == "lines":
        return f"{cut.max_lines} lines limit reached"
    return f"{format_size(cut.max_bytes or 0)} limit reached"


def append_notices(text: str, notices: Sequence[str]) -> str:
    """Return a text followed by its notices."""
    return f"{text}\n\n[{'. '.join(notices)}]" if notices else text


def _list_file_lines(
    path: str, lines: Sequence[str], found: Sequence[LineMatch], context: int
) -> list[tuple[str, str]]:
    """Return the lines to show of one file, each once: its number, and the whole line."""
    numbers = {match.line for match in found if match.path == path}
    around = {
        number
        for line in numbers
        for number in range(max(1, line - context), min(len(lines), line + context) + 1)
    }
    shown_lines, name = [], format_path(path)
    for number in sorted(around | numbers):
        line = lines[number - 1] if number <= len(lines) else ""
        text = f":{number}: " if number in numbers else f"-{number}- "
        shown_lines.append((f"{name}{text}", line))
    return shown_lines


async def _read_lines(env: ExecutionEnvironment, place: str) -> list[str]:
    try:
        file = decode_text_file(await env.read_file(place))
    except OSError:
        # Deleted since the search.
        return []
    if file is None:
        return []
    text = file.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if not lines[-1] else lines


async def _is_listable_folder(env: ExecutionEnvironment, place: str) -> bool:
    try:
        await env.list_directory(place)
    except OSError:
        return False
    return True


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
