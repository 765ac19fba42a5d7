"""`gong eval` as people run it: real commands, tasks and sandboxes, and a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gong.env.sandbox.limits import find_groups
from tests.e2e.conftest import BIN
from tests.gong.evals.making import JUDGE, make_task
from tests.gong.evals.processes import find_processes, wait_for

if TYPE_CHECKING:
    from tests.gong.evals.conftest import EvalPlace

HELLO = "echo hello > hello.txt"
needs_bwrap = pytest.mark.skipif(
    subprocess.run(
        ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "/bin/true"], check=False
    ).returncode
    if shutil.which("bwrap")
    else True,
    reason="bubblewrap does not work here",
)
pytestmark = needs_bwrap


def test_a_model_solves_a_task_and_its_tape_is_kept(place: EvalPlace) -> None:
    make_task(place.tasks / "hello")
    results = place.results("-m", place.bash(HELLO))
    result = results["hello #1"]
    assert (result["outcome"], result["reward"], result["turns"]) == ("solved", 1.0, 2)
    assert result["model"].startswith("scripted/")
    (tape,) = place.tapes()
    assert tape.name.endswith(result["tape"][:8])
    assert "eval hello #1" in place.run("gong", "tape", "ls", "--all").stdout
    assert not list(Path("/tmp").glob("gong-eval-*/root/app/hello.txt"))


def test_the_agent_sees_no_tests_no_solution_and_nothing_of_this_machine(place: EvalPlace) -> None:
    secret = "the answer is 42"
    make_task(place.tasks / "hidden", test=f"# {secret}\n{JUDGE}", solution=f"# {secret}\n")
    (place.home / "mine.txt").write_text(secret)
    looks = (
        f"ls /tests /solution {place.home} {place.tasks} 2>&1;"
        f" grep -rls '{secret}' /app /tmp /root /home /logs /var /srv"
    )
    model = place.bash(f"{looks}; {HELLO}")
    result = place.results("-m", model)["hidden #1"]
    assert result["outcome"] == "solved"
    printed = place.run("gong", "tape", "cat", result["tape"]).stdout
    seen = printed.split("── tool.result")[1]
    assert seen.count("No such file or directory") == 4
    assert secret not in seen.split("\n", 2)[2].replace(looks, "")


def test_scripts_of_a_task_run_in_place_of_an_agent(place: EvalPlace) -> None:
    make_task(place.tasks / "one")
    make_task(place.tasks / "two", solution=None)
    (place.tasks / "one/solution/spoil.sh").write_text("echo bye > hello.txt")
    solved = place.results("--agent", "solution", code=1)
    assert [r["outcome"] for r in solved.values()] == ["solved", "no-solution"]
    spoilt = place.results("--agent", "spoil", "--task", "one")
    assert spoilt["one #1"]["outcome"] == "failed"
    assert {r["tape"] for r in (*solved.values(), *spoilt.values())} == {""}


BAD = {
    "no-tests": ({"test": None}, "bad-task", "there is no tests/test.sh"),
    "no-instruction": ({"instruction": None}, "bad-task", "there is no instruction.md"),
    "torn-toml": ({"toml": "[agent"}, "bad-task", "task.toml is no TOML"),
    "nan": ({"test": "echo nan > $VERIFIER_LOGS/reward.txt"}, "bad-reward", "reward.txt: nan"),
    "two": ({"test": "echo 2 > $VERIFIER_LOGS/reward.txt"}, "bad-reward", "reward.txt: 2 is not"),
    "text": ({"test": "echo '{' > $VERIFIER_LOGS/reward.json"}, "bad-reward", "reward.json: it is"),
    "none": ({"test": "exit 3"}, "no-reward", "its tests ended with 3"),
    "pipe": ({"test": "mkfifo $VERIFIER_LOGS/reward.txt"}, "bad-reward", "reward.txt: "),
    "device": ({"test": "ln -s /dev/zero $VERIFIER_LOGS/reward.txt"}, "bad-reward", "reward.txt: "),
    "long": (
        {"test": "head -c 9000000 /dev/zero > $VERIFIER_LOGS/reward.txt"},
        *("bad-reward", "reward.txt: it has more than 64 kB"),
    ),
    "hangs": (
        {"toml": "[verifier]\ntimeout_sec = 1.0", "test": "sleep 300 & sleep 300"},
        *("verifier-timeout", "after 1 s"),
    ),
    "floods": (
        {"toml": "[verifier]\ntimeout_sec = 250.0", "test": "exec yes"},
        *("verifier-flood", "more than 64 MB"),
    ),
    "apt": ({"dockerfile": "FROM x\nRUN exit 9\n"}, "bad-environment", "RUN exit 9 ended with 9"),
    "lacks": (
        {"dockerfile": "FROM x\nRUN apt-get install -y no-such-package\n"},
        *("bad-environment", "its Dockerfile installs no-such-package, which this machine lacks"),
    ),
    "image": (
        {"toml": '[environment]\ndocker_image = "x"'},
        *("bad-environment", "it names an image: --in podman"),
    ),
    "system": (
        {"dockerfile": "FROM x\nWORKDIR /usr/x\n"},
        *("bad-environment", "it needs /usr/x"),
    ),
}


def test_each_wrong_task_is_a_named_result_and_the_others_run(place: EvalPlace) -> None:
    make_task(place.tasks / "fine")
    for name, (parts, _, _) in BAD.items():
        make_task(place.tasks / name, **parts)
    results = place.results("--agent", "solution", "-j", 2, code=1)
    found = {key.split(" #")[0]: (r["outcome"], r["detail"]) for key, r in results.items()}
    assert found.pop("fine") == ("solved", "")
    assert found.keys() == BAD.keys()
    for name, (_, outcome, detail) in BAD.items():
        assert found[name][0] == outcome, (name, found[name])
        assert found[name][1].startswith(detail), (name, found[name])
    assert not list(find_processes("sleep 300"))


def test_what_a_solution_leaves_cannot_replace_the_tests(place: EvalPlace) -> None:
    """Links where the tests and their reward will be, and processes that stay."""
    spoil = (
        "ln -s /etc /tests; rm -rf /logs; ln -s /app /logs; mkdir -p verifier;"
        " echo 1 > verifier/reward.txt; (while :; do echo 1 > /app/verifier/reward.txt;"
        " sleep 0.01; done) > /dev/null 2>&1 &"
    )
    make_task(place.tasks / "t", solution=spoil)
    assert place.results("--agent", "solution")["t #1"]["outcome"] == "failed"


def test_tries_are_repeated_side_by_side_and_a_limit_is_named(place: EvalPlace) -> None:
    make_task(place.tasks / "hello")
    call = {"tool_calls": [{"name": "bash", "args": {"command": HELLO}}]}
    results = place.results("-m", place.script(*[call] * 9), "-k", 3, "-j", 3, "--max-turns", 2)
    assert {(r["outcome"], r["stopped"], r["turns"]) for r in results.values()} == {
        ("solved", "turns", 2)
    }
    assert len(results) == 3
    assert len({r["tape"] for r in results.values()}) == 3


def test_as_many_tries_run_at_one_time_as_are_asked_for(place: EvalPlace) -> None:
    for name in "abc":
        make_task(place.tasks / name, solution="echo hello > hello.txt; sleep 141.42")
    run = place.start("gong", "eval", "tasks", "--agent", "solution", "-j", "3", "--run", "r")
    wait_for(lambda: len(find_processes("sleep 141.42")) == 3)
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert run.returncode == 130
    assert not find_processes("sleep 141.42")
    assert not list(place.folder.rglob("*.begun"))


def test_names_and_instructions_of_any_kind_are_tried(place: EvalPlace) -> None:
    names = (b"two\nlines", b"\xff\xfe", b"-rf", b"a b'c\"$(id)", "ü%s{}".encode(), b"run.json")
    for name in names:
        make_task(place.tasks / os.fsdecode(name), instruction="/undo @none\n")
    results = place.results("-m", place.bash(HELLO), "-j", 2)
    assert len(results) == len(names)
    assert {(r["outcome"], r["detail"]) for r in results.values()} == {("solved", "")}
    assert place.results("-m", place.bash(HELLO)) == results


def test_the_time_of_the_agent_ends_and_its_work_is_judged(place: EvalPlace) -> None:
    make_task(place.tasks / "slow", toml="[agent]\ntimeout_sec = 1.5")
    model = place.bash(f"{HELLO}; sleep 300")
    result = place.results("-m", model)["slow #1"]
    assert (result["outcome"], result["stopped"]) == ("solved", "time")


def test_a_model_that_breaks_is_an_error_that_can_be_repeated(place: EvalPlace) -> None:
    make_task(place.tasks / "hello")
    error = {"error": {"class": "InvalidRequest", "message": "no such thing"}}
    model = place.script(error)
    first = place.results("-m", model, code=1)["hello #1"]
    assert (first["outcome"], first["detail"]) == ("agent-error", "no such thing")
    assert place.bash(HELLO) == model  # the same name plays other answers now
    assert place.results("-m", model, code=1)["hello #1"] == first
    assert place.results("-m", model, "--again")["hello #1"]["outcome"] == "solved"


def test_a_model_that_cannot_be_asked_ends_the_run_and_leaves_no_result(place: EvalPlace) -> None:
    make_task(place.tasks / "hello")
    done = place.run("gong", "eval", "tasks", "-m", "anthropic/claude-sonnet-5", code=6)
    assert done.stderr.count("\n") == 1
    place.run("gong", "eval", "tasks", "-m", "nobody/none", code=2)
    assert not list(place.folder.rglob("1.json"))
    assert not list(place.folder.rglob("*.begun"))


def test_the_budget_of_a_run_stops_it_and_a_larger_one_continues_it(place: EvalPlace) -> None:
    for name in "abc":
        make_task(place.tasks / name)
    model = place.script({"text": "no", "usage": {"input": 1_000_000, "output": 0}})
    config = place.home / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[models."{model}"]\nprice = {{ input = 1.0, output = 1.0 }}\n')
    done = place.json("gong", "eval", "tasks", "-m", model, "--max-cost", 1.5, "--json", code=8)
    costs = [result["cost"] for result in done["results"]]
    assert costs == [1.0, 1.0]
    again = place.json("gong", "eval", "tasks", "-m", model, "--max-cost", 9, "--json")
    assert again["results"][:2] == done["results"]
    assert len(again["results"]) == 3


def test_a_killed_run_continues_without_its_finished_tries(place: EvalPlace) -> None:
    """kill -9 in the middle of a try: the same command repeats that try alone."""
    make_task(place.tasks / "a")
    (place.folder / "stop").mkdir()
    make_task(place.tasks / "b", solution="echo hello > hello.txt; sleep 271.828")
    make_task(place.tasks / "c")
    run = place.start("gong", "eval", "tasks", "--agent", "solution", "--run", "r")
    first = place.folder / "r/tries/a/1.json"
    wait_for(lambda: find_processes("sleep 271.828"))
    before = first.read_bytes(), first.stat().st_mtime_ns
    (begun,) = place.folder.rglob("*.begun")
    left = Path(json.loads(begun.read_text())["folder"])
    assert left.is_dir()
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    wait_for(lambda: not find_processes("sleep 271.828"))
    (place.tasks / "b/solution/solve.sh").write_text("echo hello > hello.txt")
    results = place.results("--agent", "solution", "--run", "r")
    assert [r["outcome"] for r in results.values()] == ["solved"] * 3
    assert (first.read_bytes(), first.stat().st_mtime_ns) == before
    assert not left.exists()
    assert find_groups(left.name).folders == ()
    assert not list(place.folder.rglob("*.begun"))
    run.stdout.close()
    run.stderr.close()


def test_a_run_is_held_by_one_program_and_has_one_agent(place: EvalPlace) -> None:
    make_task(place.tasks / "a", solution="echo hello > hello.txt; sleep 314.159")
    run = place.start("gong", "eval", "tasks", "--agent", "solution", "--run", "r")
    wait_for(lambda: find_processes("sleep 314.159"))
    busy = place.run("gong", "eval", "tasks", "--agent", "solution", "--run", "r", code=2)
    assert "another program works on this run" in busy.stderr
    run.send_signal(signal.SIGINT)
    _, warnings = run.communicate()
    assert run.returncode == 130
    assert warnings == "gong: 0 of 1 tries are finished; the same command continues\n"
    assert not find_processes("sleep 314.159")
    assert not list(place.folder.rglob("1.json"))
    other = place.run("gong", "eval", "tasks", "--agent", "spoil", "--run", "r", code=2)
    assert "choose another --run" in other.stderr


def test_files_for_ci_are_written_and_a_rate_is_demanded(place: EvalPlace) -> None:
    make_task(place.tasks / "good")
    make_task(place.tasks / "poor", solution="true")
    files = ("--junit", "junit.xml", "--page", "page.html")
    words = ("gong", "eval", "tasks", "--agent", "solution", *files)
    assert "1 of 2 tries solved, 50% on average over tasks" in place.run(*words).stdout
    assert 'failures="1"' in (place.folder / "junit.xml").read_text()
    assert "poor #1" in (place.folder / "page.html").read_text()
    place.run(*words, "--fail-under", 50)
    place.run(*words, "--fail-under", 51, code=1)


def test_what_cannot_work_is_refused_before_the_first_try(place: EvalPlace) -> None:
    make_task(place.tasks / "a")
    words = ("gong", "eval", "tasks")
    assert "name the model to measure" in place.run(*words, code=2).stderr
    assert (
        "-m needs --agent gong" in place.run(*words, "-m", "x/y", "--agent", "spoil", code=2).stderr
    )
    place.run(*words, "--agent", "solution", "--junit", "none/junit.xml", code=1)
    assert "no task is called x*" in place.run(*words, "--task", "x*", code=2).stderr
    assert not list(place.folder.rglob("1.json"))


def test_two_runs_are_compared(place: EvalPlace) -> None:
    make_task(place.tasks / "a")
    make_task(place.tasks / "b", solution="true")
    place.results("--agent", "solution", "--run", "one")
    place.results("-m", place.bash(HELLO), "--run", "two")
    shown = place.run("gong", "eval", "compare", "one", "two").stdout
    assert "b             0%      100%" in shown
    assert "The difference may be chance: 1 better, 0 worse" in shown
    document = place.json("gong", "eval", "compare", "one", "two", "--json")
    assert (document["better"], document["worse"], document["may_be_chance"]) == (1, 0, True)
    refused = place.run("gong", "eval", "compare", "one", "tasks", code=2)
    assert "tasks is no run of gong eval" in refused.stderr


def test_a_plain_folder_is_used_where_it_is_asked_for(place: EvalPlace) -> None:
    make_task(place.tasks / "copied", dockerfile="FROM x\nWORKDIR /srv/w\nCOPY a.txt sub/\n")
    (place.tasks / "copied/environment/a.txt").write_text("x")
    make_task(place.tasks / "runs", dockerfile="FROM x\nRUN true\n")
    model = place.bash(f"cat sub/a.txt && {HELLO}")
    results = place.results("-m", model, "--in", "folder", code=1)
    assert results["copied #1"]["outcome"] == "solved"
    assert results["runs #1"]["outcome"] == "bad-environment"


def test_files_of_the_environment_are_there_and_are_kept_between_the_phases(
    place: EvalPlace,
) -> None:
    dockerfile = (
        "FROM x\nWORKDIR /data/in\nENV WORD=hello\nCOPY . .\nRUN mkdir /made && echo x > y\n"
    )
    folder = make_task(
        place.tasks / "t",
        dockerfile=dockerfile,
        solution='cat deep/file y > /made/all; echo "$WORD" > hello.txt',
        test=f"cat /made/all || exit 1\n{JUDGE}",
    )
    (folder / "environment/deep").mkdir()
    (folder / "environment/deep/file").write_text("inner\n")
    assert place.results("--agent", "solution")["t #1"]["outcome"] == "solved"
    (log,) = place.folder.rglob("1.log")
    assert log.read_text() == "inner\nx\n"


def test_nothing_of_it_is_loaded_by_other_commands(place: EvalPlace) -> None:
    code = (
        "import sys, gong.cli.run as run; run.run_command_line(['eval', '--help']);"
        "print([m for m in sys.modules if m.startswith('gong.evals') or m == 'asyncio'])"
    )
    done = subprocess.run(
        [BIN / "python", "-c", code], capture_output=True, text=True, check=True, env=place.env
    )
    assert done.stdout.endswith("[]\n")


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_with_every_try_once(place: EvalPlace) -> None:
    """kill -9 at thirty moments: what was finished stays as it was, and nothing is left."""
    for name in "abcd":
        make_task(place.tasks / name)
    words = ("gong", "eval", "tasks", "-m", place.bash(HELLO), "--run", "r", "-j", "2", "-k", "4")
    saved: dict[str, bytes] = {}
    for number in range(30):
        run = place.start(*words)
        with suppress(subprocess.TimeoutExpired):
            run.communicate(timeout=0.3 + number * 0.07)
        run.kill()
        run.communicate()
        files = {str(path): path.read_bytes() for path in place.folder.glob("r/tries/*/*.json")}
        assert saved.items() <= files.items()
        saved = files
    results = place.results(*words[3:])
    assert {result["outcome"] for result in results.values()} == {"solved"}
    assert len(results) == 16
    assert not list(place.folder.glob("r/tries/*/*.begun"))
    places = {json.loads(data)["tape"] for data in saved.values()}
    assert len(places) == len(saved)
    assert place.run("tape", "verify", "--all").returncode == 0
