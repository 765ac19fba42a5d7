"""Read `tests/rows.toml`, which says of every mission row what the tests assert: `make rows`.

A row is M001 to M238. Its table names the tests that assert what the row says, says in one line
what that is, and why the row is `open` where it is not built or not wholly asserted. A test names
its rows in its name or docstring; a class of tests may do so for all of its tests. Both must
agree, and `tests/test_rows.py` fails where they do not: a number in a docstring alone is a claim
that nobody has read. The scenarios of the first design have a test each, which its file names.
Titles come from the mission's table where it lies beside the project.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.sources import ROOT, parse_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = ROOT / "tests/rows.toml"
MISSION = ROOT.parent / "shared/spec/mission.md"
LAST = 238
ROWS = tuple(f"M{number:03}" for number in range(1, LAST + 1))

_COUNTS = (
    *((3, 8, 5, 7, 3), (4, 3, 4, 3, 7), (3, 5, 3, 2, 4, 3), (3, 2, 4), (3, 4, 3, 1), (3, 3, 1)),
    *((3, 3, 1), (5, 5, 2, 2), (8, 4, 1, 7, 6), (3, 4, 7, 3, 2), (4, 4, 6), (2, 3, 3)),
)
"""The scenarios in each part of J.1 to J.12; J.11 has parts without numbers."""
SCENARIOS = (
    *(
        f"J{chapter}-{part}.{number}"
        for chapter, parts in enumerate(_COUNTS, 1)
        for part, count in enumerate(parts, 1)
        for number in range(1, count + 1)
    ),
    *(f"TOOLCFG-{number:03}" for number in range(1, 7)),
    *(f"TOOLRES-{number:03}" for number in range(1, 7)),
    *(f"PJSON-{number:03}" for number in range(1, 9)),
)
"""What the first design lists there, and of presets, results and partial JSON."""

NUMBER = re.compile(r"(?<![A-Za-z0-9])[Mm](\d{3})(?![A-Za-z0-9])")
TITLE = re.compile(r"^\| *(M\d{3}) *\|([^|]*)\|(.*?)\|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """What the tests assert of one row, by which tests, and why it is open: "" where it is not."""

    asserts: str = ""
    tests: tuple[str, ...] = ()
    open: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """The file: its rows in its order, the test of each scenario, and why the others wait."""

    rows: dict[str, Row]
    scenarios: dict[str, str]
    waiting: dict[str, str]


def read_table(text: str) -> Table:
    """Parse the text of the file."""
    fields = tomllib.loads(text)
    return Table(
        rows={
            key: Row(row.get("asserts", ""), tuple(row.get("tests", ())), row.get("open", ""))
            for key, row in fields.items()
            if NUMBER.fullmatch(key)
        },
        scenarios=fields.get("scenarios", {}),
        waiting=fields.get("open_scenarios", {}),
    )


def find_tests(root: Path) -> dict[str, set[str]]:
    """Return every test and class of tests below `root/tests`, and the rows that it names."""
    found: dict[str, set[str]] = {}
    trees = parse_files(root, sorted((root / "tests").rglob("test_*.py")))
    for file, tree in trees.items():
        for name, words in _names(tree, file.as_posix()):
            found.setdefault(name, set()).update(f"M{number}" for number in NUMBER.findall(words))
    return found


def _names(scope: ast.Module | ast.ClassDef, place: str) -> Iterator[tuple[str, str]]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield f"{place}::{node.name}", f"{node.name} {ast.get_docstring(node) or ''}"
            yield from _names(node, f"{place}::{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:4] == "test":
            yield f"{place}::{node.name}", f"{node.name} {ast.get_docstring(node) or ''}"


def find_faults(table: Table, tests: dict[str, set[str]]) -> list[str]:
    """Return a sentence for each place where the table and the tests do not agree."""
    return [
        *_faults_of_rows(table),
        *_faults_of_tests(table, tests),
        *(
            f"{name} names {row}, which rows.toml does not list for it"
            for name, rows in tests.items()
            for row in sorted(rows)
            if name not in {_whole(test) for test in table.rows.get(row, Row()).tests}
        ),
    ]


def _faults_of_rows(table: Table) -> Iterator[str]:
    if [row for row in ROWS if row in table.rows] != list(table.rows):
        yield "the rows do not stand in their order, or there are others"
    for name in ROWS:
        row = table.rows.get(name)
        if row is None:
            yield f"{name} is not there"
        elif bool(row.asserts) != bool(row.tests):
            yield f"{name} needs tests with what they assert"
        elif not row.asserts and not row.open:
            yield f"{name} is neither asserted nor open"


def _faults_of_tests(table: Table, tests: dict[str, set[str]]) -> Iterator[str]:
    for name, row in table.rows.items():
        if len(set(row.tests)) != len(row.tests):
            yield f"{name} lists a test twice"
        for test in map(_whole, row.tests):
            if test not in tests:
                yield f"{name} lists {test}, which does not exist"
            elif name not in tests[test]:
                yield f"{name} lists {test}, which does not name it"


def find_scenario_faults(table: Table, tests: dict[str, set[str]], root: Path) -> list[str]:
    """Return a sentence for each scenario whose test does not exist or does not name it."""
    files = {name.partition("::")[0] for name in table.scenarios.values()} & {
        name.partition("::")[0] for name in tests
    }
    texts = {file: (root / file).read_text("utf-8") for file in files}
    faults = [
        f"{name} is both tested and open" for name in table.scenarios if name in table.waiting
    ]
    listed = {**table.scenarios, **table.waiting}
    faults += [f"{name} is not there" for name in SCENARIOS if name not in listed]
    faults += [f"{name} is no scenario" for name in listed if name not in SCENARIOS]
    for scenario, test in table.scenarios.items():
        if _whole(test) not in tests:
            faults.append(f"{scenario} lists {test}, which does not exist")
        elif not re.search(rf"(?<!\w){re.escape(scenario)}(?!\.?\d)", texts[test.split("::")[0]]):
            faults.append(f"{scenario} lists {test}, whose file does not name it")
    return faults


def _whole(test: str) -> str:
    """Return the name of a test without the parameters of a case."""
    return test.partition("[")[0]


def read_titles(mission: Path) -> dict[str, str]:
    """Return what every row asks for: "" where the mission's table is not at hand."""
    found = TITLE.findall(mission.read_text("utf-8")) if mission.exists() else []
    asked = {row: f"{group.strip()}: {words.strip()}" for row, group, words in found}
    return {row: asked.get(row, "") for row in ROWS}


def report(table: Table, titles: dict[str, str]) -> str:
    """Return a line for each open row with its reason, and last how many there are."""
    lines = []
    for name, title in titles.items():
        row = table.rows.get(name, Row())
        if row.open or not row.tests:
            mark = "" if row.tests else "NO TEST  "
            lines.append(f"{name}  {mark}{title[:94]}".rstrip() + f"\n      {row.open}")
    untested = sum(not table.rows.get(name, Row()).tests for name in titles)
    scenarios = "".join(f"{name}  {why}\n" for name, why in table.waiting.items())
    counted = f"{len(lines)} of {len(titles)} rows are open, {untested} of them without a test"
    return "\n".join([*lines, scenarios + counted])


if __name__ == "__main__":
    print(report(read_table(TABLE.read_text("utf-8")), read_titles(MISSION)))
