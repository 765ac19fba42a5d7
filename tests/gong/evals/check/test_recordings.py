"""Sessions that Claude Code, Codex and Gemini CLI recorded themselves, their model being played.

Each read a.py and changed it, changed b.py unread, made new.py and changed it, showed c.py by a
command that wrote above the folder, changed c.py, and replaced d.py.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gong.evals.check.finding import CheckLimits
from gong.evals.check.report import check_trajectory
from gong.evals.check.trajectory import build_trajectory
from tests.tape.formats.sessions.lines import list_payloads, read_lines

RECORDINGS = Path(__file__).parent / "recordings"
FINDINGS = {
    # It refuses to change b.py, so nothing was changed; d.py was shown before.
    "claude": [("outside-root", "/src/outside.txt")],
    "codex": [("edit-before-read", "/src/app/b.py"), ("outside-root", "/src/outside4.txt")],
    "gemini": [
        ("edit-before-read", "/src/app/b.py"),
        ("outside-root", "/src/outside3.txt"),
        ("edit-before-read", "/src/app/d.py"),
    ],
}


@pytest.mark.parametrize("tool", FINDINGS)
def test_what_agents_recorded_has_these_findings_and_no_others(tool: str) -> None:
    data = (RECORDINGS / f"{tool}.jsonl").read_bytes()
    trajectory = build_trajectory(read_lines(tool, data))
    report = check_trajectory(tool, trajectory, CheckLimits(), lambda *_: None)
    assert [(finding.kind, finding.detail) for finding in report.findings] == FINDINGS[tool]
    assert report.roots == ("/src/app",)
    assert report.calls >= 8


@pytest.mark.parametrize("tool", FINDINGS)
def test_a_lost_result_of_a_recording_is_found(tool: str) -> None:
    lines = (RECORDINGS / f"{tool}.jsonl").read_bytes().splitlines()
    marks = (b'"tool_result"', b'_call_output"', b'"toolCalls"')
    place = max(at for at, line in enumerate(lines) if any(mark in line for mark in marks))
    if tool == "gemini":  # the result stands beside its call, and in the line after it
        lines[place] = lines[place].replace(b'"functionResponse"', b'"lost"')
        assert b'"functionResponse"' in lines.pop(place + 1)
    else:
        del lines[place]
    trajectory = build_trajectory(read_lines(tool, b"\n".join(lines)))
    report = check_trajectory(tool, trajectory, CheckLimits(), lambda *_: None)
    assert [finding.kind for finding in report.findings].count("no-result") == 1


def test_results_that_gemini_writes_twice_are_there_once() -> None:
    data = (RECORDINGS / "gemini.jsonl").read_bytes()
    session = read_lines("gemini", data)
    payloads = [type(payload).__name__ for payload in list_payloads(session)]
    assert Counter(payloads) == {"Context": 1, "User": 1, "Assistant": 9, "ToolResult": 8}
    assert session.left_out["covered"] >= 8
