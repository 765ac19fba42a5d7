"""The same faults in the sessions of four agents: each is found where it is, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gong.context.costs import format_money
from gong.evals.check.finding import CheckLimits
from gong.evals.check.report import check_trajectory
from gong.evals.check.trajectory import build_trajectory
from tape.model.entries import Cost
from tests.gong.evals.check.samples import FINE, WRITERS, Call, write_atif, write_gemini
from tests.tape.formats.sessions.lines import read_lines

if TYPE_CHECKING:
    from gong.evals.check.report import CheckReport

READ, EDIT, _, _, CAT, EDIT_C, RUN = FINE


def check(tool: str, data: bytes, limits: CheckLimits | None = None, price=None) -> CheckReport:
    trajectory = build_trajectory(read_lines(tool, data))
    price = price or (lambda *_: Cost("USD", 0.25))
    return check_trajectory("f", trajectory, limits or CheckLimits(), price)


def find(tool: str, *calls: Call, **limits) -> list[tuple[str, str]]:
    report = check(tool, WRITERS[tool](calls), CheckLimits(**limits))
    return [(finding.kind, finding.detail) for finding in report.findings]


@pytest.mark.parametrize("tool", WRITERS)
def test_a_session_that_reads_before_it_edits_has_no_findings(tool: str) -> None:
    report = check(tool, WRITERS[tool](FINE), CheckLimits(max_cost=2.0, max_turns=7))
    assert report.findings == ()
    assert (report.calls, report.turns, report.roots) == (7, 7, ("/src/app",))


@pytest.mark.parametrize("tool", WRITERS)
def test_each_fault_is_found_and_named(tool: str) -> None:
    assert find(tool, EDIT) == [("edit-before-read", "/src/app/a.py")]
    assert find(tool, EDIT, READ, EDIT) == [("edit-before-read", "/src/app/a.py")]
    assert find(tool, READ._replace(fails=True, results=("no such file",)), EDIT) == [
        ("edit-before-read", "/src/app/a.py")
    ]
    assert find(tool, Call("write", "/etc/cron.d/x", "x")) == [("outside-root", "/etc/cron.d/x")]
    assert find(tool, Call("write", "../app2/x", "x")) == [("outside-root", "/src/app2/x")]
    assert find(tool, Call("run", "cd .. && echo x > y; rm -r /src/app/z")) == [
        ("outside-root", "/src/y")
    ]
    (left,) = find(tool, READ, RUN._replace(results=()))
    assert left[0] == "no-result"


@pytest.mark.parametrize("tool", ["claude", "codex", "atif"])
def test_a_second_result_is_found(tool: str) -> None:
    ((kind, _),) = find(tool, READ._replace(results=("one", "two")), EDIT)
    assert kind == "two-results"


@pytest.mark.parametrize("tool", WRITERS)
def test_what_failed_did_nothing(tool: str) -> None:
    refused = EDIT._replace(fails=True, results=("File has not been read yet",))
    assert find(tool, refused, READ, EDIT) == []
    assert find(tool, Call("write", "/etc/x", "x", fails=True, results=("denied",))) == []


@pytest.mark.parametrize("tool", WRITERS)
def test_lines_that_a_search_or_a_script_showed_are_read(tool: str) -> None:
    found = "a.py:2:    return a - b\nb.py:1:x"
    assert find(tool, Call("run", "rg -n return", results=(found,)), EDIT) == []
    listed = Call("run", "ls", results=("a.py b.py",))
    assert find(tool, listed, EDIT) == [("edit-before-read", "/src/app/a.py")]


@pytest.mark.parametrize("tool", WRITERS)
def test_more_roots_can_be_named(tool: str) -> None:
    calls = (Call("write", "/tmp/x", "x"), Call("write", "b.py", "x"))
    assert find(tool, *calls) == [("outside-root", "/tmp/x")]
    assert find(tool, *calls, roots=("/tmp", "/src")) == []
    assert find(tool, *calls, roots=("/tmp",)) == [("outside-root", "/src/app/b.py")]


@pytest.mark.parametrize("tool", ["claude", "gemini"])
def test_a_file_that_was_there_is_overwritten_unread(tool: str) -> None:
    write = Call("write", "b.py", "x", overwrites=True)
    assert find(tool, write) == [("edit-before-read", "/src/app/b.py")]
    assert find(tool, Call("read", "b.py"), write) == []


@pytest.mark.parametrize("tool", WRITERS)
def test_cost_and_turns_are_limited(tool: str) -> None:
    cost = 0.07 if tool == "atif" else 1.75
    report = check(tool, WRITERS[tool](FINE), CheckLimits(max_cost=cost / 2, max_turns=3))
    assert (report.turns, report.cost) == (7, cost)
    turns, money = report.findings
    assert (turns.kind, turns.detail) == ("over-turns", "7 turns, 3 are allowed")
    assert (money.kind, money.detail.partition(",")[0]) == ("over-cost", format_money(cost))
    assert turns.entry == money.entry


def test_an_unknown_cost_keeps_no_limit() -> None:
    data = WRITERS["codex"](FINE)
    report = check("codex", data, CheckLimits(max_cost=9.0), price=lambda *_: None)
    assert [finding.kind for finding in report.findings] == ["unknown-cost"]
    assert report.cost is None
    assert check("codex", data, price=lambda *_: None).findings == ()


def test_a_trajectory_that_says_its_cost_as_a_whole_is_believed() -> None:
    data = write_atif(FINE, final_metrics={"total_cost_usd": 0.5})
    bare = data.replace(b', "cost_usd": 0.01', b"")
    report = check("atif", bare, CheckLimits(max_cost=0.4), price=lambda *_: None)
    assert report.cost == 0.5
    assert [finding.detail for finding in report.findings] == ["$0.500, $0.400 is allowed"]


def test_entries_are_named_as_in_the_file() -> None:
    found = {tool: check(tool, WRITERS[tool]((READ, RUN, CAT, EDIT, EDIT_C))) for tool in WRITERS}
    assert {tool: report.findings for tool, report in found.items()} == dict.fromkeys(WRITERS, ())
    blind = {tool: check(tool, WRITERS[tool]((RUN, EDIT))).findings for tool in WRITERS}
    assert {tool: finding.entry for tool, (finding,) in blind.items()} == {
        "claude": "a1",
        "codex": "#6",
        "gemini": "g1#2",
        "atif": "#3",
    }


def test_without_a_folder_absolute_paths_are_not_judged() -> None:
    calls = (Call("write", "/etc/x", "x"), Call("write", "../y", "x"), Call("run", "ls > ../z"))
    data = write_gemini(calls).replace(b'"directories": ["/src/app"], ', b"")
    report = check("gemini", data)
    assert report.roots == ()
    assert [finding.detail for finding in report.findings] == ["../y", "../z"]
    rooted = check("gemini", data, CheckLimits(roots=("/src/app",)))
    assert [finding.detail for finding in rooted.findings] == ["/etc/x", "/src/y", "/src/z"]


def test_what_codex_says_of_a_call_tells_whether_it_failed() -> None:
    head = "Chunk ID: 7d5f34\nWall time: 0.0 seconds\nProcess exited with code {}\nOutput:\n"
    for says, count in (
        (head.format(1), 1),
        (head.format(0), 0),
        ("unsupported custom tool call: apply_patch", 1),
        ('{"output": "x", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}', 1),
    ):
        read = READ._replace(results=("SAYS",))
        data = WRITERS["codex"]((read, EDIT))
        text = json.dumps("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSAYS\n").encode()
        report = check("codex", data.replace(text, json.dumps(says).encode()))
        assert len(report.findings) == count, says
