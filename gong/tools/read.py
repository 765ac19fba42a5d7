"""read: a text file page by page, a notebook as its cells, a PDF as its text, a picture as one."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from tape.model.entries import Text

from .documents import (
    UnreadablePdf,
    detect_picture_type,
    extract_pdf_text,
    is_pdf,
    open_located_file,
    render_notebook,
)
from .limits import (
    MAX_KEPT_BYTES,
    OutputCaps,
    ToolSettings,
    TruncatedText,
    encode_text,
    format_limit,
    format_size,
    keep_full_text,
    truncate_head,
)
from .pictures import show_picture
from .text_files import decode_text_file, describe_os_error
from .tool import AgentTool, ToolResult

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


@dataclass(frozen=True, slots=True)
class _Page:
    """The lines asked for."""

    path: str
    text: str
    first: int
    """Number of its first line, from 1."""
    count: int
    """How many lines it has."""
    line_count: int
    """How many the file has."""
    encoding: str

    @property
    def rest(self) -> int:
        """Lines of the file after this page."""
        return self.line_count - (self.first - 1) - self.count


async def run_read(
    arguments: ReadArguments, context: ToolContext, *, caps: OutputCaps = OutputCaps()
) -> ToolResult:
    """Return the requested lines; a cut page says how to continue."""
    content = await read_content(arguments.path, context)
    return content if isinstance(content, ToolResult) else _show_page(content, arguments, caps)


class FileContent(NamedTuple):
    """A file as text."""

    text: str
    encoding: str
    """utf-8, utf-16, or pdf."""


async def read_content(path: str, context: ToolContext) -> FileContent | ToolResult:
    """Return the text of a file; a result for a picture, or for what cannot be read."""
    try:
        data, found = await open_located_file(context.env, path)
    except OSError as error:
        return _build_read_error(error, path)
    except ValueError:
        return ToolResult.error(f"Not a path: {path!r}.")
    return await _decode_content(data, path, found, context)


async def _decode_content(
    data: bytes, path: str, found: str, context: ToolContext
) -> FileContent | ToolResult:
    kind = detect_picture_type(data)
    if kind is not None:
        return await show_picture(path, data, kind, context)
    if is_pdf(data):
        return await _read_pdf(path, data)
    if found.endswith(".ipynb") and (cells := render_notebook(data)) is not None:
        return FileContent(cells, "utf-8")
    return _read_text(path, data)


async def _read_pdf(path: str, data: bytes) -> FileContent | ToolResult:
    try:
        return FileContent(await extract_pdf_text(path, data), "pdf")
    except UnreadablePdf as error:
        return ToolResult.error(str(error))


def _read_text(path: str, data: bytes) -> FileContent | ToolResult:
    file = decode_text_file(data)
    if file is None:
        return ToolResult.error(
            f"Cannot read {path} as text: it is a binary file of"
            f" {format_size(len(data))}. Look into it with bash: file, strings or xxd."
        )
    if file.encoding == "utf-8":
        return FileContent(data[len(file.mark) :].decode("utf-8", "replace"), "utf-8")
    return FileContent(file.text, "utf-16")


def _build_read_error(error: OSError, path: str) -> ToolResult:
    match error:
        case IsADirectoryError():
            return ToolResult.error(f"{describe_os_error(error, path)}. List it with ls.")
        case FileNotFoundError():
            return ToolResult.error(describe_os_error(error, path), kind="FileNotFound")
        case PermissionError():
            return ToolResult.error(describe_os_error(error, path), kind="PermissionDenied")
    return ToolResult.error(describe_os_error(error, path))


def _show_page(content: FileContent, arguments: ReadArguments, caps: OutputCaps) -> ToolResult:
    lines = split_lines(content.text)
    start = max((arguments.offset or 1) - 1, 0)
    if start and start >= len(lines):
        return build_offset_error(start + 1, lines)
    chosen = lines[start:] if arguments.limit is None else lines[start : start + arguments.limit]
    page = _Page(
        arguments.path, "".join(chosen), start + 1, len(chosen), len(lines), content.encoding
    )
    return _cut_page(page, caps)


def build_offset_error(offset: int, lines: Sequence[str]) -> ToolResult:
    """Return the error for an offset beyond the end of the file."""
    return ToolResult.error(f"Offset {offset} is beyond end of file ({len(lines)} lines total)")


def keep_page(text: str, path: str) -> str:
    """Return what a result keeps of the lines asked for; of very many the file has the rest."""
    digest = hashlib.sha256(encode_text(text)).hexdigest() if len(text) * 4 > MAX_KEPT_BYTES else ""
    return keep_full_text(text, f"the rest is in {path}; SHA-256 of all {digest}")


def split_lines(text: str) -> list[str]:
    """Return the lines with their ends; a final line feed opens no further line."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _cut_page(page: _Page, caps: OutputCaps) -> ToolResult:
    body = page.text.removesuffix("\n")
    # The line feed taken off counts too, so that what is shown whole stays within the limit.
    cut = truncate_head(body, caps.max_lines, caps.max_bytes - (len(page.text) - len(body)))
    if cut.truncated:
        shown = _append_notice(cut.content, _describe_cut(page, cut, caps))
        return ToolResult(
            (Text(shown),), _build_read_details(page, cut), full=keep_page(page.text, page.path)
        )
    if not page.rest:
        return ToolResult.from_text(page.text)
    more = f"[{page.rest} more lines in file. Use offset={page.first + page.count} to continue.]"
    return ToolResult.from_text(_append_notice(body, more), _build_read_details(page, cut))


def _describe_cut(page: _Page, cut: TruncatedText, caps: OutputCaps) -> str:
    limit = format_size(caps.max_bytes)
    if cut.first_line_exceeds_limit:
        size = format_size(len(encode_text(page.text.partition("\n")[0])))
        return (
            f"[Line {page.first} is {size}, exceeds {limit} limit. Use bash:"
            f" sed -n '{page.first}p' {shlex.quote(page.path)} | head -c {caps.max_bytes}]"
        )
    last = page.first + cut.output_lines - 1
    by_bytes = f" ({limit} limit)" if cut.truncated_by == "bytes" else ""
    return (
        f"[Showing lines {page.first}-{last} of {page.line_count}{by_bytes}."
        f" Use offset={last + 1} to continue.]"
    )


def _append_notice(content: str, notice: str) -> str:
    return f"{content}\n\n{notice}" if content else notice


def _build_read_details(page: _Page, cut: TruncatedText) -> ReadDetails:
    return ReadDetails(
        path=page.path,
        line_count=page.line_count,
        truncated=cut.truncated,
        encoding=page.encoding,
        truncated_by=cut.truncated_by,
        total_lines=page.count,
        output_lines=cut.output_lines,
        first_line_exceeds_limit=cut.first_line_exceeds_limit,
    )


def build_read_tool(tuning: ToolSettings = ToolSettings()) -> AgentTool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    caps = tuning.caps("read")
    return AgentTool(
        name="read",
        description=(
            "Read a text file, a notebook, the text of a PDF, or a picture. Shows up to"
            f" {caps.max_lines} lines or {format_limit(caps.max_bytes)}; use offset and limit to page"
            " through longer files."
        ),
        arguments=ReadArguments,
        run=partial(run_read, caps=caps),
        replay="safe",
    )


READ_TOOL = build_read_tool()
