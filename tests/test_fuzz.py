"""Properties: the same in every usual run, elsewhere in a search, and what is found is replayed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.found import FOLDER

pytestmark = pytest.mark.slow

SAMPLE = """\
from hypothesis import Phase, given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

@given(st.integers())
def test_drawn(number):
    print("drawn", number)

@given(st.lists(st.integers()))
def test_sum(numbers):
    assert sum(numbers) < 1000 or len(numbers) < 2

class Counter(RuleBasedStateMachine):
    total = 0

    @rule(step=st.integers(0, 50))
    def add(self, step):
        self.total += step
        assert self.total < 40

TestCounter = Counter.TestCase

def test_no_property():
    print("no property")
"""
FOUND_SUM = {
    "test": "tests/test_sample.py::test_sum",
    "shown": ["Failing test case: test_sum(", "    numbers=[0, 1000],", ")"],
}


@pytest.fixture
def run(tmp_path):
    """Return a runner of a small suite with this suite's rules, for so many seconds if asked to."""
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "found.py"):
        shutil.copy(FOLDER.parent / name, tmp_path / "tests")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "tests/test_sample.py").write_text(SAMPLE)

    def run(*options, search=0.0):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "FUZZ"))}
        if search:
            env["FUZZ_UNTIL"] = str(time.time() + search)
        command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *options]
        env["PYTHONPATH"] = str(tmp_path)
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        return done.stdout

    return run


def numbers(out):
    return [line for line in out.split("\n") if line.startswith("drawn")]


def test_a_usual_run_draws_the_same_each_time_and_a_search_does_not(run):
    first, again = (numbers(run("-k", "drawn")) for _ in range(2))
    assert len(first) > 20
    assert first == again
    searched = run(search=600)
    assert numbers(searched) != first
    assert "no property" not in searched


def test_what_a_search_finds_is_a_file_that_usual_runs_replay_also_after_edits(run, tmp_path):
    assert "2 failed" in run("-k", "sum or Counter", search=600)
    found, counter = sorted(
        (json.loads(path.read_text()) for path in (tmp_path / "tests/found").iterdir()),
        key=lambda case: "Counter" in case["test"],
    )
    assert {key: found[key] for key in FOUND_SUM} == FOUND_SUM
    assert counter["shown"][2] == "state.add(step=40)"
    # Nothing but what was found is tried, and no assertion fails any more.
    edited = SAMPLE.replace("@given(st.lists", "@settings(phases=[Phase.reuse])\n@given(st.lists")
    edited = edited.replace("assert sum", "print('tried', numbers)\n    return sum")
    (tmp_path / "tests/test_sample.py").write_text(edited)
    files = set((tmp_path / "tests/found").iterdir())
    for search in (0, 600):
        out = run("-k", "sum", search=search)
        tried = {line for line in out.split("\n") if "tried" in line}
        assert {line.rpartition("tried")[2] for line in tried} == {" [0, 1000]"}
        assert set((tmp_path / "tests/found").iterdir()) == files


def test_a_search_without_time_left_says_so(run):
    assert "no time left for test_drawn" in run("-rs", "-k", "drawn", search=-1)


def test_every_case_that_was_found_is_of_a_test_there_is():
    for path in FOLDER.glob("*.json"):
        file, *names = json.loads(path.read_text("utf-8"))["test"].partition("[")[0].split("::")
        assert names[0] in Path(FOLDER.parent.parent, file).read_text("utf-8"), path
