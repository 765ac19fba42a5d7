"""What a file is, told by its bytes, and the text of notebooks and PDFs.

A Jupyter notebook becomes its cells with what they are, and their outputs in brief: of an
output only its text is shown, without colours and not at length; a picture is named. A PDF becomes
its text, page by page; pypdf reads it, an extra that is loaded when it is needed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from io import BytesIO
from threading import Event
from typing import TYPE_CHECKING, Any

from .limits import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_PDF = re.compile(rb"%PDF-[0-9]\.[0-9]")
_BEFORE_PDF = 1024


def is_pdf(data: bytes) -> bool:
    """Whether this is a PDF, whatever its name; a few bytes may stand before its mark."""
    return _PDF.search(data, 0, _BEFORE_PDF) is not None


OUTPUT_CHARS = 2000
"""Characters of one output that are shown."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")
"""Forms of one output that can be read as text, the plainest first."""


def render_notebook(data: bytes) -> str | None:
    """Return the cells of a notebook; None for anything else."""
    try:
        notebook = json.loads(data)
        if "cells" in notebook:
            cells = notebook["cells"]
        else:  # the third version: they are in sheets
            cells = [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
        return "\n".join(_render_cell(number, cell) for number, cell in enumerate(cells, 1))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # A file that only has the name of one: its text is shown.
        return None


def _render_cell(number: int, cell: Mapping[str, Any]) -> str:
    source = cell["source"] if "source" in cell else cell["input"]
    parts = [f"# [{number}] {cell['cell_type']}", _join_source(source)]
    for output in cell.get("outputs", ()):
        text = _COLOURS.sub("", "\n".join(_render_output(output))).removesuffix("\n")
        if len(text) > OUTPUT_CHARS:
            rest = len(text) - OUTPUT_CHARS
            text = f"{text[:OUTPUT_CHARS]}\n[... {rest} more characters]"
        if text:
            parts += [f"# [{number}] output", text]
    return "\n".join(parts) + "\n"


def _render_output(output: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of an output: an error with its name, text, or a placeholder of a picture."""
    if output.get("output_type") in {"error", "pyerr"}:
        yield f"{output.get('ename', '')}: {output.get('evalue', '')}"
        return
    if "text" in output:
        yield _join_source(output["text"])
    forms = output.get("data", {})
    text = next((forms[name] for name in _TEXTS if forms.get(name)), None)
    if text is not None:
        yield _join_source(text) if isinstance(text, str | list) else json.dumps(text)
    yield from (f"[{name}]" for name in forms if name.startswith("image/"))


def _join_source(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


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
