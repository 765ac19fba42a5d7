"""docs/terminal.svg: what `gong chat` looks like, drawn from a real run in a pseudo-terminal.

`make picture` runs it. The model is scripted; tools, files and the terminal are real.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from html import escape
from pathlib import Path

from tape.text import measure_width
from tests.e2e.terminal import Terminal

COLUMNS, ROWS = 88, 31
CELL, LINE, FONT = 8.43, 18, 14
COLOURS = {
    "default": "#d8dee9",
    "black": "#3b4252",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "yellow": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#d8dee9",
    "brightblue": "#7fb8ff",
}
"""Colour names of pyte, and their colours; others are written as they are, in hexadecimal."""
BACKGROUND = "#1e222a"
FILES = {
    "basket.py": "def total(prices):\n    result = 0\n    for price in prices[1:]:\n"
    "        result += price\n    return result\n",
    "test_basket.py": "import unittest\n\nfrom basket import total\n\n\n"
    "class TestTotal(unittest.TestCase):\n    def test_all_prices_count(self):\n"
    "        self.assertEqual(total([1, 2, 3]), 6)\n",
}
PROMPT = "the test of the basket fails: why?"


def call(name: str, **args: object) -> dict[str, object]:
    """Return a tool call as the script of a model has it."""
    return {"name": name, "args": args}


ANSWERS = [
    {"tool_calls": [call("read", path="basket.py"), call("read", path="test_basket.py")]},
    {"tool_calls": [call("bash", command="python3 -m unittest -q 2>&1 | tail -n 3")]},
    {
        "tool_calls": [
            call("edit", path="basket.py", oldText="in prices[1:]:", newText="in prices:")
        ]
    },
    {"tool_calls": [call("bash", command="python3 -m unittest -q 2>&1 | tail -n 3")]},
    {
        "text": "The loop left out the first price: `prices[1:]` begins at the **second** one. "
        "It now adds all of them, and the test passes:\n\n"
        "```python\nfor price in prices:\n    result += price\n```\n"
    },
]


def run_chat(home: Path) -> Terminal:
    """Return a terminal in which a prompt was answered."""
    folder = home / "basket"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (home / "script.json").write_text(json.dumps(ANSWERS))
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    command = [str(Path(sys.executable).parent / "gong"), "chat", "--permission", "bypass"]
    terminal = Terminal(
        [*command, "-m", f"scripted/{home / 'script.json'}"],
        cwd=folder,
        env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
        columns=COLUMNS,
        rows=ROWS,
    )
    terminal.wait_for("ready")
    terminal.say(PROMPT)
    terminal.wait_for("test passes")
    terminal.wait_for("main · ready", on_screen=True)
    return terminal


def draw_screen(terminal: Terminal, home: Path) -> str:
    """Return the screen as SVG; a row's cells of one look are one piece of text."""
    width, height = COLUMNS * CELL + 24, ROWS * LINE + 24
    fonts = "ui-monospace, Menlo, Consolas, monospace"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}">',
        f'<g font-family="{fonts}" font-size="{FONT}">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    for row in range(ROWS):
        cells = terminal.screen.buffer[row]
        column = 0
        while column < COLUMNS:
            look, text, start = get_look(cells[column]), "", column
            while column < COLUMNS and get_look(cells[column]) == look:
                text += cells[column].data
                column += 1
            text = text.replace(str(home), "~").replace("scripted/~/script.json", "some/model")
            if text.strip():
                parts.append(draw_text(text, start, row, look))
    return "\n".join([*parts, "</g></svg>", ""])


def get_look(cell: object) -> tuple[str, bool, bool]:
    """Return colour, whether bold, and whether italic."""
    return cell.fg, cell.bold, cell.italics


def draw_text(text: str, column: int, row: int, look: tuple[str, bool, bool]) -> str:
    """Return a piece of a row."""
    colour, bold, italic = look
    fill = COLOURS.get(colour, f"#{colour}")
    style = ' font-weight="bold"' * bold + ' font-style="italic"' * italic
    x, y = 12 + column * CELL, 12 + (row + 1) * LINE - 5
    length = measure_width(text.rstrip()) * CELL
    return (
        f'<text x="{x:.1f}" y="{y}" fill="{fill}"{style} xml:space="preserve"'
        f' textLength="{length:.1f}">{escape(text.rstrip())}</text>'
    )


def draw_picture() -> str:
    """Return the picture, after a run in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with run_chat(home) as terminal:
            return draw_screen(terminal, home)


if __name__ == "__main__":
    Path("docs/terminal.svg").write_text(draw_picture())
