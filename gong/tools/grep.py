"""grep: lines of files that match a pattern, with others around them, cut where they are many.

The lines are found by the environment, then read again here with what is around each. Where the
limit stops the search, the result keeps what is found beyond it, and the model does not see that.
"""

from __future__ import annotations

import asyncio
import posixpath
from contextlib import suppress
from dataclasses import replace as replace_field
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from tape.model.entries import Text

from ..env.protocol import Search
from ..env.scanner import LinePart, split_text_lines
from ..env.wrappers import find_temporary_folder
from ..tool_settings import DEFAULT_SETTINGS, NO_LINE_CAPS, OutputCaps, ToolSettings
from .command import SpillFile
from .limits import MAX_KEPT_BYTES, MAX_STORED_BYTES, encode_text, format_limit
from .output_storage import FullOutput, keep_full_file, keep_full_output
from .paths import build_path_error, format_path, locate_path
from .tool import AgentTool, ToolOutcome
from .truncation import (
    MAX_LINE_CHARS,
    cut_with_notices,
    describe_limit_reached,
    keep_full_text,
    truncate_line,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

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
    place: str
    """What was searched: the folder, or a file in it."""


async def search_path(
    env: ExecutionEnvironment, path: str, search: Search
) -> GrepMatches | ToolOutcome:
    """Return the matches, or what went wrong."""
    try:
        place = await locate_path(env, path)
        matches = await env.grep(place, search)
    except (OSError, ValueError) as error:
        return build_path_error(error, path, "Path not found")
    folder = place
    if {match.path for match in matches.found} == {posixpath.basename(place)}:
        try:
            await env.list_directory(place)
        except OSError:  # a file was searched
            folder = posixpath.dirname(place)
    return GrepMatches(matches, folder, place)


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
    context: ToolContext, grep_result: GrepMatches, search: Search, manner: MatchDisplay
) -> ToolOutcome:
    """Return the lines with their files and numbers, and others around each."""
    matches = grep_result.matches
    details = SearchDetails(
        search.pattern,
        len({match.path for match in matches.found}),
        len(matches.found),
        truncated=matches.limited,
    )
    binary = describe_binary_files(matches.binary)
    if not matches.found:
        return ToolOutcome.from_text(binary or "No matches found", details)
    lines, is_shortened = list[str](), False
    whole = _WholeLines(context)
    async for match in _read_matches(context.env, grep_result.folder, matches, manner.context):
        cut = truncate_line(match.part.text, at=match.at)
        is_shortened = is_shortened or cut.truncated
        lines.append(f"{match.place}{cut.content}")
        whole.add(match)
    text = "\n".join(lines)
    limited = describe_limit_reached(search.limit, "matches", manner.limit_name)
    shortened = (
        f"Some lines truncated to {MAX_LINE_CHARS} chars."
        f" Use {manner.read_name} tool to see full lines"
    )
    page = cut_with_notices(
        text,
        manner.caps,
        (*((limited,) if matches.limited else ()), *((binary,) if binary else ())),
        (shortened,) if is_shortened else (),
    )
    is_part = page.cut.truncated or is_shortened
    if matches.limited and (more := await _search_on(context.env, grep_result.place, search)):
        whole.drop()
        is_part, whole = True, _WholeLines(context)
        async for match in _read_matches(context.env, grep_result.folder, more, manner.context):
            whole.add(match)
    full = await whole.keep() if is_part else FullOutput()
    whole.drop()
    details = replace(details, truncated=matches.limited or is_part)
    return ToolOutcome((Text(page.content),), details).add_full(full)


_MAX_KEPT_MATCHES = 10_000
"""Lines that are looked for where the result keeps more than is shown."""
_SEARCH_ON_SECONDS = 5.0
"""How long lines are looked for beyond those shown; if it takes longer, only those are kept."""


async def _search_on(env: ExecutionEnvironment, place: str, search: Search) -> LineMatches | None:
    """Return what is found beyond the limit too; None if there is no more, or it takes long."""
    if search.limit >= _MAX_KEPT_MATCHES:
        return None
    with suppress(OSError, ValueError):  # it may be gone since; TimeoutError is an OSError
        async with asyncio.timeout(_SEARCH_ON_SECONDS):
            matches = await env.grep(place, replace_field(search, limit=_MAX_KEPT_MATCHES))
        return matches if len(matches.found) > search.limit else None
    return None


class _MatchedLine(NamedTuple):
    place: str
    """File and number, as the result names them."""
    part: LinePart
    at: int
    """Where the match begins in it, in characters from 0."""

    def format_whole(self) -> str:
        """Return all that was read of the line, with marks where that is a part."""
        before = "[truncated] ..." if self.part.start else ""
        after = "... [truncated]" if self.part.has_more else ""
        return f"{self.place}{before}{self.part.text}{after}"


async def _read_matches(
    env: ExecutionEnvironment, folder: str, matches: LineMatches, context: int
) -> AsyncIterator[_MatchedLine]:
    """Yield the lines that match and those around each, file by file."""
    by_path: dict[str, dict[int, int]] = {}
    for match in matches.found:
        by_path.setdefault(match.path, {})[match.line] = match.at
    for path, starts in by_path.items():
        content = await _read_lines_around(env, posixpath.join(folder, path), starts, context)
        for number, part in content.items():
            sign = ":" if number in starts else "-"
            place = f"{format_path(path)}{sign}{number}{sign} "
            yield _MatchedLine(place, part, max(starts.get(number, 0) - part.start, 0))


class _WholeLines:
    """The lines that a result shows parts of: in memory up to a limit, then in a file."""

    def __init__(self, context: ToolContext) -> None:
        self._about = context.describe_output()
        self._spill = SpillFile(find_temporary_folder(context.env))
        self._lines: list[str] = []
        self._size = -1
        """Bytes of the lines with the line feeds between them."""

    def add(self, match: _MatchedLine) -> None:
        """Add the next line; beyond all limits it is only counted."""
        line = match.format_whole()
        data = encode_text(line if self._size < 0 else f"\n{line}")
        if self._size <= MAX_KEPT_BYTES:
            self._lines.append(line)
        if self._about.storage is not None and self._size + len(data) <= MAX_STORED_BYTES:
            self._spill.take(data)
        self._size += len(data) + (self._size < 0)

    async def keep(self) -> FullOutput:
        """Return what the result keeps of them."""
        text = "\n".join(self._lines)
        if self._size <= MAX_KEPT_BYTES:
            return await keep_full_output(text, self._about)
        if self._spill.total_bytes == self._size:
            with suppress(Exception):  # if the storage fails, the beginning stays
                if (file := self._spill.keep()) is not None:
                    return await keep_full_file(file, text, self._size, self._about)
        return FullOutput(keep_full_text(text, size=self._size))

    def drop(self) -> None:
        """Remove the file, where nothing keeps it."""
        self._spill.drop()


async def _read_lines_around(
    env: ExecutionEnvironment, path: str, starts: Mapping[int, int], context: int
) -> dict[int, LinePart]:
    """Return lines and `context` around each, in order; a matched line that is gone is empty."""
    around = {
        near: starts.get(near, 0)
        for number in starts
        for near in range(max(1, number - context), number + context + 1)
    }
    known_lines: dict[int, LinePart] | None = None
    with suppress(OSError):  # it may be gone since it was searched
        if read := getattr(env, "read_lines", None):  # an environment of others may not have it
            known_lines = await read(path, around)
        if known_lines is None:
            content = split_text_lines(await env.read_file(path))
            known_lines = {
                number: LinePart(content[number - 1]) for number in around if number <= len(content)
            }
    lines = {**dict.fromkeys(starts, LinePart("")), **(known_lines or {})}
    return {number: _replace_bytes(lines[number]) for number in sorted(lines)}


def _replace_bytes(part: LinePart) -> LinePart:
    """Return a line with U+FFFD for bytes that are not UTF-8."""
    text = part.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return part._replace(text=text)


_MAX_BINARY_NAMES = 5


def describe_binary_files(paths: Sequence[str]) -> str:
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
    result = await search_path(context.env, arguments.path, search)
    if not isinstance(result, GrepMatches):
        return result
    return await show_matches(context, result, search, MatchDisplay(arguments.context, caps))


def build_grep_tool(tuning: ToolSettings = DEFAULT_SETTINGS) -> AgentTool:
    """Return the tool as it is set."""
    caps = tuning.caps("grep", by_lines=False)
    return AgentTool(
        name="grep",
        description=(
            "Search the content of files for a pattern. Shows file, line number and line; hidden"
            " files are searched too, not those .gitignore leaves out; binary ones are only named."
            f" At most {GREP_LIMIT} matches or {format_limit(caps.max_bytes)}."
        ),
        arguments=GrepArguments,
        run=partial(run_grep, caps=caps),
        replay="safe",
    )
