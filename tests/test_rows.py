from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.rows import LAST, MISSION, ROOT, named_rows, not_built, report, rows

WAITING = not_built()[0]

TESTS = f'''
"""M006 in a module's docstring is talk."""

def test_m001_in_a_name(): pass

def test_in_a_docstring():
    """M002 and M003: together."""

class TestGroup:
    """{WAITING}"""

    async def test_inside(self):
        """XM005 and M0055 are other words."""

def helper():
    """M005"""
'''

TABLE = f"""\
| ID | group | requirement | seed |
|---|---|---|---|
| M001 | loop | one | 000 |
| M005 | tools | five: a\\b | 000,001 |
| M006 | tools | six | 000 |
| {WAITING} | loop | last | 000 |
"""


def test_open_rows_are_listed_with_what_they_ask_for(tmp_path):
    # The last is not built, so that no test counts for it.
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/test_some.py").write_text(TESTS)
    (tmp_path / "mission.md").write_text(TABLE)
    assert report(tmp_path, tmp_path / "mission.md").split("\n") == [
        "M005  NO TEST  tools: five: a\\b",
        "M006  NO TEST  tools: six",
        f"{WAITING}  loop: last",
        "3 of 4 rows are open: 1 not built, 2 untested",
    ]


def test_every_row_is_either_tested_or_not_built():
    waiting, named = not_built(), named_rows(ROOT / "tests")
    assert len(waiting) == len(set(waiting))
    assert sorted(rows(MISSION).keys() - named - set(waiting)) == []


def test_without_the_table_rows_have_numbers_only(tmp_path):
    listed = rows(tmp_path / "mission.md")
    assert (len(listed), listed["M001"], listed["M238"]) == (238, "", "")
    assert rows(MISSION).keys() == listed.keys()
    assert LAST == 238


def test_the_lister_runs_as_a_script_and_succeeds():
    done = subprocess.run(
        [sys.executable, Path(ROOT, "tests/rows.py")], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip().endswith(" not built, 0 untested")
