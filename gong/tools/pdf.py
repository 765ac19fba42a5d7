"""The text of a PDF, page by page. pypdf reads it; it is an extra, and loaded when it is needed."""

from __future__ import annotations

import asyncio
import logging
from io import BytesIO
from threading import Event
from typing import TYPE_CHECKING

from .truncate import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypdf import PdfReader

_ADVICE = "Or look into it with bash: pdftotext -layout FILE -"


class UnreadablePdf(Exception):
    """Why there is no text, in words for the model."""


async def extract_pdf_text(path: str, data: bytes) -> str:
    """Return the text of all pages, each after a line with its number. Raises Unreadable.

    It is read in a thread, and cancelling stops it after the page it is at.
    """
    stop = Event()
    try:
        return await asyncio.to_thread(_extract_text, path, data, stop)
    finally:
        stop.set()


def _extract_text(path: str, data: bytes, stop: Event) -> str:
    what = f"Cannot read {path}: it is a PDF of {format_size(len(data))}"
    try:
        from pypdf import PdfReader  # noqa: PLC0415 (an extra, and slow to load)
    except ImportError:
        raise UnreadablePdf(
            f"{what}, and pypdf is not installed: pip install 'gong[pdf]'. {_ADVICE}"
        ) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells every oddity of a file
    try:
        pages = list(_extract_pages(PdfReader(BytesIO(data)), stop))
    except Exception as error:
        said = str(error) or type(error).__name__
        raise UnreadablePdf(f"{what} that is damaged or locked: {said}. {_ADVICE}") from error
    if not any(text for _, text in pages):
        raise UnreadablePdf(
            f"{what} without text, {len(pages)} pages of pictures perhaps."
            " Make pictures of its pages with bash: pdftoppm -png FILE page, and read those."
        )
    return "\n".join(f"--- page {n} of {len(pages)} ---\n\n{text}\n" for n, text in pages)


def _extract_pages(reader: PdfReader, stop: Event) -> Iterator[tuple[int, str]]:
    for number, page in enumerate(reader.pages, 1):
        if stop.is_set():
            return
        text = page.extract_text().strip()
        yield number, "\n".join(line.rstrip() for line in text.split("\n"))
