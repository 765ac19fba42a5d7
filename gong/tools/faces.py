"""The tools under the names and with the arguments that model families are used to.

Each is a thin face: what it does is done by the tool of the default profile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from ..env.protocol import Search
from . import shell, write
from .find import NOTHING, listed, matching
from .read import Content, lines_of, readable
from .replacing import Wish, replace_text
from .searching import Found, found_in, shown
from .text_files import failure
from .tool import Tool, ToolContext, ToolResult
from .truncation.pipeline import LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

LINES = 2000
MATCHES = 100
_PATH = "Path of the file, absolute or relative"


class ReadArguments(Struct, frozen=True):
    """What to read."""

    file_path: Annotated[str, Meta(description=_PATH)]
    offset: Annotated[int, Meta(ge=0, description="First line, counted from 1")] | None = None
    limit: Annotated[int, Meta(ge=1, description="Lines to read at most")] = LINES


async def _read(arguments: ReadArguments, context: ToolContext) -> ToolResult:
    content = await readable(arguments.file_path, context)
    if isinstance(content, ToolResult):
        return content
    lines = lines_of(content.text)
    start = max((arguments.offset or 1) - 1, 0)
    if start and start >= len(lines):
        return ToolResult.error(
            f"Offset {arguments.offset} is beyond end of file ({len(lines)} lines total)"
        )
    return ToolResult.from_text(_numbered(lines, start, arguments.limit))


def _numbered(lines: Sequence[str], start: int, limit: int) -> str:
    page = lines[start : start + limit]
    width = max(3, len(str(start + len(page))))
    text = "".join(f"{n:>{width}} | {line}" for n, line in enumerate(page, start + 1))
    rest = len(lines) - start - len(page)
    if not rest:
        return text
    going_on = f"Use offset={start + len(page) + 1} to continue."
    return f"{text}\n[{rest} more lines in file. {going_on}]"


class ReadManyArguments(Struct, frozen=True):
    """What to read."""

    paths: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Paths, or patterns such as src/**/*.py")
    ]


async def _read_many(arguments: ReadManyArguments, context: ToolContext) -> ToolResult:
    parts: list[str] = []
    for wanted in arguments.paths:
        for path in await _named(wanted, context):
            content = await readable(path, context)
            text = content.text if isinstance(content, Content) else _said(content)
            parts.append(f"--- {path} ---\n\n{text.removesuffix(chr(10))}\n")
    return ToolResult.from_text("\n".join(parts) or NOTHING)


async def _named(wanted: str, context: ToolContext) -> Sequence[str]:
    """Return the path, or those a pattern means."""
    if not set("*?[{") & set(wanted) or await context.env.file_exists(context.env.resolve(wanted)):
        return (wanted,)
    found = await matching(context.env, ".", wanted)
    return () if isinstance(found, ToolResult) else [one.path for one in found if not one.is_dir]


def _said(result: ToolResult) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


class WriteArguments(Struct, frozen=True):
    """What to write, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    content: Annotated[str, Meta(description="The whole new content of the file")]


async def _write(arguments: WriteArguments, context: ToolContext) -> ToolResult:
    return await write.run(write.Arguments(arguments.file_path, arguments.content), context)


class EditArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="Text to put in its place")]
    replace_all: Annotated[bool, Meta(description="Replace every place, not the only one")] = False


async def _edit(arguments: EditArguments, context: ToolContext) -> ToolResult:
    return await _edited(arguments, context, every=arguments.replace_all)


class ReplaceArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="Text to put in its place")]
    instruction: Annotated[str, Meta(description="What the change is for")] = ""
    allow_multiple: Annotated[bool, Meta(description="Replace every place")] = False


async def _replace(arguments: ReplaceArguments, context: ToolContext) -> ToolResult:
    return await _edited(arguments, context, every=arguments.allow_multiple)


async def _edited(
    arguments: EditArguments | ReplaceArguments, context: ToolContext, *, every: bool
) -> ToolResult:
    path = arguments.file_path
    wish = Wish(path, arguments.old_string, arguments.new_string, every, "old_string")
    made = await replace_text(context.env, wish)
    if isinstance(made, ToolResult):
        return made
    times = "1 occurrence" if made.replacements == 1 else f"{made.replacements} occurrences"
    loosely = "" if made.exact else " It matched but for blanks, quotes or dashes."
    return ToolResult.from_text(f"Successfully replaced {times} in {path}.{loosely}", made)


class GrepArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Regular expression")]
    path: Annotated[str, Meta(description="Folder or file to search; here if absent")] = "."
    glob_filter: Annotated[str, Meta(description="Only files that match, such as *.py")] | None = (
        None
    )
    case_insensitive: Annotated[bool, Meta(description="Take a and A for the same")] = False
    max_results: Annotated[int, Meta(ge=1, description="Matches to show at most")] = MATCHES
    output_mode: Annotated[
        Literal["content", "files_with_matches", "count"],
        Meta(description="Lines, only the files, or how many lines in each"),
    ] = "content"


async def _grep(arguments: GrepArguments, context: ToolContext) -> ToolResult:
    search = Search(
        pattern=arguments.pattern,
        glob=arguments.glob_filter,
        ignore_case=arguments.case_insensitive,
        limit=arguments.max_results,
    )
    found = await found_in(context.env, arguments.path, search)
    if not isinstance(found, Found):
        return found
    if arguments.output_mode == "content" or not found.matches.found:
        return await shown(context.env, found, search, 0)
    counts: dict[str, int] = {}
    for match in found.matches.found:
        counts[match.path] = counts.get(match.path, 0) + 1
    if arguments.output_mode == "count":
        return ToolResult.from_text("\n".join(f"{path}:{n}" for path, n in counts.items()))
    return ToolResult.from_text("\n".join(counts))


class GlobArguments(Struct, frozen=True):
    """What to look for, and where."""

    pattern: Annotated[str, Meta(description="Pattern of paths, such as **/*.ts")]
    path: Annotated[str, Meta(description="Folder to look in; here if absent")] = "."


async def _glob(arguments: GlobArguments, context: ToolContext) -> ToolResult:
    found = await matching(context.env, arguments.path, arguments.pattern)
    if isinstance(found, ToolResult):
        return found
    files = [one for one in found if not one.is_dir]
    newest_first = sorted(files, key=lambda one: (-one.changed_ns, one.path))
    return listed(newest_first, arguments.pattern, LIMITS["glob"].lines or len(files))


class ListArguments(Struct, frozen=True):
    """What to list."""

    path: Annotated[str, Meta(description="Path of the folder; here if absent")] = "."
    depth: Annotated[int, Meta(ge=1, description="How many levels deep")] = 1


async def _list(arguments: ListArguments, context: ToolContext) -> ToolResult:
    try:
        path = context.env.resolve(arguments.path)
        entries = await context.env.list_directory(path, arguments.depth)
    except FileNotFoundError:
        return ToolResult.error(f"Path not found: {arguments.path}", kind="FileNotFound")
    except OSError as error:
        return ToolResult.error(failure(error, arguments.path))
    names = (f"{entry.name}/" if entry.is_dir else entry.name for entry in entries)
    return ToolResult.from_text("\n".join(names) or "(empty directory)")


def _face(tool: Tool) -> Tool:
    return replace(tool, limits=LIMITS.get(tool.name))


FACES = (
    *map(
        _face,
        (
            Tool(
                "read_file",
                f"Read a file, with line numbers; {LINES} lines unless limit says otherwise.",
                ReadArguments,
                _read,
                "safe",
            ),
            Tool(
                "read_many_files",
                "Read several files at once, named by paths or patterns.",
                ReadManyArguments,
                _read_many,
                "safe",
            ),
            Tool(
                "write_file",
                "Write a file: creates it with the folders it needs, or replaces its content.",
                WriteArguments,
                _write,
            ),
            Tool(
                "edit_file",
                "Replace text in a file. old_string must stand there once, unless replace_all.",
                EditArguments,
                _edit,
            ),
            Tool(
                "replace",
                "Replace text in a file. old_string must stand there once, unless allow_multiple.",
                ReplaceArguments,
                _replace,
            ),
            Tool(
                "grep_search",
                f"Search the content of files for a pattern; at most {MATCHES} matches.",
                GrepArguments,
                _grep,
                "safe",
            ),
            Tool(
                "glob",
                "Find files by a pattern of their paths, the last changed first.",
                GlobArguments,
                _glob,
                "safe",
            ),
            Tool("list_dir", "List a folder, several levels deep.", ListArguments, _list, "safe"),
        ),
    ),
    shell.TOOL,
)
"""Every face, by its own name."""
