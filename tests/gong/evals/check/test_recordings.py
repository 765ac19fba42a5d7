"""Sessions that Claude Code, Codex and Gemini CLI recorded themselves, their model being played.

Each read a.py and changed it, changed b.py unread, made new.py and changed it, showed c.py by a
command that wrote above the folder, changed c.py, and replaced d.py.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.evals.check.finding import CheckLimits
from gong.evals.check.report import check_trajectory
from gong.evals.check.trajectory import build_trajectory
from tape.formats.sessions.loading import load_reader
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


def put_junk(value: Any, junk: Any, place: int) -> Any:
    """Return a JSON value in which one part, chosen by a number, is something else."""
    if place == 0 or not value or not isinstance(value, dict | list):
        return junk
    keys = [*value] if isinstance(value, dict) else range(len(value))
    key = keys[place % len(keys)]
    changed = value.copy()
    changed[key] = put_junk(value[key], junk, place // len(keys))
    return changed


@pytest.mark.parametrize("tool", FINDINGS)
@given(
    st.integers(0, 99),
    st.sampled_from([None, 0, 1e308, "", "x\0", [], {}, [[]], {"a": 1}, True, "../..", "$("]),
    st.integers(0, 5000),
)
def test_lines_of_any_content_break_no_check(tool: str, row: int, junk: Any, place: int) -> None:
    lines = (RECORDINGS / f"{tool}.jsonl").read_bytes().splitlines()
    row %= len(lines)
    lines[row] = json.dumps(put_junk(json.loads(lines[row]), junk, place)).encode()
    trajectory = build_trajectory(load_reader(tool).read_session(lambda: lines, "name"))
    limits = CheckLimits(("/src/app",), 0.1, 3)
    report = check_trajectory(tool, trajectory, limits, lambda *_: None)
    assert report.turns <= 11
