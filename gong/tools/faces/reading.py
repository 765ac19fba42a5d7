"""read_file and read_many_files: read with numbered lines, and of several files at once."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from tape.blocks import Image, Text, text_of

from ..find import NOTHING, matching
from ..locate import locate, printable_path
from ..read import Content, Details, beyond_the_end, kept_page, lines_of, readable
from ..tool import Tool, ToolResult
from ..truncate import encoded, format_size
from ..truncation.pipeline import limited
from .limits import limits_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tape.blocks import Block

    from ..settings import Tuning
    from ..tool import ToolContext
    from ..truncation.pipeline import Limits

LINES = 2000
_NUMBERED = re.compile(r"^ *\d+ \| ", re.MULTILINE)
MOST_BYTES = 1 << 20
"""Text of several files that is read at once; further ones are only counted."""


class ReadArguments(Struct, frozen=True):
    """What to read."""

    file_path: Annotated[str, Meta(description="Path of the file, absolute or relative")]
    offset: Annotated[int, Meta(ge=0, description="First line, counted from 1")] | None = None
    limit: Annotated[int, Meta(ge=1, description="Lines to read at most")] = LINES


async def _read(arguments: ReadArguments, context: ToolContext, *, limits: Limits) -> ToolResult:
    content = await readable(arguments.file_path, context)
    if isinstance(content, ToolResult):
        return content
    lines = lines_of(content.text)
    start = max((arguments.offset or 1) - 1, 0)
    if start and start >= len(lines):
        return beyond_the_end(start + 1, lines)
    page = lines[start : start + arguments.limit]
    text = _numbered(page, start, len(lines))
    shown = limited(text, limits)
    if len(page) == len(lines) and shown == text:
        return ToolResult.from_text(text)
    details = Details(
        path=arguments.file_path,
        line_count=len(lines),
        truncated=shown != text,
        encoding=content.encoding,
        truncated_by=_cut_by(text, limits) if shown != text else None,
        total_lines=len(page),
        output_lines=len(_NUMBERED.findall(shown)),
    )
    return ToolResult(
        (Text(shown),),
        details,
        full=kept_page(text, arguments.file_path) if shown != text else None,
    )


def _cut_by(text: str, limits: Limits) -> str:
    return "chars" if len(text) > limits.chars else "lines"


def _numbered(page: Sequence[str], start: int, line_count: int) -> str:
    width = max(3, len(str(start + len(page))))
    text = "".join(f"{n:>{width}} | {line}" for n, line in enumerate(page, start + 1))
    rest = line_count - start - len(page)
    if not rest:
        return text
    going_on = f"Use offset={start + len(page) + 1} to continue."
    return f"{text}\n[{rest} more lines in file. {going_on}]"


class ReadManyArguments(Struct, frozen=True):
    """What to read."""

    paths: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Paths, or patterns such as src/**/*.py")
    ]


class ManyDetails(Struct, frozen=True):
    """What was read; names of files, in order."""

    paths: tuple[str, ...]
    failed: tuple[str, ...]
    """Those that could not be read; the text says why."""
    left_out: int
    """Files not read because there was enough."""


async def _read_many(arguments: ReadManyArguments, context: ToolContext) -> ToolResult:
    parts: list[str] = []
    pictures: list[Block] = []
    read: list[str] = []
    failed: list[str] = []
    size = left_out = 0
    content: Content | ToolResult
    async for named in _named(arguments.paths, context):
        if size > MOST_BYTES:
            left_out += 1
            continue
        if isinstance(named, _Refused):
            path, content = named.pattern, named.error
        else:
            path, content = named, await readable(named, context)
        text = content.text if isinstance(content, Content) else text_of(content.content)
        if isinstance(content, ToolResult):
            pictures += (block for block in content.content if isinstance(block, Image))
        (failed if isinstance(content, ToolResult) and content.is_error else read).append(path)
        parts.append(f"--- {printable_path(path)} ---\n\n{text.removesuffix(chr(10))}\n")
        size += len(encoded(text))
    if left_out:
        enough = format_size(MOST_BYTES)
        parts.append(f"[{left_out} more files left out after {enough}. Name fewer at once.]\n")
    said = "\n".join(parts) or NOTHING
    details = ManyDetails(tuple(read), tuple(failed), left_out)
    return ToolResult((Text(said), *pictures), details, is_error=bool(failed) and not read)


class _Refused(NamedTuple):
    """A pattern that cannot be searched for."""

    pattern: str
    error: ToolResult


async def _named(paths: Sequence[str], context: ToolContext) -> AsyncIterator[str | _Refused]:
    """Yield each file once: the paths, and for a pattern those it means or why it means none."""
    seen: set[str] = set()
    for wanted in paths:
        meant = await _meant(wanted, context)
        if isinstance(meant, ToolResult):
            yield _Refused(wanted, meant)
            continue
        for path in meant:
            if path not in seen:
                seen.add(path)
                yield path


async def _meant(wanted: str, context: ToolContext) -> Sequence[str] | ToolResult:
    if not set("*?[{") & set(wanted) or await context.env.file_exists(
        await locate(context.env, wanted)
    ):
        return (wanted,)
    found = await matching(context.env, ".", wanted)
    if isinstance(found, ToolResult):
        return found
    return [one.path for one in found if not one.is_dir]


def reading(tuning: Tuning) -> tuple[Tool, ...]:
    """Return the tool variants that read files."""
    return (
        Tool(
            "read_file",
            f"Read a file, with line numbers; {LINES} lines unless limit says otherwise. Notebooks,"
            " the text of PDFs and pictures are read, too.",
            ReadArguments,
            partial(_read, limits=limits_for("read_file", tuning)),
            "safe",
            limits=limits_for("read_file", tuning),
        ),
        Tool(
            "read_many_files",
            "Read several files at once, named by paths or patterns.",
            ReadManyArguments,
            _read_many,
            "safe",
        ),
    )
