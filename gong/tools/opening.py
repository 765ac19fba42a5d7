"""A file that is to be read: found under the name a model writes for it, and told by its bytes."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..env.protocol import ExecutionEnvironment

LOOKED_AT = 4100
"""Bytes at the start of a file that tell what it is."""
_HALF_OF_DAY = re.compile(r" (AM|PM)\b", re.IGNORECASE)
_PICTURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)


async def opened(env: ExecutionEnvironment, path: str) -> tuple[bytes, str]:
    """Return the bytes of a file and the path it was found at; OSError of the path as it is."""
    first = env.resolve(path)
    try:
        return await env.read_file(first), path
    except FileNotFoundError as error:
        for other in _other_spellings(first):
            try:
                return await env.read_file(other), other
            except FileNotFoundError:
                # The next spelling may be the right one.
                continue
        raise error from None


def picture_type(data: bytes) -> str | None:
    """Return the type of a picture such as image/png, whatever its name; None for other files."""
    head = data[:LOOKED_AT]
    return next((kind for pattern, kind in _PICTURES if pattern.match(head)), None)


def notebook_text(data: bytes) -> str | None:
    """Return the cells of a Jupyter notebook as text; None for anything else."""
    try:
        notebook = json.loads(data)
        cells = notebook["cells"]
        return "\n".join(_cell(number, cell) for number, cell in enumerate(cells, 1))
    except (ValueError, TypeError, KeyError, AttributeError):
        # A file that only has the name of one: its text is shown.
        return None


def _other_spellings(path: str) -> Iterator[str]:
    """Yield what macOS writes for the same name: odd blanks, taken apart letters, curly quotes."""
    seen = {path}
    apart = unicodedata.normalize("NFD", path)
    for other in (
        _HALF_OF_DAY.sub("\u202f\\1", path),
        apart,
        path.replace("'", "\u2019"),
        apart.replace("'", "\u2019"),
    ):
        if other not in seen:
            seen.add(other)
            yield other


def _cell(number: int, cell: dict[str, Any]) -> str:
    parts = [f"# [{number}] {cell['cell_type']}", _joined(cell["source"])]
    for output in cell.get("outputs", ()):
        text = output.get("text") or output.get("data", {}).get("text/plain") or ""
        if output.get("output_type") == "error":
            text = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        if text:
            parts += [f"# [{number}] output", _joined(text)]
    return "\n".join(parts) + "\n"


def _joined(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
