"""read_file, read_many_files, write_file, edit_file and replace: variants of read, write and edit.

read_file numbers its lines; read_many_files reads several files at once.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.model.entries import Image, Text, join_texts

from .. import edit
from ..edit import ReplaceRequest, replace_text
from ..find import NO_FILES_TEXT, find_paths
from ..limits import choose_family_limits, encode_text, format_size
from ..paths import format_path, locate_path
from ..read import (
    FileContent,
    ReadDetails,
    keep_page,
    load_page,
    read_content,
    show_page_pictures,
    split_lines,
)
from ..tool import AgentTool, ToolOutcome
from ..truncation import limit_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import Block

    from ...tool_settings import ToolSettings
    from ..limits import OutputLimits
    from ..tool import ToolContext


READ_FILE_LINES = 2000
_NUMBERED = re.compile(r"^ *\d+ \| ", re.MULTILINE)
READ_MANY_BYTES = 1 << 20
"""Text of several files that is read at once; further ones are only counted."""


class ReadFileArguments(Struct, frozen=True):
    """What to read."""

    file_path: Annotated[str, Meta(description="Path of the file, absolute or relative")]
    offset: Annotated[int, Meta(ge=0, description="First line, counted from 1")] | None = None
    limit: Annotated[int, Meta(ge=1, description="Lines to read at most")] = READ_FILE_LINES


async def _run_read_file(
    arguments: ReadFileArguments, context: ToolContext, *, limits: OutputLimits
) -> ToolOutcome:
    start = max((arguments.offset or 1) - 1, 0)
    content = await load_page(arguments.file_path, start, arguments.limit, context)
    if isinstance(content, ToolOutcome):
        return content
    page = split_lines(content.text)
    text = _number_page(page, start, content.total)
    limited = limit_text(text, limits)
    pictures = await show_page_pictures(content, start, len(page), arguments.file_path, context)
    if len(page) == content.total and limited == text:
        return ToolOutcome((Text(text), *pictures))
    details = ReadDetails(
        path=arguments.file_path,
        line_count=content.total,
        truncated=limited != text,
        encoding=content.encoding,
        truncated_by=("chars" if len(text) > limits.chars else "lines")
        if limited != text
        else None,
        total_lines=len(page),
        output_lines=len(_NUMBERED.findall(limited)),
    )
    outcome = ToolOutcome((Text(limited), *pictures), details)
    if limited == text:
        return outcome
    return outcome.add_full(await keep_page(content, text, arguments.file_path, context))


def _number_page(page: Sequence[str], start: int, line_count: int) -> str:
    width = max(3, len(str(start + len(page))))
    text = "".join(f"{n:>{width}} | {line}" for n, line in enumerate(page, start + 1))
    rest = line_count - start - len(page)
    if not rest:
        return text
    next_page = f"Use offset={start + len(page) + 1} to continue."
    return f"{text}\n[{rest} more lines in file. {next_page}]"


class ReadManyArguments(Struct, frozen=True):
    """What to read."""

    paths: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Paths, or patterns such as src/**/*.py")
    ]


class ReadManyDetails(Struct, frozen=True):
    """What was read; names of files, in order."""

    paths: tuple[str, ...]
    failed: tuple[str, ...]
    """Those that could not be read; the text says why."""
    left_out: int
    """Files not read because there was enough."""


async def _run_read_many_files(arguments: ReadManyArguments, context: ToolContext) -> ToolOutcome:
    parts: list[str] = []
    pictures: list[Block] = []
    read: list[str] = []
    failed: list[str] = []
    size = left_out = 0
    content: FileContent | ToolOutcome
    named: dict[str, ToolOutcome | None] = {}
    for pattern in arguments.paths:
        meant = await _expand_pattern(pattern, context)
        if isinstance(meant, ToolOutcome):
            named[pattern] = meant
        else:
            named |= {path: None for path in meant if path not in named}
    for path, refused in named.items():
        if size > READ_MANY_BYTES:
            left_out += 1
            continue
        content = refused or await read_content(path, context)
        text = content.text if isinstance(content, FileContent) else join_texts(content.content)
        if isinstance(content, ToolOutcome):
            pictures += (block for block in content.content if isinstance(block, Image))
        (failed if isinstance(content, ToolOutcome) and content.is_error else read).append(path)
        parts.append(f"--- {format_path(path)} ---\n\n{text.removesuffix(chr(10))}\n")
        size += len(encode_text(text))
    if left_out:
        enough = format_size(READ_MANY_BYTES)
        parts.append(f"[{left_out} more files left out after {enough}. Name fewer at once.]\n")
    body = "\n".join(parts) or NO_FILES_TEXT
    details = ReadManyDetails(tuple(read), tuple(failed), left_out)
    return ToolOutcome((Text(body), *pictures), details, is_error=bool(failed) and not read)


async def _expand_pattern(pattern: str, context: ToolContext) -> Sequence[str] | ToolOutcome:
    if not set("*?[{") & set(pattern):
        return (pattern,)
    with suppress(OSError, ValueError):  # reading it says what is wrong
        if await context.env.file_exists(await locate_path(context.env, pattern)):
            return (pattern,)
    paths = await find_paths(context.env, ".", pattern)
    if isinstance(paths, ToolOutcome):
        return paths
    return [entry.path for entry in paths if not entry.is_dir]


def build_reading_tools(tuning: ToolSettings) -> tuple[AgentTool, ...]:
    """Return the tool variants that read files."""
    limits = choose_family_limits("read_file", tuning)
    return (
        AgentTool(
            "read_file",
            f"Read a file, with line numbers; {READ_FILE_LINES} lines unless limit says otherwise."
            " Notebooks, the text of PDFs and pictures are read, too.",
            ReadFileArguments,
            partial(_run_read_file, limits=limits),
            "safe",
            limits=limits,
        ),
        AgentTool(
            "read_many_files",
            "Read several files at once, named by paths or patterns.",
            ReadManyArguments,
            _run_read_many_files,
            "safe",
        ),
    )


_PATH = "Path of the file, absolute or relative"


class WriteFileArguments(Struct, frozen=True):
    """What to write, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    content: Annotated[str, Meta(description="The whole new content of the file")]


async def _run_write_file(arguments: WriteFileArguments, context: ToolContext) -> ToolOutcome:
    return await edit.run_write(
        edit.WriteArguments(arguments.file_path, arguments.content), context
    )


class EditFileArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="The new text")]
    replace_all: Annotated[bool, Meta(description="Replace every place, not the only one")] = False

    @property
    def every(self) -> bool:
        """Whether every place is replaced."""
        return self.replace_all


class ReplaceArguments(Struct, frozen=True):
    """What to replace by what, and where."""

    file_path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file")]
    new_string: Annotated[str, Meta(description="The new text")]
    instruction: Annotated[str, Meta(description="What the change is for")] = ""
    allow_multiple: Annotated[bool, Meta(description="Replace every place")] = False

    @property
    def every(self) -> bool:
        """Whether every place is replaced."""
        return self.allow_multiple


def _build_request(arguments: EditFileArguments | ReplaceArguments) -> ReplaceRequest:
    old, new = arguments.old_string, arguments.new_string
    return ReplaceRequest(arguments.file_path, old, new, arguments.every, "old_string")


async def _preview_replacement(
    arguments: EditFileArguments | ReplaceArguments, context: ToolContext
) -> ToolOutcome:
    return await edit.preview_replacement(context, _build_request(arguments))


async def _preview_write_file(arguments: WriteFileArguments, context: ToolContext) -> ToolOutcome:
    whole = edit.WriteArguments(arguments.file_path, arguments.content)
    return await edit.preview_write(whole, context)


async def _replace_in_file(
    arguments: EditFileArguments | ReplaceArguments, context: ToolContext
) -> ToolOutcome:
    details = await replace_text(context, _build_request(arguments))
    if isinstance(details, ToolOutcome):
        return details
    path = arguments.file_path
    times = "1 occurrence" if details.replacements == 1 else f"{details.replacements} occurrences"
    loosely = "" if details.exact else " It matched but for blanks, quotes or dashes."
    return ToolOutcome.from_text(f"Successfully replaced {times} in {path}.{loosely}", details)


def build_changing_tools(tuning: ToolSettings) -> tuple[AgentTool, ...]:
    """Return the tool variants that change files."""
    return (
        AgentTool(
            "write_file",
            "Write a file: creates it with the folders it needs, or replaces its content.",
            WriteFileArguments,
            _run_write_file,
            limits=choose_family_limits("write_file", tuning),
            find_targets=lambda arguments, env: edit.find_new_target(arguments.file_path, env),
            preview=_preview_write_file,
        ),
        AgentTool(
            "edit_file",
            "Replace text in a file. old_string must occur once, unless replace_all.",
            EditFileArguments,
            _replace_in_file,
            limits=choose_family_limits("edit_file", tuning),
            find_targets=lambda arguments, env: edit.find_edit_target(arguments.file_path, env),
            preview=_preview_replacement,
        ),
        AgentTool(
            "replace",
            "Replace text in a file. old_string must occur once, unless allow_multiple.",
            ReplaceArguments,
            _replace_in_file,
            limits=choose_family_limits("replace", tuning),
            find_targets=lambda arguments, env: edit.find_edit_target(arguments.file_path, env),
            preview=_preview_replacement,
        ),
    )
