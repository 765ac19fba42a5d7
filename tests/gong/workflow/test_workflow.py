"""Whole workflows with scripted roles, in processes of their own (M187–M190, M193)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time

import pytest

from tests.gong.workflow.conftest import bash

TWELVE = (
    *("a", "b", "c", ("d", "a"), ("e", "a", "b"), ("f", "c"), ("g", "d", "e"), ("h", "e", "f")),
    *(("i", "g"), ("j", "g", "h"), ("k", "h"), ("l", "i", "j", "k")),
)


def test_twelve_tasks_are_done_in_the_order_of_their_dependencies(place):
    """M187, M189, M190: side by side where they may be, five at once; each merged once."""
    place.start(place.write_plan(*TWELVE))
    shown, tasks = place.show()
    assert (shown["status"], shown["score"], shown["report"]) == ("completed", 90, "good")
    assert {one["status"] for one in tasks.values()} == {"completed"}
    events = [one for one in place.read_events(shown["id"]) if one["event"] == "task"]
    began, ended, most, running = {}, {}, 0, set()
    for at, event in enumerate(events):
        status, task = event["state"].get("status"), event["task"]
        if status == "running":
            began.setdefault(task, at)
            running.add(task)
        else:
            running.discard(task)
        if status == "completed":
            assert task not in ended
            ended[task] = at
        most = max(most, len(running))
    waits = dict.fromkeys("abc", ()) | {one[0]: one[1:] for one in TWELVE if len(one) > 1}
    for task, wanted in waits.items():
        assert all(ended[one] < began[task] for one in wanted), task
    assert 2 <= most <= 5
    assert len([*place.repo.glob("made-*.txt")]) == 12
    assert len({one["tape"] for one in tasks.values()}) == 12
    log = place.read_log(shown["id"])
    starts = [one["data"] for one in log if one["type"] == "agent.start"]
    by_executors = place.read_log(tasks["a"]["tape"], "--type", "assistant")
    assert {one["data"]["model"].rpartition("/")[2] for one in by_executors} == {"executor.json"}
    agents = [one["agent"] for one in starts]
    assert sorted(agents) == sorted(
        one["data"]["agent"] for one in log if one["type"] == "agent.end"
    )
    assert len(agents) == len({*agents}) == 12 + 12 + 1
    assert place.git("worktree", "list").count("\n") == 1
    assert place.git("branch").split() == ["*", "main"]
    place.verify()


def test_a_workflow_whose_planner_fails_is_listed_as_failed(place):
    """Not as planned for ever."""
    place.play("manager", "no plan", "again no plan")
    said = place.run("make files", "--yolo", *place.list_models(), code=2)
    assert "the planner answered twice" in said
    (row,) = place.json("list")
    assert (row["status"], row["tasks"]) == ("failed", 0)


@pytest.mark.slow
def test_a_critical_finding_is_tried_again_so_often_and_then_the_rest_is_skipped(place):
    """M189: retries, then failed; what depends on it is skipped, and said."""
    place.play("reviewer", {"verdict": "critical", "findings": [{"text": "no"}], "summary": "bad"})
    plan = place.write_plan("a", ("b", "a"), ("c", "b"))
    said = place.start(plan, "--retries", "2", code=1)
    shown, tasks = place.show()
    assert shown["status"] == "failed"
    assert (tasks["a"]["status"], tasks["a"]["tries"], tasks["a"]["note"]) == ("failed", 3, "bad")
    assert len(tasks["a"]["reviews"]) == 3
    assert [tasks[one]["status"] for one in "bc"] == ["skipped", "skipped"]
    assert "it waits for a, which was not completed" in said
    assert os.path.isdir(tasks["a"]["worktree"])  # noqa: PTH112
    assert tasks["a"]["branch"] in place.git("branch")
    place.play("reviewer", {"verdict": "pass"})
    place.run("retry", shown["id"], "c", code=1)
    assert place.show()[1]["a"]["status"] == "failed"
    place.run("retry", shown["id"], "a")
    _, tasks = place.show()
    assert {one["status"] for one in tasks.values()} == {"completed"}


@pytest.mark.slow
def test_minor_findings_are_fixed_and_reviewed_again(place):
    """M189: fixes, as long as there are some; with --no-auto-fix they are only noted."""
    place.play("reviewer", {"verdict": "minor", "findings": ["a typo"], "summary": "a typo"})
    place.start(place.write_plan("a"), "--retries", "2")
    _, tasks = place.show()
    assert (tasks["a"]["status"], tasks["a"]["note"]) == ("completed", "a typo")
    assert len(tasks["a"]["reviews"]) == 3
    (fixed,) = place.repo.glob("fixed-*.txt")
    assert fixed.read_text() == "fixed\n" * 2
    place.start(place.write_plan("b"), "--no-auto-fix")
    _, tasks = place.show()
    assert (tasks["b"]["note"], len(tasks["b"]["reviews"])) == ("a typo", 1)


def test_an_executor_that_fails_is_tried_again(place):
    place.play("executor", {"error": {"class": "InvalidRequest", "message": "no way"}})
    place.start(place.write_plan("a"), "--retries", "1", code=1)
    _, tasks = place.show()
    assert (tasks["a"]["status"], tasks["a"]["tries"]) == ("failed", 2)
    assert "no way" in tasks["a"]["note"]


@pytest.mark.parametrize("role", ["reviewer", "evaluator"])
def test_an_answer_that_cannot_be_read_is_asked_for_once_more(place, role):
    right = {"verdict": "pass"} if role == "reviewer" else {"score": 50, "report": "half"}
    place.play(role, "I think it is fine", f"```json\n{json.dumps(right)}\n```")
    place.start(place.write_plan("a"))
    shown, tasks = place.show()
    assert tasks["a"]["status"] == "completed"
    assert shown["score"] == (90 if role == "reviewer" else 50)
    place.play(role, "I think it is fine", "it really is")
    place.start(place.write_plan("a"), code=1 if role == "reviewer" else 0)
    shown, tasks = place.show()
    if role == "reviewer":
        assert "answered twice what cannot be read" in tasks["a"]["note"]
    else:
        assert "answered twice what cannot be read" in shown["report"]


def test_conflicts_of_a_merge_are_given_to_a_fixer(place):
    place.play("executor", bash("basename $PWD >> a.txt"), "done")
    place.play("fixer", bash("sed -i '/^[<=>]\\{7\\}/d' a.txt"), "resolved")
    place.start(place.write_plan("a", "b"))
    assert len((place.repo / "a.txt").read_text().splitlines()) == 3
    assert place.git("status", "--porcelain") == ""
    place.play("fixer", "I do not know how")
    place.start(place.write_plan("c", "d"), code=1)
    _, tasks = place.show()
    (lost,) = (one for one in tasks.values() if one["status"] == "failed")
    assert "conflicts in a.txt" in lost["note"]
    assert lost["branch"] in place.git("branch")
    assert place.git("status", "--porcelain") == ""


def test_tasks_that_claim_a_file_in_common_are_not_at_work_together(place):
    """M189"""
    tasks = [{"id": one, "title": one, "files": ["src/", "src/x.py"][:n]} for n, one in ((1, "a"), (2, "b"))]  # fmt: skip  # noqa: E501
    place.start(place.write_plan(*tasks))
    shown, _ = place.show()
    order = [
        (one["task"], one["state"].get("status"))
        for one in place.read_events(shown["id"])
        if one["event"] == "task" and one["state"].get("status") in {"running", "completed"}
    ]
    assert [task for task, _ in order] == ["a"] * order.count(("a", "running")) + ["a"] + [
        "b"
    ] * order.count(("b", "running")) + ["b"]


def test_without_git_tasks_work_in_the_folder(place):
    place.play("executor", bash("echo made > made.txt"), "made")
    subprocess.run(["rm", "-rf", ".git"], cwd=place.repo, check=True)
    place.start(place.write_plan("a", ("b", "a")))
    shown, tasks = place.show()
    assert shown["status"] == "completed"
    assert (place.repo / "made.txt").exists()
    assert tasks["a"]["worktree"] == ""


BAD_PLANS = {
    "cycle: a → b → a": (("a", "b"), ("b", "a")),
    "depends on nobody, which is not a task": (("a", "nobody"),),
    "two tasks have the id a": ("a", "a"),
    "the plan has no tasks": (),
}


@pytest.mark.parametrize("said", BAD_PLANS)
def test_a_bad_plan_names_the_cycle_or_the_id(place, said):
    """M188"""
    told = place.start(place.write_plan(*BAD_PLANS[said]), code=2)
    assert said.partition(": ")[0] in told
    assert all(one in told for one in said.partition(": ")[2].split(" → "))
    assert place.json("list") == []


def test_a_plan_is_made_shown_and_nothing_else_with_plan_only(place):
    """M188, M190: the manager plans, a malformed plan is asked for once more."""
    plan = {"requirement": "count", "tasks": [{"id": "a", "title": "t", "dependencies": ["x"]}]}
    right = {**plan, "tasks": [{"id": "a", "title": "t"}]}
    place.play("manager", json.dumps(plan), json.dumps(right))
    said = place.run("count words", "--plan-only", *place.list_models())
    assert json.loads(said)["tasks"] == [{"id": "a", "title": "t"}]
    assert place.json("list")[0]["status"] == "planned"
    assert place.git("worktree", "list").count("\n") == 1
    place.run("resume", place.json("list")[0]["id"])
    assert place.show()[0]["status"] == "completed"


def test_usage_errors_say_what_to_add(place):
    assert "say what is to be done" in place.run("--yes", code=2)
    assert "pass --yes or --plan-only" in place.run("x", code=2)
    assert "is not a TaskPlan" in place.run("--plan", str(place.root / "reviewer.json"), code=2)


def test_a_finished_run_is_not_resumed_and_an_unknown_one_is_not_found(place):
    place.start(place.write_plan("a"))
    shown, _ = place.show()
    before = len(place.read_log(shown["id"]))
    assert "there is nothing to do" in place.run("resume", shown["id"])
    assert len(place.read_log(shown["id"])) == before
    assert place.run("resume", "nothing-like-it", code=3)
    assert "✓ a: make a" in place.run("graph", shown["id"])
    place.run("show", shown["id"], "--report", str(place.root / "report.html"))
    page = (place.root / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "http:" not in page.replace("http-equiv", "")


@pytest.mark.slow
def test_a_fork_at_a_task_begins_before_it(place):
    place.start(place.write_plan("a", ("b", "a")))
    shown, _ = place.show()
    made = place.run("fork", shown["id"], "b").strip()
    forked = {one["id"]: one["status"] for one in place.json("show", made)["tasks"]}
    assert forked == {"a": "completed", "b": "pending"}
    place.run("resume", made)
    assert {one["status"] for one in place.json("show", made)["tasks"]} == {"completed"}
    assert [one["status"] for one in place.json("show", shown["id"])["tasks"]] == ["completed"] * 2


def test_a_cancelled_workflow_can_be_carried_on(place):
    place.play("executor", bash("sleep 60; echo done"), "made")
    command = place.build_command(
        "--plan", place.write_plan("a", ("b", "a")), "--yolo", *place.list_models()
    )
    with subprocess.Popen(command, cwd=place.repo, env=place.env, stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        while b"begun" not in one.stdout.readline():
            pass
        place.run("cancel", place.json("list")[0]["id"])
        assert one.wait(60) == 130
    shown, tasks = place.show()
    assert (shown["status"], tasks["a"]["status"], tasks["b"]["status"]) == (
        *("cancelled", "running", "pending"),
    )
    place.play("executor", bash("echo made > made-$(basename $PWD).txt"), "made")
    place.run("resume", shown["id"])
    shown, tasks = place.show()
    assert shown["status"] == "completed"
    assert tasks["a"]["tries"] == 1


@pytest.mark.slow
def test_what_a_killed_executor_left_is_not_done_on_top_of_itself(place):
    """M189: a try that was killed begins anew where it began, and what it left is kept."""
    place.play("executor", bash("echo made >> made.txt; sleep 2"), "made")
    command = place.build_command("--plan", place.write_plan("a"), "--yolo", *place.list_models())
    with subprocess.Popen(command, cwd=place.repo, env=place.env, stdout=subprocess.PIPE) as one:
        while not [*place.home.rglob("worktrees/*/*/made.txt")]:
            time.sleep(0.05)
        one.send_signal(signal.SIGKILL)
    place.run("resume", place.json("list")[0]["id"])
    assert (place.repo / "made.txt").read_text() == "made\n"
    (kept,) = place.git("for-each-ref", "--format=%(refname)", "refs/gong/kept/").split()
    assert place.git("show", f"{kept}:made.txt") == "made\n"


KILLS = int(os.environ.get("GONG_WORKFLOW_KILLS", "4"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(KILLS))
def test_killed_at_any_moment_it_ends_as_it_would_have(place, seed):
    """Each task is completed once, none twice; nothing is left in git; agents are balanced."""
    place.play("executor", bash("sleep 0.1; echo made > made-$(basename $PWD).txt"), "made")
    plan = place.write_plan("a", "b", ("c", "a"), ("d", "a", "b"), ("e", "c", "d"))
    command = place.build_command("--plan", plan, "--yolo", *place.list_models())
    chance = random.Random(seed)
    for attempt in range(6):
        with subprocess.Popen(
            command,
            cwd=place.repo,
            env=place.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as one:
            time.sleep(0.6 + chance.random() * 1.6)
            one.send_signal(signal.SIGKILL)
            one.wait()
        listed = place.json("list")
        if listed and listed[0]["tasks"]:
            command = place.build_command("resume", listed[0]["id"])
        if attempt == 5:
            subprocess.run(command, cwd=place.repo, env=place.env, check=True)
    shown, tasks = place.show()
    assert {one["status"] for one in tasks.values()} == {"completed"}
    assert (shown["status"], shown["score"]) == ("completed", 90)
    done = [
        one["task"]
        for one in place.read_events(shown["id"])
        if one["event"] == "task" and one["state"].get("status") == "completed"
    ]
    assert sorted(done) == ["a", "b", "c", "d", "e"]
    assert len([*place.repo.glob("made-*.txt")]) == 5
    assert place.git("worktree", "list").count("\n") == 1
    assert place.git("branch").split() == ["*", "main"]
    log = place.read_log(shown["id"])
    for kind in ("agent.start", "agent.end"):
        assert len([one for one in log if one["type"] == kind]) >= 11
    started = [one["data"]["agent"] for one in log if one["type"] == "agent.start"]
    ended = [one["data"]["agent"] for one in log if one["type"] == "agent.end"]
    assert sorted(started) == sorted(ended)
    ran = {one["data"]["agent"]: one["data"] for one in log if one["type"] == "agent.start"}
    completed = [
        ran[one["data"]["agent"]]["tape"]
        for one in log
        if one["type"] == "agent.end" and one["data"]["status"] == "completed"
        and ran[one["data"]["agent"]]["kind"] == "executor"
    ]  # fmt: skip
    assert len(completed) == len({*completed}) == 5
    place.verify()


@pytest.mark.parametrize(
    "options", [("--max-cost", "0.0001"), ("--role-cost", "executor=0.0001")], ids=["run", "role"]
)
@pytest.mark.slow
def test_a_spent_budget_begins_nothing_more_and_exits_with_8(place, options):
    """M187: a budget for the whole run or a role; a larger one lets it continue."""
    config = place.home / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        f'[models."scripted/{place.root}/executor.json"]\n'
        "price = { input = 1000, output = 1000 }\n"
    )
    place.start(place.write_plan("a", ("b", "a")), *options, code=8)
    shown, tasks = place.show()
    assert shown["status"] == "stopped"
    assert tasks["b"]["status"] == "pending"
    assert shown["cost"] == shown["costs"]["executor"] == tasks["a"]["cost"] > 0
    assert "is spent" in place.run("resume", shown["id"], code=8)
    place.run("resume", shown["id"], options[0], options[1].replace("0.0001", "100"))
    shown, tasks = place.show()
    assert shown["status"] == "completed"
    assert shown["cost"] == pytest.approx(sum(one["cost"] for one in tasks.values()))


def test_the_manager_changes_a_plan_whose_task_has_failed(place):
    """M187: what has begun stays as it is; without --replans what waits is skipped."""
    place.play("executor", bash("basename $PWD >> a.txt"), "made")
    place.play("fixer", "I do not know how")
    free = [{"id": one, "title": one} for one in "abc"]
    bad = [*free, {"id": "d", "title": "d", "dependencies": ["nobody"]}]
    place.play("manager", {"requirement": "x", "tasks": bad}, {"tasks": free, "analysis": "free"})
    plan = place.write_plan("a", "b", ("c", "a", "b"))
    said = place.start(plan, "--retries", "0", "--replans", "1", code=1)
    shown, tasks = place.show()
    assert "another plan: 3 tasks" in said
    assert sorted(tasks[one]["status"] for one in "ab") == ["completed", "failed"]
    assert (tasks["c"]["status"], tasks["c"]["dependencies"]) == ("completed", [])
    assert (tasks["a"]["title"], shown["plans"]) == ("make a", 2)
    plans = [one for one in place.read_events(shown["id"]) if one["event"] == "plan"]
    assert "conflicts in a.txt" in plans[1]["summary"]
    place.start(plan, "--retries", "0", code=1)
    assert place.show()[1]["c"]["status"] == "skipped"


@pytest.mark.slow
def test_an_executor_tells_other_tasks_something_and_asks_for_another_plan(place):
    """M187: messages between tasks through the plan."""
    notes = {
        "messages": [{"to": "b", "text": "call it count_words"}, {"text": "hello"}],
        "replan": "there is more to do",
    }
    place.play("executor", "Done.\n\n" + json.dumps(notes))
    tasks = [{"id": one, "title": one} for one in ("b", "c")]
    place.play("manager", {"tasks": tasks})
    place.start(place.write_plan("a", ("b", "a")), "--replans", "1", code=0)
    shown, tasks = place.show()
    assert [*tasks] == ["a", "b", "c"]
    assert shown["plans"] == 2
    told = [(one["task"], one["to"], one["text"]) for one in shown["messages"]]
    assert told[:2] == [("a", "b", "call it count_words"), ("a", "all", "hello")]
    orders = [one for one in place.read_log(shown["id"]) if one["type"] == "agent.start"]
    asked = {one["data"]["tape"]: one["data"]["task"] for one in orders if "tape" in one["data"]}
    assert "- a: call it count_words\n- a: hello" in asked[tasks["b"]["tape"]]
    assert "count_words" not in asked[tasks["c"]["tape"]]
    assert "- a: hello" in asked[tasks["c"]["tape"]]
