"""gong inside a real Harbor, offline: its agent, and both environments.

TAPE_HARBOR is a Python that has `harbor` and what gong needs; `.ci/run` installs one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gong.evals.bubblewrap import find_bubblewrap_fault
from tests.e2e.conftest import BIN
from tests.gong.env.places.machines import needs_podman
from tests.gong.evals.making import TASK_TOML, make_task
from tests.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.gong.evals.conftest import EvalPlace

HARBOR = os.environ.get("TAPE_HARBOR", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HARBOR, reason="needs TAPE_HARBOR"),
]
needs_bubblewrap = pytest.mark.skipif(
    bool(find_bubblewrap_fault(os.environ)), reason="bubblewrap does not work here"
)
SHIPPED = {"count-flag": "wordcount.py", "build-order": "order.py", "ini-to-json": "service.ini"}
"""Task → a file that it alone begins with."""
STEPS = """
schema_version = "1.4"
[task]
name = "tests/steps"
[environment]
workdir = "/app"
[[steps]]
name = "one"
[[steps]]
name = "two"
"""
COUNT = "#!/bin/bash\nwc -l < /app/log.txt > /logs/verifier/reward.txt\n"
SLOW = '[task]\nname = "tests/slow"\n[agent]\ntimeout_sec = 6\n[environment]\nworkdir = "/app"\n'
HELLO_TEST = (
    "#!/bin/sh\nmkdir -p /logs/verifier\ngrep -c hello hello.txt > /logs/verifier/reward.txt\n"
)
PRICE = "price = { input = 1.0, output = 10.0 }"
VALIDATE = """
import sys
from harbor.utils.trajectory_validator import TrajectoryValidator
for file in sys.argv[1:]:
    validator = TrajectoryValidator()
    assert validator.validate(file), validator.errors
"""


class HarborJob(NamedTuple):
    """A job that ended."""

    folder: Path
    trials: dict[str, dict]
    """Task → the result of its trial."""

    def locate(self, task: str) -> Path:
        """Return the folder of a trial."""
        return self.folder / self.trials[task]["trial_name"]


def run_job(folder: Path, tasks: Path, *argv: str, environ: Mapping[str, str]) -> HarborJob:
    """Run the tasks of a folder in Harbor; every trial has to end."""
    words = ("-m", "harbor.cli.main", "run", "-p", str(tasks), "-o", str(folder), "-y", "-n", "2")
    variables = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [HARBOR, *words, "--job-name", "job", *argv],
        env={**environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    results = map(json.loads, (file.read_text() for file in folder.glob("job/*/result.json")))
    trials = {result["task_name"].rpartition("/")[2]: result for result in results}
    return HarborJob(folder / "job", trials)


def build_mounts(folder: Path) -> str:
    """Return what the sandbox shows: this checkout, its Python, answers of the model, settings."""
    shown = {str(ROOT): str(ROOT)}
    shown |= {str(folder / name): f"/{name}" for name in ("answers", "settings")}
    if not sys.base_prefix.startswith("/usr"):
        shown[sys.base_prefix] = sys.base_prefix
    pairs = shown.items()
    return json.dumps(
        [{"type": "bind", "source": one, "target": two, "read_only": True} for one, two in pairs]
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> HarborJob:
    """Three shipped tasks, one that is too slow and one of two steps, in one job."""
    folder = tmp_path_factory.mktemp("harbor")
    tasks, answers = folder / "tasks", folder / "answers"
    for name in SHIPPED:
        shutil.copytree(ROOT / "examples/evals" / name, tasks / name)
        shutil.copytree(tasks / name / "solution", answers / name)
    make_task(tasks / "slow", toml=SLOW, dockerfile="FROM x\nWORKDIR /app\nCOPY slow.txt ./\n")
    (tasks / "slow/environment/slow.txt").write_text("slow\n")
    make_task(tasks / "steps", toml=STEPS, instruction=None, test=None, solution=None)
    (tasks / "steps/environment").mkdir()
    for step in ("one", "two"):
        (tasks / f"steps/steps/{step}/tests").mkdir(parents=True)
        (tasks / f"steps/steps/{step}/instruction.md").write_text(f"Do part {step}.\n")
        (tasks / f"steps/steps/{step}/tests/test.sh").write_text(COUNT)
    solve = "".join(
        f"elif [ -e {file} ]; then bash /answers/{name}/solve.sh; "
        for name, file in SHIPPED.items()
    )
    command = f"if [ -e slow.txt ]; then sleep 271; {solve}else echo part >> log.txt; fi"
    call = {"name": "bash", "args": {"command": command}}
    usage = {"input": 1000, "output": 50, "cache_read": 100}
    script = [{"tool_calls": [call], "usage": usage}, {"text": "done", "usage": usage}]
    (answers / "script.json").write_text(json.dumps(script))
    model = "scripted//answers/script.json"
    (folder / "settings").mkdir()
    (folder / "settings/config.toml").write_text(f'[models."{model}"]\n{PRICE}\n')
    return run_job(
        folder / "jobs",
        tasks,
        *("-a", "gong.evals.harbor:GongAgent", "--ak", f"program={BIN / 'gong'}", "-m", model),
        *("-e", "gong.evals.harbor:BubblewrapEnvironment", "--mounts", build_mounts(folder)),
        *("--ae", "GONG_CONFIG_DIR=/settings", "--resume-trajectory"),
        environ=os.environ,
    )


@needs_bubblewrap
def test_shipped_tasks_are_solved_with_tokens_cost_and_a_trajectory(job: HarborJob) -> None:
    files = [str(job.locate(task) / "agent/trajectory.json") for task in SHIPPED]
    for task in SHIPPED:
        trial = job.trials[task]
        assert trial["exception_info"] is None
        assert trial["verifier_result"]["rewards"] == {"reward": 1.0}
        agent = trial["agent_result"]
        tokens = [agent[f"n_{kind}_tokens"] for kind in ("input", "cache", "output")]
        assert tokens == [2200, 200, 100]
        assert 0.002 < agent["cost_usd"] < 0.004
        assert agent["metadata"]["turns"] == 2
    subprocess.run([HARBOR, "-c", VALIDATE, *files], check=True, timeout=120)
    words = [str(BIN / "gong"), "eval", "check", *files, "--max-turns", "2", "--max-cost", "0.01"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count(": fine; ")) == (0, 3), done.stdout


@needs_bubblewrap
def test_a_later_step_continues_the_session_and_counts_for_itself(job: HarborJob) -> None:
    one, two = job.trials["steps"]["step_results"]
    rewards = [step["verifier_result"]["rewards"]["reward"] for step in (one, two)]
    assert rewards == [1.0, 2.0]
    agents = [step["agent_result"] for step in (one, two)]
    assert agents[0]["metadata"]["tape"] == agents[1]["metadata"]["tape"]
    assert [agent["n_input_tokens"] for agent in agents] == [2200, 2200]
    trajectory = json.loads((job.locate("steps") / "steps/two/agent/trajectory.json").read_text())
    prompts = [step["message"] for step in trajectory["steps"] if step["source"] == "user"]
    assert prompts == ["Do part one.\n", "Do part two.\n"]


@needs_bubblewrap
def test_what_was_cut_off_is_judged_and_has_its_trajectory(job: HarborJob) -> None:
    trial = job.trials["slow"]
    assert trial["exception_info"]["exception_type"] == "AgentTimeoutError"
    assert trial["verifier_result"]["rewards"] == {"reward": 0.0}
    # One answer, or two: the command may end before who ran it.
    assert trial["agent_result"]["n_input_tokens"] in (1100, 2200)
    trajectory = json.loads((job.locate("slow") / "agent/trajectory.json").read_text())
    assert trajectory["steps"][1]["tool_calls"][0]["function_name"] == "bash"
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert "sleep 271" not in listed.stdout.splitlines()


@needs_podman
def test_containers_of_podman_need_no_compose(place: EvalPlace, podman: list[str]) -> None:
    toml = TASK_TOML.replace("tests/made", "tests/box") + '[environment]\nworkdir = "/srv/app"\n'
    folder = make_task(
        place.tasks / "box",
        toml=toml,
        dockerfile="FROM localhost/box:1\nCOPY kept.txt /srv/app/\n",
        solution="#!/bin/sh\ncp kept.txt hello.txt\n",
        test=HELLO_TEST,
    )
    (folder / "environment/kept.txt").write_text("hello\n")
    words = ("-a", "oracle", "-e", "gong.evals.harbor:PodmanEnvironment")
    job = run_job(place.folder / "jobs", place.tasks, *words, environ=place.env)
    assert job.trials["box"]["exception_info"] is None
    assert job.trials["box"]["verifier_result"]["rewards"] == {"reward": 1.0}
    left = subprocess.run((*podman, "ps", "-aq"), capture_output=True, text=True, check=True)
    assert left.stdout == ""
