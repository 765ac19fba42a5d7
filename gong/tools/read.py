"""read: a text file page by page, a notebook as its cells, a PDF as its text, a picture as one."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from tape.blocks import Text

from .notebook import notebook_text
from .opening import is_pdf, opened, picture_type
from .pdf import Unreadable, pdf_text
from .pictures import shown_picture
from .settings import Caps, Tuning
from .text_files import failure, text_file
from .tool import Tool, ToolResult
from .truncate import (
    MAX_KEPT,
    Result,
    encoded,
    format_size,
    in_short,
    kept_whole,
    truncate_head,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .tool import ToolContext


class Arguments(Struct, frozen=True):
    """What to read."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    offset: Annotated[int, Meta(ge=0, description="First line, counted from 1")] | None = None
    limit: Annotated[int, Meta(ge=1, description="How many lines to read at most")] | None = None


class Details(Struct, frozen=True):
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


async def run(arguments: Arguments, context: ToolContext, *, caps: Caps = Caps()) -> ToolResult:  # noqa: B008 (a frozen value)
    """Return the requested lines; a cut page says how to continue."""
    content = await readable(arguments.path, context)
    return content if isinstance(content, ToolResult) else _shown(content, arguments, caps)


class Content(NamedTuple):
    """A file as text."""

    text: str
    encoding: str
    """utf-8, utf-16, or pdf."""


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
    if is_pdf(data):
        return await _of_pdf(path, data)
    if found.endswith(".ipynb") and (cells := notebook_text(data)) is not None:
        return Content(cells, "utf-8")
    return _of_text(path, data)


async def _of_pdf(path: str, data: bytes) -> Content | ToolResult:
    try:
        return Content(await pdf_text(path, data), "pdf")
    except Unreadable as error:
        return ToolResult.error(str(error))


def _of_text(path: str, data: bytes) -> Content | ToolResult:
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


def _shown(content: Content, arguments: Arguments, caps: Caps) -> ToolResult:
    lines = lines_of(content.text)
    start = max((arguments.offset or 1) - 1, 0)
    if start and start >= len(lines):
        return beyond_the_end(start + 1, lines)
    chosen = lines[start:] if arguments.limit is None else lines[start : start + arguments.limit]
    page = _Page(
        arguments.path, "".join(chosen), start + 1, len(chosen), len(lines), content.encoding
    )
    return _cut(page, caps)


def beyond_the_end(offset: int, lines: Sequence[str]) -> ToolResult:
    """Return the error for an offset beyond the end of the file."""
    return ToolResult.error(f"Offset {offset} is beyond end of file ({len(lines)} lines total)")


def kept_page(text: str, path: str) -> str:
    """Return what a result keeps of the lines asked for; of very many the file has the rest."""
    digest = hashlib.sha256(encoded(text)).hexdigest() if len(text) * 4 > MAX_KEPT else ""
    return kept_whole(text, f"the rest is in {path}; SHA-256 of all {digest}")


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends; a final line feed opens no further line."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _cut(page: _Page, caps: Caps) -> ToolResult:
    body = page.text.removesuffix("\n")
    # The line feed taken off counts too, so that what is shown whole stays within the limit.
    cut = truncate_head(body, caps.max_lines, caps.max_bytes - (len(page.text) - len(body)))
    if cut.truncated:
        shown = _joined(cut.content, _notice(page, cut, caps))
        return ToolResult((Text(shown),), _details(page, cut), full=kept_page(page.text, page.path))
    if not page.rest:
        return ToolResult.from_text(page.text)
    more = f"[{page.rest} more lines in file. Use offset={page.first + page.count} to continue.]"
    return ToolResult.from_text(_joined(body, more), _details(page, cut))


def _notice(page: _Page, cut: Result, caps: Caps) -> str:
    limit = format_size(caps.max_bytes)
    if cut.first_line_exceeds_limit:
        size = format_size(len(encoded(page.text.partition("\n")[0])))
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
        first_line_exceeds_limit=cut.first_line_exceeds_limit,
    )


def read(tuning: Tuning = Tuning()) -> Tool:  # noqa: B008 (a frozen value)
    """Return the tool as it is set."""
    caps = tuning.caps("read")
    return Tool(
        name="read",
        description=(
            "Read a text file, a notebook, the text of a PDF, or a picture. Shows up to"
            f" {caps.max_lines} lines or {in_short(caps.max_bytes)}; use offset and limit to page"
            " through longer files."
        ),
        arguments=Arguments,
        run=partial(run, caps=caps),
        replay="safe",
    )


TOOL = read()
