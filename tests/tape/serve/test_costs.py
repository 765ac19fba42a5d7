"""The page of costs: its sums are those of `tape stats`."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape

import pytest

from tests import warm
from tests.tape.serve.conftest import record, serving


@pytest.fixture(scope="module")
def server(library):
    record(library, "One", "hello", "again", cost=0.5, person="Ada <ada@example.org>")
    record(library, "Two", "hello", model="gpt-y", cost=2.25, cwd="/other")
    record(library, "Three", "hello", model="<script>alert(1)</script>", cost=None)
    with serving(library.store.path.parent) as started:
        yield started


def read_rows(page, label):
    """Return the rows of a table: name, cost, tokens, calls and calls of tools."""
    table = re.search(rf'<th scope="col">{label}</th>.*?</table>', page, re.DOTALL)[0]
    body = table.partition("<tbody")[2]
    rows = re.findall(r"<tr>(.*?)</tr>", body)
    cells = [re.findall(r"<bdi>(.*?)</bdi>|<td[^>]*>(.*?)</td>", row) for row in rows]
    return [[unescape(name or number) for name, number in row] for row in cells]


def ask_stats(server, by):
    command = [warm.find_commands() / "tape", "stats", "--by", by, "--json"]
    return json.loads(subprocess.check_output(command, env=server.env))


@pytest.mark.parametrize(
    ("by", "label"), [("model", "Model"), ("person", "Person"), ("agent", "Agent"), ("day", "Day")]
)
def test_the_sums_are_those_of_stats(server, by, label):
    rows = read_rows(server.get("/costs"), label)
    shown = {name: (tokens, calls) for name, _, tokens, calls, _ in rows}
    counted = ask_stats(server, by)
    assert shown == {row[by] or "–": (str(row["total"]), str(row["calls"])) for row in counted}


def test_costs_are_shown_by_model_and_project_and_day(server):
    page = server.get("/costs", days="7")
    assert read_rows(page, "Model")[:2] == [
        ["anthropic/gpt-y", "$2.25", "120", "1", "0"],
        ["anthropic/claude-x", "$1.00", "240", "2", "0"],
    ]
    projects = [row[:2] for row in read_rows(page, "Project")]
    assert projects == [["/other", "$2.25"], ["/src", "$1.00+"]]
    points = json.loads(unescape(re.search(r"data-points='(.*?)'", page)[1]))
    assert points["costs"] == [3.25]
    assert "<script>alert" not in page


@pytest.mark.parametrize("query", [{"days": "x"}, {"days": "-1"}, {"all": "\x1b"}])
def test_what_is_asked_wrongly_shows_all(server, query):
    assert "$3.25+" in server.get("/costs", **query)


def test_a_store_without_calls_says_so(tmp_path):
    (tmp_path / ".tape").mkdir()
    with serving(tmp_path) as server:
        assert "No call of a model is recorded" in server.get("/costs")
