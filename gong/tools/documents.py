"""Whether a file is a PDF, told by its bytes, and the text of one, page by page.

pypdf reads it, an extra that is loaded when it is needed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from io import BytesIO
from threading import Event

from .limits import format_size

_PDF = re.compile(rb"%PDF-[0-9]\.[0-9]")
_BEFORE_PDF = 1024


def is_pdf(data: bytes) -> bool:
    """Whether this is a PDF, whatever its name; a few bytes may stand before its mark."""
    return _PDF.search(data, 0, _BEFORE_PDF) is not None


_ADVICE = "Or look into it with bash: pdftotext -layout FILE -"


class UnreadablePdf(Exception):
    """Why there is no text, in words for the model."""


async def extract_pdf_text(path: str, data: bytes) -> str:
    """Return the text of all pages, each after a line with its number. Raises UnreadablePdf.

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
        from pypdf import PdfReader  # an extra, and slow to load
    except ImportError:
        raise UnreadablePdf(
            f"{what}, and pypdf is not installed: pip install 'gong[pdf]'. {_ADVICE}"
        ) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells every oddity of a file
    try:
        pages = []
        for page in PdfReader(BytesIO(data)).pages:
            if stop.is_set():
                break
            lines = page.extract_text().strip().split("\n")
            pages.append("\n".join(line.rstrip() for line in lines))
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise UnreadablePdf(f"{what} that is damaged or locked: {reason}. {_ADVICE}") from error
    if not any(pages):
        raise UnreadablePdf(
            f"{what} without text, {len(pages)} pages of pictures perhaps."
            " Make pictures of its pages with bash: pdftoppm -png FILE page, and read those."
        )
    parts = (f"--- page {n} of {len(pages)} ---\n\n{text}\n" for n, text in enumerate(pages, 1))
    return "\n".join(parts)
