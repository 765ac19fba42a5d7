"""grep: lines of files that match a pattern, with others around them, cut where they are many.

The lines are found by the environment, then read again here with what is around each.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from tape.model.entries import Text

from ..env.protocol import Search
from ..env.scanner import split_text_lines
from ..env.search import compile_expression, is_plain_search
from .limits import (
    DEFAULT_SETTINGS,
    MAX_KEPT_BYTES,
    MAX_LINE_CHARS,
    NO_LINE_CAPS,
    OutputCaps,
    ToolSettings,
    cut_with_notices,
    describe_limit_reached,
    format_limit,
    keep_full_text,
    truncate_line,
)
from .paths import build_path_error, format_path, locate_path
from .tool import AgentTool, ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import ExecutionEnvironment, LineMatches
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
) -> GrepMatches | ToolOutcome:
    """Return the matches, or what went wrong."""
    place = await locate_path(env, path)
    try:
        matches = await env.grep(place, search)
    except (OSError, ValueError) as error:
        return build_path_error(error, path, "Path not found")
    folder = place
    if {match.path for match in matches.found} == {posixpath.basename(place)}:
        try:
            await env.list_directory(place)
        except OSError:  # a file was searched
            folder = posixpath.dirname(place)
    return GrepMatches(matches, folder)


class MatchDisplay(NamedTuple):
    """How matches are shown."""

    context: int = 0
    """Lines around each."""
    caps: OutputCaps = NO_LINE_CAPS
    limit_name: str = "limit"
    """What the model calls the most matches it wants."""
    read_name: str = "read"
    """The tool that shows whole lines."""


async def show_matches(
    env: ExecutionEnvironment, found: GrepMatches, search: Search, manner: MatchDisplay
) -> ToolOutcome:
    """Return the lines with their files and numbers, and others around each."""
    matches = found.matches
    details = SearchDetails(
        search.pattern,
        len({match.path for match in matches.found}),
        len(matches.found),
        truncated=matches.limited,
    )
    binary = _describe_binary_files(matches.binary)
    if not matches.found:
        return ToolOutcome.from_text(binary or "No matches found", details)
    lines, whole, kept, context = list[str](), list[str](), 0, manner.context
    for path in dict.fromkeys(match.path for match in matches.found):
        content: list[str] = []
        with suppress(OSError):  # it may be gone since it was searched
            content = split_text_lines(await env.read_file(posixpath.join(found.folder, path)))
        numbers = {match.line for match in matches.found if match.path == path}
        around = {
            near
            for number in numbers
            for near in range(max(1, number - context), min(len(content), number + context) + 1)
        }
        for number in sorted(around | numbers):
            line = content[number - 1] if number <= len(content) else ""
            line = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            sign = ":" if number in numbers else "-"
            place = f"{format_path(path)}{sign}{number}{sign} "
            at = _find_match(search, line) if number in numbers else 0
            lines.append(f"{place}{truncate_line(line, at=at).content}")
            if kept <= MAX_KEPT_BYTES:  # one long line may match a hundred times
                whole.append(f"{place}{line}")
                kept += len(whole[-1])
    text, full = "\n".join(lines), "\n".join(whole)
    limited = describe_limit_reached(search.limit, "matches", manner.limit_name)
    shortened = (
        f"Some lines truncated to {MAX_LINE_CHARS} chars."
        f" Use {manner.read_name} tool to see full lines"
    )
    shown = cut_with_notices(
        text,
        manner.caps,
        (*((limited,) if matches.limited else ()), *((binary,) if binary else ())),
        (shortened,) if text != full else (),
    )
    is_part = shown.cut.truncated or text != full
    return ToolOutcome(
        (Text(shown.content),),
        replace(details, truncated=matches.limited or is_part),
        full=keep_full_text(full) if is_part else None,
    )


def _find_match(search: Search, line: str) -> int:
    """Return where a text that is looked for begins in a long line, from 0; 0 for a pattern.

    An expression is not searched for again here, where nothing could end it.
    """
    if len(line) <= MAX_LINE_CHARS or not is_plain_search(search):
        return 0
    match = compile_expression(search).search(line)
    return match.start() if match else 0


_MAX_BINARY_NAMES = 5


def _describe_binary_files(paths: Sequence[str]) -> str:
    """Return which binary files match, "" if none does."""
    if not paths:
        return ""
    names = ", ".join(map(format_path, paths[:_MAX_BINARY_NAMES]))
    more = f" and {len(paths) - _MAX_BINARY_NAMES} more" if len(paths) > _MAX_BINARY_NAMES else ""
    what = "1 binary file matches" if len(paths) == 1 else f"{len(paths)} binary files match"
    return f"{what}: {names}{more}"


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
    caps: OutputCaps = NO_LINE_CAPS,
) -> ToolOutcome:
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


def build_grep_tool(tuning: ToolSettings = DEFAULT_SETTINGS) -> AgentTool:
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
