"""Results in figures, as JUnit XML that a parser reads, and as a page that obeys nobody."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

from gong.evals.junit import build_junit
from gong.evals.page import build_page
from gong.evals.result import RunChoices, TryResult
from gong.evals.summary import format_result, format_total, sum_results

EVIL = "</td><script>alert(1)</script>\x1b[2J\0\ud800 ]]> & \u202e <img src=x onerror=1>"
RESULTS = [
    TryResult("a", 1, "solved", 1.0, tape="f" * 32, cost=0.25, turns=3, agent_seconds=1.5),
    TryResult("a", 2, "failed", 0.5, tape="e" * 32, cost=0.25, turns=5, stopped="turns"),
    TryResult("b", 1, "bad-reward", None, EVIL),
]


def test_rates_count_each_task_the_same() -> None:
    summary = sum_results(RESULTS)
    assert (summary.tries, summary.solved, summary.errors) == (3, 1, 1)
    assert summary.rate == 0.25
    assert (summary.cost, summary.turns) == (0.5, 8)
    assert [(t.task, t.rate, t.reward, t.turns) for t in summary.tasks] == [
        ("a", 0.5, 0.75, 4.0),
        ("b", 0.0, None, 0.0),
    ]
    assert format_total(summary) == (
        "1 of 3 tries solved, 25% on average over tasks, 1 error; 8 turns, $0.500"
    )


def test_a_cost_that_is_not_known_makes_the_sum_unknown() -> None:
    unknown = TryResult("c", 1, "failed", 0.0, tape="d" * 32, cost=None)
    assert sum_results([*RESULTS, unknown]).cost is None
    assert sum_results([]).cost == 0


def test_a_line_of_a_try_has_no_control_characters() -> None:
    line = format_result(RESULTS[2])
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert format_result(RESULTS[1]).startswith("✗ a #2: failed, reward 0.5, stopped by its limit")


def test_a_parser_of_xml_reads_the_junit_file() -> None:
    root = ET.fromstring(build_junit(EVIL, RESULTS).encode())
    suite = root.find("testsuite")
    assert suite is not None
    assert (root.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        *("testsuites", "3", "1", "1"),
    )
    cases = suite.findall("testcase")
    assert [(c.get("classname"), c.get("name"), [k.tag for k in c if k.tag != "properties"])
            for c in cases] == [
        ("a", "a #1", []), ("a", "a #2", ["failure"]), ("b", "b #1", ["error"]),
    ]  # fmt: skip
    error = cases[2].find("error")
    assert error is not None
    assert error.get("type") == "bad-reward"
    assert "<script>" in (error.get("message") or "")
    tape = cases[0].find("properties/property")
    assert tape is not None
    assert (tape.get("name"), tape.get("value")) == ("tape", "f" * 32)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_page_has_no_tag_of_foreign_text() -> None:
    page = build_page(EVIL, RunChoices("gong", EVIL, "bwrap"), RESULTS)
    tags = _Tags()
    tags.feed(page)
    assert tags.seen == {
        *("html", "meta", "title", "style", "h1", "p", "div", "table", "tr", "th", "td", "h2"),
    }
    assert tags.attributes == {"lang", "charset", "name", "content", "http-equiv", "class"}
    assert "default-src 'none'" in page
    assert "\x1b" not in page
    page.encode()
