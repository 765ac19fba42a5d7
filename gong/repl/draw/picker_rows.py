"""The rows of a list to choose from, what is shown of the marked one, and the line of keys; pure.

A row has its text at the left, cut where there is no room, and its facts at the right: a folder,
cut at its left, and others in columns of their own, which stay at any width.

    ▶ fix the login page that …   …/work/app   3h  $0.12
      think about tea             ~/notes      2d      –
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.text import cut_to_width, measure_width, show_controls

from .lines import INDENT, StyledLine, StyledPart, join_parts, wrap_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GAP = "  "
_MARK = "▶ "
_MAX_FOLDER_COLUMNS, _MIN_FOLDER_COLUMNS = 32, 8
_MIN_TEXT_COLUMNS = 8
_BORDER = " │ "


class PickerRow(NamedTuple):
    """One row of a list."""

    value: str
    """What stands in the command."""
    text: str
    note: str = ""
    """Shown dim at the right edge, where there is room."""
    is_current: bool = False
    """Whether it is marked at first, where nothing is typed; else the first row is."""
    folder: str = ""
    """A path at the right, shown with `facts` instead of the note."""
    facts: tuple[str, ...] = ()
    """Texts behind it, of each row as many."""


def number_rows(rows: Sequence[PickerRow]) -> list[PickerRow]:
    """Return rows with their numbers before their texts."""
    return [row._replace(text=f"{number}  {row.text}") for number, row in enumerate(rows, 1)]


def render_rows(
    rows: Sequence[PickerRow], marked: int, limit: int, columns: int
) -> list[StyledLine]:
    """Return at most `limit` rows, the marked one among them, each of at most `columns`."""
    first = max(min(marked - limit // 2, len(rows) - limit), 0)
    visible = rows[first : first + limit]
    edges = _render_facts(visible, columns - len(_MARK))
    return [
        _render_row(row, edge, columns, is_marked=place == marked)
        for place, (row, edge) in enumerate(zip(visible, edges, strict=True), first)
    ]


def _render_facts(rows: Sequence[PickerRow], room: int) -> list[str]:
    """Return the text at the right edge of each row."""
    if not all(row.facts for row in rows):
        return [show_controls(row.note) for row in rows]
    facts = [[show_controls(fact) for fact in row.facts] for row in rows]
    widths = [max(map(measure_width, column)) for column in zip(*facts, strict=True)]
    wide = sum(widths) + len(_GAP) * len(widths)
    folders = [show_controls(row.folder) for row in rows]
    folder_room = min(max(room // 4, _MIN_FOLDER_COLUMNS), _MAX_FOLDER_COLUMNS)
    longest = min(max(map(measure_width, folders)), folder_room)
    if room - wide - longest - len(_GAP) < _MIN_TEXT_COLUMNS:
        longest = 0
    edges = []
    for folder, cells in zip(folders, facts, strict=True):
        cut = cut_to_width(folder[::-1], longest)[::-1] if longest else ""
        cut += " " * (longest - measure_width(cut))
        aligned = [
            " " * (width - measure_width(cell)) + cell
            for cell, width in zip(cells, widths, strict=True)
        ]
        edges.append(_GAP.join([*([cut] if longest else []), *aligned]))
    return edges


def _render_row(row: PickerRow, edge: str, columns: int, *, is_marked: bool) -> StyledLine:
    """Return a row: its text cut to leave room for the one at its right edge."""
    mark = _MARK if is_marked else " " * len(_MARK)
    room = columns - len(mark)
    if not row.facts and room - measure_width(edge) - len(_GAP) < room // 2:
        edge = ""
    text_room = room - (measure_width(edge) + len(_GAP) if edge else 0)
    text = cut_to_width(show_controls(row.text), max(text_room, 1))
    style = "you" if is_marked else ""
    if not edge:
        return join_parts([StyledPart(mark + text, style)])
    fill = " " * max(text_room - measure_width(text), 0)
    return join_parts([StyledPart(f"{mark}{text}{fill}{_GAP}", style), StyledPart(edge, "result")])


def render_preview(about: Sequence[StyledLine], limit: int, columns: int) -> list[StyledLine]:
    """Return the first `limit` rows of some lines, wrapped behind an indent."""
    rows = [
        StyledLine(f"{INDENT}{row}", line.style)
        for line in about
        for row in wrap_text(show_controls(line.text), max(columns - len(INDENT), 1))
    ]
    if len(rows) <= limit:
        return rows
    return [*rows[: max(limit - 1, 0)], StyledLine(f"{INDENT}…", "result")][:limit]


def put_beside(
    left: Sequence[StyledLine], right: Sequence[StyledLine], columns: int
) -> list[StyledLine]:
    """Return lines with others at their right, behind a border; the left ones take `columns`."""
    rows = []
    for place in range(max(len(left), len(right))):
        line = left[place] if place < len(left) else StyledLine("")
        fill = " " * (columns - measure_width(line.text))
        parts = [*(line.parts or (StyledPart(line.text, line.style),)), StyledPart(fill)]
        parts.append(StyledPart(_BORDER, "faint"))
        if place < len(right):
            parts.append(StyledPart(right[place].text, right[place].style))
        rows.append(join_parts(parts))
    return rows


class KeyNote(NamedTuple):
    """What a key does, in a word or two."""

    key: str
    """As prompt-toolkit names it."""
    what: str
    short: str = ""
    """The same in one short word; without it the key is left out where there is no room."""


_KEY_NAMES = {"enter": "Enter", "space": "Space"}
_SHORT_NAMES = {"space": "→"}


def format_keys(notes: Sequence[KeyNote], count: str, columns: int) -> str:
    """Return the line that says what keys do, in full, in short, or what fits the columns."""
    forms = [
        [count, "↑↓", *(f"{_name_key(note.key)} {note.what}" for note in notes), "Esc leaves"],
        [count, "Enter", *_shorten_notes(notes, {}), "Esc"],
        [count, *_shorten_notes(notes, _SHORT_NAMES)],
    ]
    if not any(note.short for note in notes):
        forms[1:] = [[count, *forms[0][2:-1], "Esc"]]
    lines = [" · ".join(filter(None, form)) for form in forms]
    fits = (line for line in lines if measure_width(line) <= columns)
    return next(fits, cut_to_width(lines[-1], columns))


def _shorten_notes(notes: Sequence[KeyNote], names: Mapping[str, str]) -> list[str]:
    return [
        f"{names.get(note.key, _name_key(note.key).replace('Ctrl+', '^'))} "
        f"{note.short if names or ' ' in note.what else note.what}"
        for note in notes
        if note.short
    ]


def _name_key(key: str) -> str:
    return _KEY_NAMES.get(key, key.upper().replace("C-", "Ctrl+"))
