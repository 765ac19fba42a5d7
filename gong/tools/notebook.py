"""A Jupyter notebook as text: its cells with what they are, and what came of them in brief (pure).

Of an output only its text is shown, without colours and not at length; a picture is named.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OUTPUT_CHARS = 2000
"""Characters of one output that are shown."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")
"""Forms of one output that can be read as text, the plainest first."""


def render_notebook(data: bytes) -> str | None:
    """Return the cells of a notebook; None for anything else."""
    try:
        cells = _find_cells(json.loads(data))
        return "\n".join(_render_cell(number, cell) for number, cell in enumerate(cells, 1))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # A file that only has the name of one: its text is shown.
        return None


def _find_cells(notebook: Mapping[str, Any]) -> list[Any]:
    """Return the cells, of a notebook of the third version, too: there they stand in sheets."""
    if "cells" not in notebook:
        return [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
    cells: list[Any] = notebook["cells"]
    return cells


def _render_cell(number: int, cell: Mapping[str, Any]) -> str:
    source = cell["source"] if "source" in cell else cell["input"]
    parts = [f"# [{number}] {cell['cell_type']}", _join_source(source)]
    for output in cell.get("outputs", ()):
        text = _shorten_output("\n".join(_render_output(output)))
        if text:
            parts += [f"# [{number}] output", text]
    return "\n".join(parts) + "\n"


def _render_output(output: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an output says: an error by its name, text, or what stands for a picture."""
    if output.get("output_type") in {"error", "pyerr"}:
        yield f"{output.get('ename', '')}: {output.get('evalue', '')}"
        return
    if "text" in output:
        yield _join_source(output["text"])
    forms = output.get("data", {})
    text = next((forms[one] for one in _TEXTS if forms.get(one)), None)
    if text is not None:
        yield _join_source(text) if isinstance(text, str | list) else json.dumps(text)
    yield from (f"[{one}]" for one in forms if one.startswith("image/"))


def _shorten_output(text: str) -> str:
    text = _COLOURS.sub("", text).removesuffix("\n")
    if len(text) <= OUTPUT_CHARS:
        return text
    return f"{text[:OUTPUT_CHARS]}\n[... {len(text) - OUTPUT_CHARS} more characters]"


def _join_source(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)
