"""The tasks of `examples/evals`, each judged untouched, spoilt and solved.

A task is a folder as Harbor has it. Its workspace is what `environment/Dockerfile` copies to /app:
all of `environment/` but the Dockerfile.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

TASKS = Path(__file__).parent.parent / "examples" / "evals"
NAMES = sorted(folder.name for folder in TASKS.iterdir() if folder.is_dir())
QUICK = {"last-page", "note-search", "split-names"}
"""The tasks that are tried in each run of the tests: those that take the least time."""


def mark(name, script):
    return pytest.param(name, script, marks=[] if name in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize(
    ("name", "script"),
    [mark(name, script) for name in NAMES for script in ("untouched", "spoil", "solve")],
)
def test_a_task_rewards_its_solution_alone(name, script, tmp_path):
    task = TASKS / name
    work, logs = tmp_path / "app", tmp_path / "logs"
    shutil.copytree(task / "environment", work, ignore=shutil.ignore_patterns("Dockerfile"))
    if script != "untouched":
        run(task / "solution" / f"{script}.sh", work, check=True)
    done = run(task / "tests/test.sh", work, VERIFIER_LOGS=str(logs))
    reward = float((logs / "reward.txt").read_text())
    assert (done.returncode, reward) == (0, float(script == "solve")), done.stderr


def run(script, work, *, check=False, **environment):
    return subprocess.run(
        ["bash", script],
        cwd=work,
        env={"PATH": os.environ["PATH"], "HOME": str(work.parent), "LANG": "C.UTF-8"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=check,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_task_has_the_layout_of_harbor(name):
    task = TASKS / name
    settings = tomllib.loads((task / "task.toml").read_text())
    assert settings["task"]["name"] == f"gong/{name}"
    assert settings["task"]["description"]
    assert (task / "instruction.md").read_text().strip()
    assert (task / "tests/test.sh").read_text() == (TASKS / NAMES[0] / "tests/test.sh").read_text()
    assert all((task / "solution" / f"{script}.sh").is_file() for script in ("solve", "spoil"))


@pytest.mark.parametrize("name", NAMES)
def test_a_dockerfile_copies_the_whole_workspace(name):
    folder = TASKS / name / "environment"
    lines = map(shlex.split, (folder / "Dockerfile").read_text().split("\n"))
    copies = [line[1:] for line in lines if line[:1] == ["COPY"]]
    targets = {target for *_, target in copies}
    assert targets <= {"/app/"} | {f"/app/{path.name}" for path in folder.iterdir()}
    files = sorted(source for *sources, _ in copies for source in sources)
    assert files == sorted(path.name for path in folder.iterdir() if path.name != "Dockerfile")
