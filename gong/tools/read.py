"""read: a text file page by page, a notebook as its cells, a PDF as its text, a picture as one."""

from __future__ import annotations

import hashlib
import shlex
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct

from tape.model.entries import Image, Text

from ..env.wrappers import find_temporary_folder
from ..tool_settings import DEFAULT_SETTINGS, LINE_CAPS, OutputCaps, ToolSettings
from .command import SpillFile
from .documents import (
    UnreadablePdf,
    extract_pdf_text,
    is_pdf,
)
from .limits import (
    MAX_KEPT_BYTES,
    MAX_STORED_BYTES,
    MAX_WHOLE_BYTES,
    encode_text,
    format_limit,
    format_size,
)
from .notebooks import render_notebook
from .output_storage import FullOutput, keep_full_file, keep_full_output
from .paths import build_path_error, describe_os_error, locate_path, measure_oversize
from .pictures import show_picture
from .text_files import BOM, decode_text_file
from .tool import AgentTool, ToolOutcome
from .truncation import keep_full_text, truncate_head

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tape.model.entries import Block

    from ..env.pages import FilePage
    from .notebooks import NotebookPicture
    from .tool import ToolContext

    ReadPage = Callable[..., Awaitable[FilePage | None]]


_MAX_PICTURES = 8
"""Pictures of a notebook in one result."""


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
    start = max((arguments.offset or 1) - 1, 0)
    page = await load_page(arguments.path, start, arguments.limit, context)
    if isinstance(page, ToolOutcome):
        return page
    result = _show_page(page, start, arguments.path, caps)
    count = page.lines if result is None else result.details.output_lines
    pictures = await show_page_pictures(page, start, count, arguments.path, context)
    if result is None:
        return ToolOutcome((Text(page.text), *pictures))
    outcome = ToolOutcome((Text(result.text), *pictures), result.details)
    if not result.details.truncated:
        return outcome
    return outcome.add_full(await keep_page(page, page.text, arguments.path, context))


async def show_page_pictures(
    page: Page, start: int, count: int, path: str, context: ToolContext
) -> list[Block]:
    """Return the pictures that `count` lines of a notebook from the line `start` on name."""
    from ..llm.picture_sources import detect_picture_type  # slow to load

    named = [picture for picture in page.pictures if start <= picture.line < start + count]
    blocks: list[Block] = []
    for picture in named[:_MAX_PICTURES]:
        kind = detect_picture_type(picture.data)
        if kind is not None:
            outcome = await show_picture(path, picture.data, kind, context)
            blocks += [block for block in outcome.content if isinstance(block, Image)]
    return blocks


async def load_page(
    path: str, start: int, limit: int | None, context: ToolContext
) -> Page | ToolOutcome:
    """Return `limit` lines of a file from the line `start` on (from 0; None: all).

    A result for a picture, for what cannot be read, and for a start beyond the end.
    """
    page = await _load_large_page(path, start, limit, context)
    if page is None:
        content = await read_content(path, context)
        if isinstance(content, ToolOutcome):
            return content
        page = _select_page(content, start, limit)
    if isinstance(page, Page) and start and start >= page.total:
        return ToolOutcome.error(
            f"Offset {start + 1} is beyond end of file ({page.total} lines total)"
        )
    return page


class Page(NamedTuple):
    """The lines that were asked for."""

    text: str
    """All of them; of very many the beginning, far beyond what is shown."""
    lines: int
    total: int
    """Lines of the file."""
    first_line_bytes: int
    """Of the first line, without its end."""
    encoding: str
    digest: str | None = None
    """SHA-256 of the whole page of a large file, of which `text` may be the beginning."""
    size: int = 0
    """Bytes of that page."""
    start: int = 0
    """Number of its first line, from 0."""
    pictures: tuple[NotebookPicture, ...] = ()
    """Those of the whole file."""


def _select_page(content: FileContent, start: int, limit: int | None) -> Page:
    lines = split_lines(content.text)
    page = lines[start:] if limit is None else lines[start : start + limit]
    first = len(encode_text(page[0].removesuffix("\n"))) if page else 0
    pictures = content.pictures
    return Page("".join(page), len(page), len(lines), first, content.encoding, pictures=pictures)


async def _load_large_page(
    path: str, start: int, limit: int | None, context: ToolContext
) -> Page | ToolOutcome | None:
    """Return the page of a large text file, which is not read whole; None of any other file."""
    read_page = getattr(context.env, "read_page", None)  # an environment of others may not have it
    if read_page is None:
        return None
    try:
        place = await locate_path(context.env, path)
        page = await read_page(place, start, limit, _MAX_PAGE_BYTES)
        if page is not None and not page.is_binary and context.files:
            context.files.note_digest(await context.env.real_path(place), page.digest)
    except (OSError, ValueError):
        return None  # reading it as usual says what is wrong
    if page is None:
        return None
    if page.is_binary:
        return _refuse_binary(path, page.size)
    text = page.text if start else page.text.removeprefix(BOM)
    return Page(
        text.decode("utf-8", "replace"),
        page.lines,
        page.total,
        page.first_line - 1,
        "utf-8",
        page.page_digest,
        page.page_size,
        start,
    )


_MAX_PAGE_BYTES = 8 * MAX_KEPT_BYTES
"""Bytes of a page of a large file that are held."""


class _ShownPage(NamedTuple):
    text: str
    details: ReadDetails


def _show_page(page: Page, start: int, path: str, caps: OutputCaps) -> _ShownPage | None:
    """Return a page as far as it fits, and how to continue; None if all of it is shown."""
    body = page.text.removesuffix("\n")
    # The line feed taken off counts too, so that what is shown whole stays within the limit.
    cut = truncate_head(body, caps.max_lines, caps.max_bytes - (len(page.text) - len(body)))
    rest = page.total - start - page.lines
    if cut.first_line_exceeds_limit:
        size, limit = format_size(page.first_line_bytes), caps.max_bytes
        notice = (
            f"Line {start + 1} is {size}, exceeds {format_size(limit)} limit. Use bash:"
            f" sed -n '{start + 1}p' {shlex.quote(path)} | head -c {limit}"
        )
    elif cut.truncated:
        last = start + cut.output_lines
        why = f" ({format_size(caps.max_bytes)} limit)" if cut.truncated_by == "bytes" else ""
        notice = (
            f"Showing lines {start + 1}-{last} of {page.total}{why}."
            f" Use offset={last + 1} to continue."
        )
    elif rest:
        next_line = start + page.lines + 1
        notice = f"{rest} more lines in file. Use offset={next_line} to continue."
    else:
        return None
    details = ReadDetails(
        path=path,
        line_count=page.total,
        truncated=cut.truncated,
        encoding=page.encoding,
        truncated_by=cut.truncated_by,
        total_lines=page.lines,
        output_lines=cut.output_lines,
        first_line_exceeds_limit=cut.first_line_exceeds_limit,
    )
    return _ShownPage("\n\n".join(filter(None, (cut.content, f"[{notice}]"))), details)


class FileContent(NamedTuple):
    """A file as text."""

    text: str
    encoding: str
    """utf-8, utf-16, or pdf."""
    pictures: tuple[NotebookPicture, ...] = ()
    """The pictures that a notebook's outputs have."""


async def read_content(path: str, context: ToolContext) -> FileContent | ToolOutcome:
    """Return the text of a file; a result for a picture, or for what cannot be read."""
    try:
        place = await locate_path(context.env, path)
        if size := await measure_oversize(context.env, place):
            return _refuse_size(path, size)
        data = await context.env.read_file(place)
        if context.files:
            context.files.note(await context.env.real_path(place), data)
    except (OSError, ValueError) as error:
        if isinstance(error, IsADirectoryError):
            return ToolOutcome.error(f"{describe_os_error(error, path)}. List it with ls.")
        return build_path_error(error, path)
    from ..llm.picture_sources import detect_picture_type  # slow to load

    kind = detect_picture_type(data)
    if kind is not None:
        return await show_picture(path, data, kind, context)
    return await _decode_content(data, path, place)


async def _decode_content(data: bytes, path: str, place: str) -> FileContent | ToolOutcome:
    if is_pdf(data):
        try:
            return FileContent(await extract_pdf_text(path, data), "pdf")
        except UnreadablePdf as error:
            return ToolOutcome.error(str(error))
    if place.endswith(".ipynb") and (cells := render_notebook(data)) is not None:
        return FileContent(cells.text, "utf-8", cells.pictures)
    file = decode_text_file(data)
    if file is None:
        return _refuse_binary(path, len(data))
    if file.encoding == "utf-8":
        return FileContent(data[len(file.mark) :].decode("utf-8", "replace"), "utf-8")
    return FileContent(file.text, "utf-16")


def _refuse_size(path: str, size: int) -> ToolOutcome:
    return ToolOutcome.error(
        f"Cannot read {path}: it has {format_size(size)}, and of what is not plain text in UTF-8 at"
        f" most {format_limit(MAX_WHOLE_BYTES)} is read. Look into it with bash: file, strings."
    )


def _refuse_binary(path: str, size: int) -> ToolOutcome:
    return ToolOutcome.error(
        f"Cannot read {path} as text: it is a binary file of"
        f" {format_size(size)}. Look into it with bash: file, strings or xxd."
    )


async def keep_page(page: Page, text: str, path: str, context: ToolContext) -> FullOutput:
    """Return what a result keeps of the lines asked for, given as `text`.

    Without a tape, and of a page above MAX_STORED_BYTES, the file has the rest.
    """
    digest = page.digest
    if digest is None and len(text) * 4 > MAX_KEPT_BYTES:
        digest = hashlib.sha256(encode_text(text)).hexdigest()
    rest = f"the rest is in {path}; SHA-256 of all {digest}"
    if page.size <= _MAX_PAGE_BYTES:
        return await keep_full_output(text, context.describe_output(), rest)
    storage = context.describe_output().storage
    if storage is not None and page.size <= MAX_STORED_BYTES:
        full = await _store_large_page(page, path, context)
        if full is not None:
            return full
    return FullOutput(keep_full_text(text, rest, page.size))


async def _store_large_page(page: Page, path: str, context: ToolContext) -> FullOutput | None:
    """Give a page to the storage as a file, without holding it; None where that fails."""
    spill = SpillFile(find_temporary_folder(context.env))

    def take(piece: bytes) -> None:
        spill.take(piece if page.start or spill.total_bytes else piece.removeprefix(BOM))

    try:
        place = await locate_path(context.env, path)
        read_page: ReadPage = context.env.read_page  # type: ignore[attr-defined]
        again = await read_page(place, page.start, page.lines, 0, on_piece=take)
        file = spill.keep()
        if again is None or again.page_digest != page.digest or file is None:
            return None
        return await keep_full_file(file, page.text, page.size, context.describe_output())
    except Exception:  # noqa: BLE001 - whatever fails, the file has it all
        return None
    finally:
        spill.drop()


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
