"""read: a text file page by page, a notebook as its cells, a picture as a picture."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from .opening import notebook_text, opened, picture_type
from .pictures import shown_picture
from .text_files import failure, text_file
from .tool import Tool, ToolResult
from .truncate import MAX_BYTES, Result, encoded, format_size, truncate_head

if TYPE_CHECKING:
    from .tool import ToolContext


class Arguments(Struct, frozen=True):
    """What to read."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    offset: Annotated[int, Meta(ge=0, description="First line, counted from 1")] | None = None
    limit: Annotated[int, Meta(ge=1, description="How many lines to read at most")] | None = None


class Details(Struct, frozen=True):
    """What stands behind a page: there is more of the file than it shows."""

    path: str
    line_count: int
    """Lines of the whole file."""
    truncated: bool
    encoding: str
    truncated_by: str | None
    total_lines: int
    """Lines asked for."""
    output_lines: int


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


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    """Return the lines asked for; a cut page says how to go on."""
    content = await readable(arguments.path, context)
    return content if isinstance(content, ToolResult) else _shown(content, arguments)


class Content(NamedTuple):
    """A file as text."""

    text: str
    encoding: str


async def readable(path: str, context: ToolContext) -> Content | ToolResult:
    """Return the text of a file; a result for a picture, or for what cannot be read."""
    try:
        data, found = await opened(context.env, path)
    except OSError as error:
        return _failed(error, path)
    except ValueError:
        return ToolResult.error(f"Not a path: {path!r}.")
    return await _of_bytes(data, path, found, context)


async def _of_bytes(
    data: bytes, path: str, found: str, context: ToolContext
) -> Content | ToolResult:
    kind = picture_type(data)
    if kind is not None:
        return await shown_picture(path, data, kind, context)
    if found.endswith(".ipynb") and (cells := notebook_text(data)) is not None:
        return Content(cells, "utf-8")
    file = text_file(data)
    if file is None:
        return ToolResult.error(
            f"Cannot read {path} as text: it is a binary file of"
            f" {format_size(len(data))}. Look into it with bash: file, strings or xxd."
        )
    if file.encoding == "utf-8":
        return Content(data[len(file.mark) :].decode("utf-8", "replace"), "utf-8")
    return Content(file.text, "utf-16")


def _failed(error: OSError, path: str) -> ToolResult:
    match error:
        case IsADirectoryError():
            return ToolResult.error(f"{failure(error, path)}. List it with ls.")
        case FileNotFoundError():
            return ToolResult.error(failure(error, path), kind="FileNotFound")
        case PermissionError():
            return ToolResult.error(failure(error, path), kind="PermissionDenied")
    return ToolResult.error(failure(error, path))


def _shown(content: Content, arguments: Arguments) -> ToolResult:
    lines = lines_of(content.text)
    start = max((arguments.offset or 1) - 1, 0)
    if start and start >= len(lines):
        return ToolResult.error(
            f"Offset {arguments.offset} is beyond end of file ({len(lines)} lines total)"
        )
    chosen = lines[start:] if arguments.limit is None else lines[start : start + arguments.limit]
    page = _Page(
        arguments.path, "".join(chosen), start + 1, len(chosen), len(lines), content.encoding
    )
    return _cut(page)


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends; a final line feed opens no further line."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _cut(page: _Page) -> ToolResult:
    body = page.text.removesuffix("\n")
    # The line feed taken off counts too, so that what is shown whole stays within the limit.
    cut = truncate_head(body, max_bytes=MAX_BYTES - (len(page.text) - len(body)))
    if cut.truncated:
        return ToolResult.from_text(_joined(cut.content, _notice(page, cut)), _details(page, cut))
    if not page.rest:
        return ToolResult.from_text(page.text)
    more = f"[{page.rest} more lines in file. Use offset={page.first + page.count} to continue.]"
    return ToolResult.from_text(_joined(body, more), _details(page, cut))


def _notice(page: _Page, cut: Result) -> str:
    if cut.first_line_exceeds_limit:
        size = format_size(len(encoded(page.text.partition("\n")[0])))
        return (
            f"[Line {page.first} is {size}, exceeds {format_size(MAX_BYTES)} limit. Use bash:"
            f" sed -n '{page.first}p' {shlex.quote(page.path)} | head -c {MAX_BYTES}]"
        )
    last = page.first + cut.output_lines - 1
    limit = f" ({format_size(MAX_BYTES)} limit)" if cut.truncated_by == "bytes" else ""
    return (
        f"[Showing lines {page.first}-{last} of {page.line_count}{limit}."
        f" Use offset={last + 1} to continue.]"
    )


def _joined(content: str, notice: str) -> str:
    return f"{content}\n\n{notice}" if content else notice


def _details(page: _Page, cut: Result) -> Details:
    return Details(
        path=page.path,
        line_count=page.line_count,
        truncated=cut.truncated,
        encoding=page.encoding,
        truncated_by=cut.truncated_by,
        total_lines=page.count,
        output_lines=cut.output_lines,
    )


TOOL = Tool(
    name="read",
    description=(
        "Read a text file, a notebook or a picture. Shows up to 2000 lines or 50KB; use offset and"
        " limit to page through longer files."
    ),
    arguments=Arguments,
    run=run,
    replay="safe",
)
