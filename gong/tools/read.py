"""read: a text file page by page, a notebook as its cells, a PDF as its text, a picture as one."""

from __future__ import annotations

import hashlib
import shlex
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from tape.model.entries import Text

from .documents import (
    UnreadablePdf,
    extract_pdf_text,
    is_pdf,
    render_notebook,
)
from .limits import (
    DEFAULT_SETTINGS,
    LINE_CAPS,
    MAX_KEPT_BYTES,
    OutputCaps,
    ToolSettings,
    encode_text,
    format_limit,
    format_size,
    keep_full_text,
    truncate_head,
)
from .paths import build_path_error, describe_os_error, locate_path
from .pictures import show_picture
from .text_files import decode_text_file
from .tool import AgentTool, ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tool import ToolContext


class ReadArguments(Struct, frozen=True):
    """What to read."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    offset: Annotated[int, Meta(ge=0, description="First line, counted from 1")] | None = None
    limit: Annotated[int, Meta(ge=1, description="How many lines to read at most")] | None = None


class ReadDetails(Struct, frozen=True):
    """Facts about a page that shows only a part of the file."""

    path: str
    line_count: int
    """Lines of the whole file."""
    truncated: bool
    encoding: str
    truncated_by: str | None
    total_lines: int
    """Lines asked for."""
    output_lines: int
    first_line_exceeds_limit: bool = False
    """Nothing is shown, because the first line asked for is too long alone."""


async def run_read(
    arguments: ReadArguments, context: ToolContext, *, caps: OutputCaps = LINE_CAPS
) -> ToolOutcome:
    """Return the requested lines; a cut page says how to continue."""
    content = await read_content(arguments.path, context)
    if isinstance(content, ToolOutcome):
        return content
    lines, path = split_lines(content.text), arguments.path
    start = max((arguments.offset or 1) - 1, 0)
    if start and start >= len(lines):
        return build_offset_error(start + 1, lines)
    page = lines[start:] if arguments.limit is None else lines[start : start + arguments.limit]
    text = "".join(page)
    body = text.removesuffix("\n")
    # The line feed taken off counts too, so that what is shown whole stays within the limit.
    cut = truncate_head(body, caps.max_lines, caps.max_bytes - (len(text) - len(body)))
    rest = len(lines) - start - len(page)
    if cut.first_line_exceeds_limit:
        size, limit = format_size(len(encode_text(page[0].removesuffix("\n")))), caps.max_bytes
        notice = (
            f"Line {start + 1} is {size}, exceeds {format_size(limit)} limit. Use bash:"
            f" sed -n '{start + 1}p' {shlex.quote(path)} | head -c {limit}"
        )
    elif cut.truncated:
        last = start + cut.output_lines
        why = f" ({format_size(caps.max_bytes)} limit)" if cut.truncated_by == "bytes" else ""
        notice = (
            f"Showing lines {start + 1}-{last} of {len(lines)}{why}."
            f" Use offset={last + 1} to continue."
        )
    elif rest:
        next_line = start + len(page) + 1
        notice = f"{rest} more lines in file. Use offset={next_line} to continue."
    else:
        return ToolOutcome.from_text(text)
    details = ReadDetails(
        path=path,
        line_count=len(lines),
        truncated=cut.truncated,
        encoding=content.encoding,
        truncated_by=cut.truncated_by,
        total_lines=len(page),
        output_lines=cut.output_lines,
        first_line_exceeds_limit=cut.first_line_exceeds_limit,
    )
    shown = "\n\n".join(filter(None, (cut.content, f"[{notice}]")))
    full = keep_page(text, path) if cut.truncated else None
    return ToolOutcome((Text(shown),), details, full=full)


class FileContent(NamedTuple):
    """A file as text."""

    text: str
    encoding: str
    """utf-8, utf-16, or pdf."""


async def read_content(path: str, context: ToolContext) -> FileContent | ToolOutcome:
    """Return the text of a file; a result for a picture, or for what cannot be read."""
    try:
        found = await locate_path(context.env, path)
        data = await context.env.read_file(found)
        if context.files:
            context.files.note(await context.env.real_path(found), data)
    except OSError as error:
        if isinstance(error, IsADirectoryError):
            return ToolOutcome.error(f"{describe_os_error(error, path)}. List it with ls.")
        return build_path_error(error, path)
    except ValueError:
        return ToolOutcome.error(f"Not a path: {path!r}.")
    from ..llm.picture_sources import detect_picture_type  # noqa: PLC0415 (slow to load)

    kind = detect_picture_type(data)
    if kind is not None:
        return await show_picture(path, data, kind, context)
    return await _decode_content(data, path, found)


async def _decode_content(data: bytes, path: str, found: str) -> FileContent | ToolOutcome:
    if is_pdf(data):
        try:
            return FileContent(await extract_pdf_text(path, data), "pdf")
        except UnreadablePdf as error:
            return ToolOutcome.error(str(error))
    if found.endswith(".ipynb") and (cells := render_notebook(data)) is not None:
        return FileContent(cells, "utf-8")
    file = decode_text_file(data)
    if file is None:
        return ToolOutcome.error(
            f"Cannot read {path} as text: it is a binary file of"
            f" {format_size(len(data))}. Look into it with bash: file, strings or xxd."
        )
    if file.encoding == "utf-8":
        return FileContent(data[len(file.mark) :].decode("utf-8", "replace"), "utf-8")
    return FileContent(file.text, "utf-16")


def build_offset_error(offset: int, lines: Sequence[str]) -> ToolOutcome:
    """Return the error for an offset beyond the end of the file."""
    return ToolOutcome.error(f"Offset {offset} is beyond end of file ({len(lines)} lines total)")


def keep_page(text: str, path: str) -> str:
    """Return what a result keeps of the lines asked for; of very many the file has the rest."""
    digest = hashlib.sha256(encode_text(text)).hexdigest() if len(text) * 4 > MAX_KEPT_BYTES else ""
    return keep_full_text(text, f"the rest is in {path}; SHA-256 of all {digest}")


def split_lines(text: str) -> list[str]:
    """Return the lines with their ends; a final line feed opens no further line."""
    return StringIO(text, newline="\n").readlines()


def build_read_tool(tuning: ToolSettings = DEFAULT_SETTINGS) -> AgentTool:
    """Return the tool as it is set."""
    caps = tuning.caps("read")
    return AgentTool(
        name="read",
        description=(
            "Read a text file, a notebook, the text of a PDF, or a picture. Shows up to"
            f" {caps.max_lines} lines or {format_limit(caps.max_bytes)}; use offset and limit to"
            " page through longer files."
        ),
        arguments=ReadArguments,
        run=partial(run_read, caps=caps),
        replay="safe",
    )
