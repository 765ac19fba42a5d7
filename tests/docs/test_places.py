"""The table "Where does it go?" of CONTRIBUTING.md names files and names that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TABLE = (
    (ROOT / "CONTRIBUTING.md")
    .read_text("utf-8")
    .partition("## Where does it go?\n")[2]
    .partition("\n## ")[0]
)
ROWS = [line.strip("|").split(" | ") for line in TABLE.split("\n") if line.startswith("| ")][1:]
PATH = re.compile(r"`((?:tape|gong|tests|docs)/[\w./*-]*)`")
NAMED = re.compile(r"`(\w+)`[^`|]* (?:in|of) `([\w./]+\.py)`")


def test_every_change_has_its_place():
    assert len(ROWS) > 10
    assert all(PATH.search(begins) for _, begins, _ in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_each_file_of_a_row_exists(row):
    paths = [path for cell in row for path in PATH.findall(cell)]
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(("name", "file"), NAMED.findall(TABLE))
def test_each_name_of_the_table_is_in_its_file(name, file):
    assert re.search(rf"^(?:class )?{name}\b", (ROOT / file).read_text("utf-8"), re.MULTILINE)
