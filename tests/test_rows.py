from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rows import (
    LAST,
    MISSION,
    ROOT,
    ROWS,
    SCENARIOS,
    TABLE,
    Row,
    Table,
    find_faults,
    find_scenario_faults,
    find_tests,
    read_table,
    read_titles,
    report,
)

SOME = "tests/deep/test_some.py"
TESTS = """
\"\"\"M006 in a module's docstring is talk.\"\"\"

def test_m001_in_a_name(): pass

def test_in_a_docstring():
    \"\"\"M002 and M003: together.\"\"\"

class TestGroup:
    \"\"\"M004\"\"\"

    async def test_inside(self):
        \"\"\"XM005 and M0055 are other words; J1-1.1.\"\"\"

def helper():
    \"\"\"M005\"\"\"
"""
GROUP = {
    f"{SOME}::test_m001_in_a_name": {"M001"},
    f"{SOME}::test_in_a_docstring": {"M002", "M003"},
    f"{SOME}::TestGroup": {"M004"},
    f"{SOME}::TestGroup::test_inside": set(),
}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "tests/deep").mkdir(parents=True)
    (tmp_path / SOME).write_text(TESTS)
    return tmp_path


def test_tests_name_rows_in_their_names_and_docstrings(root):
    assert find_tests(root) == GROUP


AGREED = Table(
    {
        "M001": Row("one", (f"{SOME}::test_m001_in_a_name[a case]",)),
        "M002": Row("two", (f"{SOME}::test_in_a_docstring",), "half of it"),
        "M003": Row("three", (f"{SOME}::test_in_a_docstring",)),
        "M004": Row("four", (f"{SOME}::TestGroup",)),
        **{row: Row(open="not built") for row in ROWS[4:]},
    },
    {},
    {},
)


def changed(**rows):
    return Table({**AGREED.rows, **rows}, {}, {})


FAULTS = {
    "all is well": (AGREED, []),
    "a test that does not exist": (
        changed(M005=Row("five", ("tests/test_none.py::test_x",))),
        ["M005 lists tests/test_none.py::test_x, which does not exist"],
    ),
    "a test that does not name the row": (
        changed(M005=Row("five", (f"{SOME}::TestGroup::test_inside",))),
        [f"M005 lists {SOME}::TestGroup::test_inside, which does not name it"],
    ),
    "a test that only itself names the row": (
        changed(M004=Row(open="not built")),
        [f"{SOME}::TestGroup names M004, which rows.toml does not list for it"],
    ),
    "a row that says nothing": (changed(M005=Row()), ["M005 is neither asserted nor open"]),
    "a claim without a test": (
        changed(M005=Row("five")),
        ["M005 needs tests with what they assert"],
    ),
    "a test without what it asserts": (
        changed(M001=Row("", AGREED.rows["M001"].tests, "open")),
        ["M001 needs tests with what they assert"],
    ),
    "a row that nobody wrote": (
        Table({row: one for row, one in AGREED.rows.items() if row != "M238"}, {}, {}),
        ["M238 is not there"],
    ),
    "rows in another order": (
        Table(dict(sorted(AGREED.rows.items(), reverse=True)), {}, {}),
        ["the rows do not stand in their order, or there are others"],
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_where_table_and_tests_disagree_is_named(case):
    table, faults = FAULTS[case]
    assert find_faults(table, GROUP) == faults


def test_a_scenario_has_a_test_whose_file_names_it(root):
    inside = f"{SOME}::TestGroup::test_inside"
    listed = {"J1-1.1": inside, "J1-1.2": inside, "J1-9.9": inside}
    waiting = dict.fromkeys(SCENARIOS[2:], "not built")
    assert find_scenario_faults(Table({}, listed, waiting), GROUP, root) == [
        "J1-9.9 is no scenario",
        f"J1-1.2 lists {inside}, whose file does not name it",
        f"J1-9.9 lists {inside}, whose file does not name it",
    ]


def test_open_rows_are_listed_with_what_they_ask_for_and_why(tmp_path):
    (tmp_path / "mission.md").write_text(
        "| M001 | loop | one | 000 |\n| M002 | tools | two: a\\\\b | 000,001 |\n"
        "| M005 | loop | five | 000 |\n"
    )
    titles = read_titles(tmp_path / "mission.md")
    lines = report(AGREED, titles).split("\n")
    assert lines[:4] == [
        "M002  tools: two: a\\\\b",
        "      half of it",
        "M005  NO TEST  loop: five",
        "      not built",
    ]
    assert lines[-1] == "235 of 238 rows are open, 234 of them without a test"
    assert len(lines) == 2 * 235 + 1


def test_every_row_and_scenario_is_asserted_by_its_tests_or_open():
    """M209: the scenarios of the first design, too."""
    table, tests = read_table(TABLE.read_text("utf-8")), find_tests(ROOT)
    assert find_faults(table, tests) == []
    assert find_scenario_faults(table, tests, ROOT) == []


def test_rows_and_scenarios_are_those_of_the_mission(tmp_path):
    assert (len(ROWS), ROWS[-1], LAST, len(SCENARIOS)) == (238, "M238", 238, 202)
    titles = read_titles(MISSION)
    assert tuple(titles) == ROWS
    assert all(titles.values()) is MISSION.exists()
    assert set(read_titles(tmp_path / "none.md").values()) == {""}


def test_the_lister_runs_as_a_script_and_succeeds():
    done = subprocess.run(
        [sys.executable, Path(ROOT, "tests/rows.py")], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip().endswith(" of them without a test")
