"""List the mission rows that no test names: `make rows`.

A test names a row by its number, M001 to M215, in its name or docstring; a class of tests may do
so for all of its tests. Titles come from the mission's table where it lies beside the project.
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
LAST = 215

NUMBER = re.compile(r"(?<![A-Za-z0-9])[Mm](\d{3})(?![A-Za-z0-9])")
ROW = re.compile(r"^\| *(M\d{3}) *\|([^|]*)\|(.*?)\|", re.MULTILINE)


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
    """Return a line for each row without a test, then how many there are."""
    asked = rows(mission)
    open_rows = sorted(asked.keys() - named_rows(tests))
    lines = [f"{row}  {asked[row][:94]}".rstrip() for row in open_rows]
    return "\n".join([*lines, f"{len(open_rows)} of {len(asked)} rows have no test"])


if __name__ == "__main__":
    print(report(ROOT / "tests", MISSION))
