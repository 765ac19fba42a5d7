"""List the mission rows that are open: `make rows`.

A test names a row by its number, M001 to M238, in its name or docstring, if it asserts what the
row says; a class of tests may do so for all of its tests. `NOT_BUILT` holds the rows that are not
there yet, or not wholly; a test may name one for the part of it that it asserts. Whoever builds
one takes it from the table and names it where it is tested. `tests/test_rows.py` fails for a row
that stands in neither place. Titles come from the mission's table where it lies beside the
project.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
MISSION = ROOT.parent / "shared/spec/mission.md"
LAST = 238

NOT_BUILT = {
    "the loop as a library, its settings and events": (
        "M013 M014 M019 M022 M031 M032 M035 M037 M038 M096 M217"
    ),
    "limits of what a command may reach": "M179",
    "front ends, flags and settings of the program": "M197 M200 M201",
    "other places to act in": "M125 M126 M220",
    "providers of clouds and command lines, what each can do": "M138-M140 M142 M151 M226",
    "reviews and workflows": "M228",
    "the web, language servers": "M195 M196",
    "sessions of other agents, and the seeds' fields of a session": "M203",
    "more of the truncation service": "M222",
    "lists of tests that hold some of the above": "M209-M211 M227",
    "figures of time: measured by bench/, never by a test": "M206",
    "plugins, hosting, several users": "M213 M214",
    "what a third reading of the seeds added": "M229-M235 M238",
}
"""What is missing → the rows that wait for it."""

NUMBER = re.compile(r"(?<![A-Za-z0-9])[Mm](\d{3})(?![A-Za-z0-9])")
ROW = re.compile(r"^\| *(M\d{3}) *\|([^|]*)\|(.*?)\|", re.MULTILINE)


def not_built() -> list[str]:
    """Return the rows of `NOT_BUILT`, each as often as it stands there."""
    return [
        f"M{number:03}"
        for words in NOT_BUILT.values()
        for word in words.split()
        for number in range(int(word[1:4]), int(word[-3:]) + 1)
    ]


def named_rows(tests: Path) -> set[str]:
    """Return the rows that the tests below a folder name."""
    return {
        f"M{number}"
        for file in tests.rglob("test_*.py")
        for words in _names(ast.parse(file.read_text("utf-8"), str(file)))
        for number in NUMBER.findall(words)
    }


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (is_function and node.name.startswith("test")) or (
            isinstance(node, ast.ClassDef) and node.name.startswith("Test")
        ):
            yield f"{node.name} {ast.get_docstring(node) or ''}"


def rows(mission: Path) -> dict[str, str]:
    """Return every row and what it asks for: "" where the table is not at hand."""
    if not mission.exists():
        return {f"M{number:03}": "" for number in range(1, LAST + 1)}
    found = ROW.findall(mission.read_text("utf-8"))
    return {row: f"{group.strip()}: {asked.strip()}" for row, group, asked in found}


def report(tests: Path, mission: Path) -> str:
    """Return a line for each open row: not built, or without a test; then how many there are."""
    asked = rows(mission)
    waiting = set(not_built()) & asked.keys()
    untested = asked.keys() - named_rows(tests) - waiting
    lines = [
        f"{row}  {'NO TEST  ' if row in untested else ''}{asked[row][:94]}".rstrip()
        for row in sorted(waiting | untested)
    ]
    counted = f"{len(lines)} of {len(asked)} rows are open"
    return "\n".join([*lines, f"{counted}: {len(waiting)} not built, {len(untested)} untested"])


if __name__ == "__main__":
    print(report(ROOT / "tests", MISSION))
