"""Tasks tried in real containers of podman, whose images their Dockerfiles build."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.gong.env.places.machines import needs_podman
from tests.gong.evals.making import TASK_TOML, make_task
from tests.gong.evals.processes import find_processes, wait_for

if TYPE_CHECKING:
    from tests.gong.evals.conftest import EvalPlace

pytestmark = [needs_podman, pytest.mark.slow]
WORKDIR = '[environment]\nworkdir = "/srv/app"\n'
JUDGE = """#!/bin/sh
cat /built kept.txt || exit 1
if [ "$(cat hello.txt)" = hello ]; then echo 1; else echo 0; fi > "$VERIFIER_LOGS/reward.txt"
"""


def list_containers(podman: list[str]) -> str:
    """Return what is left: containers and images that are not the first one."""
    words = (("ps", "-aq"), ("images", "--format", "{{.Repository}}"))
    texts = [
        subprocess.run((*podman, *each), capture_output=True, text=True, check=True).stdout
        for each in words
    ]
    return " ".join(text for text in " ".join(texts).split() if not text.endswith("/box"))


def test_an_image_is_built_and_the_tests_come_after_the_agent(
    place: EvalPlace, podman: list[str]
) -> None:
    dockerfile = "FROM localhost/box:1\nRUN echo built > /built\nCOPY kept.txt /srv/app/\n"
    folder = make_task(
        place.tasks / "hello", toml=TASK_TOML + WORKDIR, dockerfile=dockerfile, test=JUDGE
    )
    (folder / "environment/kept.txt").write_text("kept\n")
    command = (
        "ls /tests /solution; ln -s /etc /tests; (sleep 300 > /dev/null 2>&1 &);"
        " echo hello > hello.txt"
    )
    result = place.results("-m", place.bash(command), "--in", "podman")["hello #1"]
    assert (result["outcome"], result["detail"]) == ("solved", "")
    printed = place.run("gong", "tape", "cat", result["tape"]).stdout
    assert printed.count("No such file or directory") == 2
    (log,) = place.folder.rglob("1.log")
    assert log.read_text() == "built\nkept\n"
    assert list_containers(podman) == ""


def test_an_image_that_cannot_be_built_is_a_named_result(
    place: EvalPlace, podman: list[str]
) -> None:
    make_task(place.tasks / "fails", dockerfile="FROM localhost/box:1\nRUN exit 7\n")
    make_task(place.tasks / "none")
    named = '[environment]\ndocker_image = "localhost/box:1"\nworkdir = "/srv/app"\n'
    make_task(place.tasks / "named", toml=named, solution="#!/bin/sh\necho hello > hello.txt\n",
              test=JUDGE.replace("cat /built kept.txt || exit 1\n", ""))  # fmt: skip
    results = place.results("--agent", "solution", "--in", "podman", code=1)
    outcomes = {name: result["outcome"] for name, result in results.items()}
    assert outcomes == {
        "fails #1": "bad-environment",
        "named #1": "solved",
        "none #1": "bad-environment",
    }
    assert results["fails #1"]["detail"].startswith("build failed: ")
    assert list_containers(podman) == ""


def test_a_killed_run_continues_and_its_container_is_gone(
    place: EvalPlace, podman: list[str]
) -> None:
    """kill -9 in the middle of a try: the next run removes what that has left."""
    dockerfile = "FROM localhost/box:1\nRUN echo built > /built\nCOPY kept.txt /srv/app/\n"
    slow = "#!/bin/sh\necho hello > hello.txt; sleep 161.803\n"
    folder = make_task(
        place.tasks / "hello",
        toml=TASK_TOML + WORKDIR,
        dockerfile=dockerfile,
        test=JUDGE,
        solution=slow,
    )
    (folder / "environment/kept.txt").write_text("kept\n")
    run = place.start(
        "gong", "eval", "tasks", "--agent", "solution", "--in", "podman", "--run", "r"
    )
    wait_for(lambda: find_processes("sleep 161.803"))
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    assert list_containers(podman) != ""
    (folder / "solution/solve.sh").write_text("#!/bin/sh\necho hello > hello.txt\n")
    results = place.results("--agent", "solution", "--in", "podman", "--run", "r")
    assert results["hello #1"]["outcome"] == "solved"
    assert list_containers(podman) == ""
    assert not find_processes("sleep 161.803")
