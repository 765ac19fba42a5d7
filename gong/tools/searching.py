"""Lines that match, as a model reads them: found, read again with what stands around, and cut."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from tape.blocks import Text

from .locate import format_path, locate_path
from .settings import OutputCaps
from .text_files import decode_text_file, describe_os_error
from .tool import ToolResult
from .truncate import (
    MAX_KEPT_BYTES,
    MAX_LINE_CHARS,
    format_size,
    keep_full_text,
    truncate_head,
    truncate_line,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import ExecutionEnvironment, LineMatch, LineMatches, Search
    from .truncate import TruncatedText


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
    """Return what is said where there may be more than was asked for."""
    return f"{limit} {what} limit reached. Use {name}={limit * 2} for more, or refine pattern"


def describe_cap_reached(cut: TruncatedText) -> str:
    """Return what is said of a text that was cut."""
    if cut.truncated_by == "lines":
        return f"{cut.max_lines} lines limit reached"
    return f"{format_size(cut.max_bytes or 0)} limit reached"


def append_notices(text: str, notices: Sequence[str]) -> str:
    """Return a text with what is said of its cuts after it."""
    return f"{text}\n\n[{'. '.join(notices)}]" if notices else text


def _list_file_lines(
    path: str, lines: Sequence[str], found: Sequence[LineMatch], context: int
) -> list[tuple[str, str]]:
    """Return the lines to show of one file, each once: where each stands, and the whole of it."""
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
        # Gone since it was searched.
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
