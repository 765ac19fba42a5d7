"""Every block of docs/embedding.md runs as it stands, and the public face is pinned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gong

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/embedding.md").read_text("utf-8")
ALL = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PRINTED = {
    0: "`echo hello` printed: hello\nidle",
    1: "8143",
    2: "session_start agent_end True",
    3: "follow_up run echo two",
    4: "Which store? awaiting_input\nAdd a table",
    5: "['No tests']",
    6: "stopped at round",
    7: "True",
    8: "/note.txt)',)\ncompleted\nnote.txt is changed",
    9: "Only reading is allowed here.",
    10: "HELLO",
    11: "exec: true",
    12: "-hello\n\n1 False\nTrue\n",
    13: "2",
}
"""A part of what each block prints."""


@pytest.mark.parametrize("number", range(len(ALL)))
def test_a_block_of_the_page_runs_unchanged_m009(number, tmp_path):
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "TAPE_HOME": str(tmp_path / "home"),
    }
    done = subprocess.run(
        [sys.executable, "-c", ALL[number]],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert PRINTED[number] in done.stdout


def test_the_public_face_is_pinned():
    assert gong.__all__ == [
        *("AgentModel", "AgentTool", "ExecutionEnvironment", "GongError", "LocalEnvironment"),
        *("RewindPlan", "RewindReport"),
        *("Session", "SessionConfig", "SessionSetup", "SessionState", "Settings"),
        *("ToolContext", "ToolOutcome", "Verdict", "answer_prompt", "build_file_patches"),
        *("events", "open_session", "plan_redo", "plan_rewind", "plan_undo"),
    ]
    for name in gong.__all__:
        assert getattr(gong, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Sesion'"):
        _ = gong.Sesion


def test_the_face_imports_nothing_before_it_is_used():
    code = "import sys, gong; print([n for n in sys.modules if n.startswith(('gong.', 'tape'))])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
