"""Rows of a list at many widths: folder, age and cost stay, the title gives way."""

from __future__ import annotations

import pytest

from gong.repl.draw.lines import StyledLine
from gong.repl.draw.picker_rows import (
    KeyNote,
    PickerRow,
    format_keys,
    put_beside,
    render_preview,
    render_rows,
)
from tape.text import measure_width

ROWS = [
    PickerRow("a", "fix the login page " * 9, folder="/home/me/work/app", facts=("3h", "$0.12")),
    PickerRow("b", "登录页面" * 30, folder="~/ノート", facts=("12d", "–")),
    PickerRow("c", "\x1b[31mred", folder="/x\x1b", facts=("1s", "$12.345")),
]
LONGEST = (
    "1/12 · ↑↓ · Enter continues it · Ctrl+A all projects · Space preview · Ctrl+R rename · "
    "Ctrl+X trash · Esc leaves"
)
NOTES = [
    *(KeyNote("enter", "continues it"), KeyNote("c-a", "all projects", "all")),
    *(KeyNote("space", "preview", "view"), KeyNote("c-r", "rename", "name")),
    KeyNote("c-x", "trash", "trash"),
]


@pytest.mark.parametrize("columns", [43, 79, 99, 199])
def test_folder_age_and_cost_stay_at_any_width(columns):
    lines = [line.text for line in render_rows(ROWS, 1, 9, columns)]
    assert max(map(measure_width, lines)) <= columns
    assert [line[:2] for line in lines] == ["  ", "▶ ", "  "]
    for line, row in zip(lines, ROWS, strict=True):
        assert line.split()[-2:] == [*row.facts]
    assert lines[0].split()[-3].endswith("work/app"[-5:])
    assert "ノート" in lines[1]
    assert "\x1b" not in "".join(lines)
    edges = {measure_width(line) for line in lines}
    assert len(edges) == 1, "the facts stand in columns"


def test_the_marked_row_is_among_those_that_fit():
    many = [PickerRow(str(n), f"row {n}", "note") for n in range(50)]
    lines = render_rows(many, 40, 5, 40)
    assert [line.text.startswith("▶ row 40") for line in lines] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert render_rows(many, 0, 5, 10)[0].text == "▶ row 0"


@pytest.mark.parametrize("columns", range(1, 30))
def test_any_width_has_rows(columns):
    lines = render_rows(ROWS, 0, 3, columns)
    assert len(lines) == 3
    assert columns < 24 or max(measure_width(line.text) for line in lines) <= columns


def test_a_preview_is_wrapped_cut_and_put_beside():
    about = [StyledLine("word " * 20, "you"), StyledLine("\x1b]0;x\x07 end")]
    rows = render_preview(about, 4, 30)
    assert len(rows) == 4
    assert rows[-1].text == "  …"
    assert max(measure_width(row.text) for row in rows) <= 30
    both = put_beside(render_rows(ROWS, 0, 3, 40), rows, 40)
    assert [line.text.index("│") for line in both if line.text.isascii()] == []
    assert {measure_width(line.text.partition("│")[0]) for line in both} == {41}


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (43, "1/12 · ^A all · → view · ^R name · ^X trash"),
        (79, "1/12 · Enter · ^A all · Space preview · ^R rename · ^X trash · Esc"),
        (
            120,
            LONGEST,
        ),
        (20, "1/12 · ^A all · → v…"),
    ],
)
def test_one_line_names_the_keys(columns, line):
    assert format_keys(NOTES, "1/12", columns) == line
    assert format_keys(NOTES[:1], "", 99) == "↑↓ · Enter continues it · Esc leaves"
    assert format_keys(NOTES[:1], "1/1", 40) == "1/1 · Enter continues it · Esc"
