"""Jupyter notebooks: their cells as text, and one cell changed with the rest byte for byte; pure.

A notebook is read as its cells with what they are, their ids, and their outputs in brief: of an
output only its text is shown, without colours and not at length; a picture becomes one. Format 3,
and what only has the name of a notebook, is never changed.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

OUTPUT_CHARS = 2000
"""Characters of one output that are shown."""
MAX_PICTURES = 20
"""Pictures of one notebook that are kept for being shown."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_OLD_FORMS = {
    "html": "text/html",
    "jpeg": "image/jpeg",
    "latex": "text/latex",
    "png": "image/png",
    "svg": "image/svg+xml",
}
_TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")
"""Forms of one output that can be read as text, the plainest first."""
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Forms that models see."""
_FORMAT, _WITH_IDS = 4, 5
"""The major version that is changed, and its minor version from which on cells have ids."""

EditMode = Literal["replace", "insert", "delete"]
CellType = Literal["code", "markdown"]


class NotebookPicture(NamedTuple):
    """A picture of an output."""

    line: int
    """The line of the text that names it, from 0."""
    mime: str
    data: bytes


class RenderedNotebook(NamedTuple):
    """The cells of a notebook as text."""

    text: str
    pictures: tuple[NotebookPicture, ...] = ()


class NotebookChange(NamedTuple):
    """A notebook with one cell changed."""

    data: bytes
    cell: str
    """The id of the cell, or its number where it has none."""
    old_source: str
    new_source: str


class CannotEdit(ValueError):
    """The notebook, or the cell, cannot be changed so; the text says why."""


# reading


def render_notebook(data: bytes) -> RenderedNotebook | None:
    """Return the cells of a notebook; None for anything else."""
    try:
        notebook = json.loads(data)
        if "cells" in notebook:
            cells = notebook["cells"]
        else:  # the third version: they are in sheets
            cells = [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
        return _Rendering().render(cells)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # A file that only has the name of one: its text is shown.
        return None


class _Rendering:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pictures: list[NotebookPicture] = []

    def render(self, cells: Sequence[Mapping[str, Any]]) -> RenderedNotebook:
        for number, cell in enumerate(cells, 1):
            if number > 1:
                self.lines.append("")
            self._add_cell(number, cell)
        text = "\n".join(self.lines)
        return RenderedNotebook(f"{text}\n" if cells else "", tuple(self.pictures))

    def _add_cell(self, number: int, cell: Mapping[str, Any]) -> None:
        source = cell["source"] if "source" in cell else cell["input"]
        name = cell.get("id")
        shown_id = f" id={name}" if isinstance(name, str) else ""
        self.lines += [f"# [{number}] {cell['cell_type']}{shown_id}"]
        self.lines += _join_source(source).split("\n")
        for output in cell.get("outputs", ()):
            self._add_output(number, output)

    def _add_output(self, number: int, output: Mapping[str, Any]) -> None:
        text = _COLOURS.sub("", "\n".join(_render_output(output))).removesuffix("\n")
        if len(text) > OUTPUT_CHARS:
            rest = len(text) - OUTPUT_CHARS
            text = f"{text[:OUTPUT_CHARS]}\n[... {rest} more characters]"
        forms = _find_forms(output)
        pictures = [name for name in forms if name.startswith("image/")]
        if not text and not pictures:
            return
        self.lines += [f"# [{number}] output", *(text.split("\n") if text else ())]
        for name in pictures:
            self._add_picture(name, forms[name])

    def _add_picture(self, mime: str, encoded: object) -> None:
        self.lines.append(f"[{mime}]")
        if mime not in _PICTURES or len(self.pictures) >= MAX_PICTURES:
            return
        try:
            data = base64.b64decode(_join_source(encoded))  # type: ignore[arg-type]
        except (TypeError, binascii.Error, ValueError):
            return
        if data:
            self.pictures.append(NotebookPicture(len(self.lines) - 1, mime, data))


def _render_output(output: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of an output, of an error its name and what it says."""
    if output.get("output_type") in {"error", "pyerr"}:
        yield f"{output.get('ename', '')}: {output.get('evalue', '')}"
        return
    if "text" in output:
        yield _join_source(output["text"])
    forms = _find_forms(output)
    text = next((forms[name] for name in _TEXTS if forms.get(name)), None)
    if text is not None:
        yield _join_source(text) if isinstance(text, str | list) else json.dumps(text)


def _find_forms(output: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an output is in each of its forms, by MIME type; format 3 has short names."""
    if "data" in output:
        forms: Mapping[str, Any] = output["data"]
        return forms
    return {mime: output[name] for name, mime in _OLD_FORMS.items() if name in output}


def _join_source(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


# changing


class CellEdit(Struct, frozen=True):
    """What is to become of a cell."""

    mode: EditMode
    cell: str
    """The id of a cell, or its number where it has none; empty for the top, to insert."""
    source: str = ""
    cell_type: CellType | None = None
    new_id: str = ""
    """The id of a cell that is inserted, if the notebook has ids."""


def edit_notebook(data: bytes, edit: CellEdit) -> NotebookChange:
    """Return a notebook with one cell changed; raises CannotEdit."""
    return _NotebookText(data).apply(edit)


class _Span(NamedTuple):
    """Where a value is in the text, and what it is."""

    start: int
    end: int
    value: Any


class _NotebookText:
    """The text of a notebook and the places of its cells."""

    def __init__(self, data: bytes) -> None:
        try:
            self.text = data.decode("utf-8")
            notebook = _read_fields(self.text, _skip_spaces(self.text, 0))
        except UnicodeDecodeError:
            raise CannotEdit("it is not text in UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise CannotEdit(f"it is not a notebook but broken JSON: {error}") from None
        version = notebook["nbformat"].value if "nbformat" in notebook else None
        if version != _FORMAT:
            raise CannotEdit(
                f"it has format {version}, and only format 4 is changed: convert it with"
                " jupyter nbconvert --to notebook"
            )
        if "cells" not in notebook or not isinstance(notebook["cells"].value, list):
            raise CannotEdit("it has no cells")
        minor = notebook["nbformat_minor"].value if "nbformat_minor" in notebook else 0
        self.has_ids = isinstance(minor, int) and minor >= _WITH_IDS
        self.cells_span = notebook["cells"]
        self.cells = _read_items(self.text, self.cells_span.start)
        if not all(_is_cell(cell.value) for cell in self.cells):
            raise CannotEdit("one of its cells is none")
        match = re.match(r"\s*\{\r?\n([ \t]+)\"", self.text)
        self.unit = match[1] if match else ""
        """What one level is indented by; empty where all is on one line."""
        self.line_end = "\r\n" if "\r\n" in self.text else "\n"
        self.escapes = self.text.isascii() and "\\u" in self.text

    def apply(self, edit: CellEdit) -> NotebookChange:
        if edit.mode == "insert":
            return self._insert(edit)
        number = self._find_cell(edit.cell)
        cell = self.cells[number]
        name = str(cell.value.get("id", number + 1))
        old = _join_source(cell.value["source"])
        if edit.mode == "delete":
            return NotebookChange(self._delete(number), name, old, "")
        kind = edit.cell_type or cell.value["cell_type"]
        if old == edit.source and kind == cell.value["cell_type"]:
            raise CannotEdit(f"cell {name} has this source already")
        if kind == cell.value["cell_type"]:
            text = self._replace_source(cell, edit.source)
        else:
            text = self._replace_cell(cell, edit.source, kind)
        return NotebookChange(text.encode(), name, old, edit.source)

    def _find_cell(self, name: str) -> int:
        """Return the place of a cell by its id, or by its number."""
        named = [n for n, cell in enumerate(self.cells) if cell.value.get("id") == name]
        if len(named) > 1:
            raise CannotEdit(f"{len(named)} of its cells have the id {name}")
        if named:
            return named[0]
        number = re.fullmatch(r"\[?(\d{1,9})\]?", name.strip())
        if number and 1 <= int(number[1]) <= len(self.cells):
            place = int(number[1]) - 1
            if "id" not in self.cells[place].value:
                return place
        ids = ", ".join(str(cell.value.get("id", n)) for n, cell in enumerate(self.cells, 1))
        raise CannotEdit(f"it has no cell {name!r}; its cells are: {ids or 'none'}")

    def _replace_source(self, cell: _Span, source: str) -> str:
        """Return the text with another source in a cell, and without what the old one did."""
        fields = _read_fields(self.text, cell.start)
        is_list = isinstance(fields["source"].value, list)
        changes: list[tuple[_Span, Any]] = [
            (fields["source"], _split_source(source) if is_list else source)
        ]
        if "outputs" in fields and fields["outputs"].value != []:
            changes.append((fields["outputs"], []))
        count = fields.get("execution_count")
        if count is not None and count.value is not None:
            changes.append((count, None))
        return self._replace_spans([(span, self._dump(value, 3)) for span, value in changes])

    def _replace_cell(self, cell: _Span, source: str, kind: str) -> str:
        """Return the text with a cell of another type."""
        others = {k: v for k, v in cell.value.items() if k not in {"outputs", "execution_count"}}
        value = {**others, **_build_fields(source, kind)}
        return self._replace_spans([(cell, self._dump(dict(sorted(value.items())), 2))])

    def _insert(self, edit: CellEdit) -> NotebookChange:
        place = self._find_cell(edit.cell) + 1 if edit.cell else 0
        value = {"metadata": {}, **_build_fields(edit.source, edit.cell_type or "code")}
        if self.has_ids:
            value["id"] = edit.new_id
        text = self._dump(dict(sorted(value.items())), 2)
        name = edit.new_id if self.has_ids else str(place + 1)
        separator = f",{self._break(2)}" if self.unit else ", "
        if not self.cells:
            inner = f"[{self._break(2)}{text}{self._break(1)}]"
            whole = self._replace_spans([(self.cells_span, inner)])
        elif place < len(self.cells):
            at = self.cells[place].start
            whole = f"{self.text[:at]}{text}{separator}{self.text[at:]}"
        else:
            at = self.cells[-1].end
            whole = f"{self.text[:at]}{separator}{text}{self.text[at:]}"
        return NotebookChange(whole.encode(), name, "", edit.source)

    def _delete(self, number: int) -> bytes:
        if len(self.cells) == 1:
            return self._replace_spans([(self.cells_span, "[]")]).encode()
        if number + 1 < len(self.cells):
            start, end = self.cells[number].start, self.cells[number + 1].start
        else:
            start, end = self.cells[number - 1].end, self.cells[number].end
        return (self.text[:start] + self.text[end:]).encode()

    def _replace_spans(self, changes: Sequence[tuple[_Span, str]]) -> str:
        text = self.text
        for span, new in sorted(changes, key=lambda change: -change[0].start):
            text = f"{text[: span.start]}{new}{text[span.end :]}"
        return text

    def _break(self, level: int) -> str:
        return f"{self.line_end}{self.unit * level}" if self.unit else ""

    def _dump(self, value: Any, level: int) -> str:
        """Return a value as the file writes them, `level` levels deep."""
        indent = self.unit or None
        text = json.dumps(value, ensure_ascii=self.escapes, indent=indent)
        return text.replace("\n", self._break(level)) if self.unit else text


def _is_cell(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("cell_type"), str):
        return False
    source = value.get("source")
    is_list = isinstance(source, list) and all(isinstance(line, str) for line in source)
    return is_list or isinstance(source, str)


def _build_fields(source: str, kind: str) -> dict[str, Any]:
    code: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "source": _split_source(source), **code}


def _split_source(source: str) -> list[str]:
    """Return lines with their ends, as nbformat splits them."""
    return source.splitlines(keepends=True)


_SPACES = re.compile(r"[ \t\r\n]*")


def _skip_spaces(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    assert match is not None
    return match.end()


def _read_value(text: str, at: int) -> _Span:
    value, end = json.JSONDecoder().raw_decode(text, at)
    return _Span(at, end, value)


def _read_fields(text: str, at: int) -> dict[str, _Span]:
    """Return the fields of the object that begins at a place; raises ValueError."""
    fields: dict[str, _Span] = {}
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    at = _skip_spaces(text, at + 1)
    while text[at : at + 1] != "}":
        name = _read_value(text, at)
        colon = _skip_spaces(text, name.end)
        if not isinstance(name.value, str) or text[colon : colon + 1] != ":":
            raise ValueError(f"no field at character {at}")
        value = _read_value(text, _skip_spaces(text, colon + 1))
        fields[name.value] = value
        at = _read_separator(text, value.end, "}")
    return fields


def _read_items(text: str, at: int) -> list[_Span]:
    """Return the items of the array that begins at a place; raises ValueError."""
    items: list[_Span] = []
    at = _skip_spaces(text, at + 1)
    while text[at : at + 1] != "]":
        items.append(_read_value(text, at))
        at = _read_separator(text, items[-1].end, "]")
    return items


def _read_separator(text: str, at: int, end: str) -> int:
    """Return where the next item begins, or the end of all."""
    at = _skip_spaces(text, at)
    if text[at : at + 1] == ",":
        return _skip_spaces(text, at + 1)
    if text[at : at + 1] != end:
        raise ValueError(f"nothing ends at character {at}")
    return at
