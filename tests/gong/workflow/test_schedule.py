"""What becomes of tasks by the pure rules: plans as JSON, verdicts, who may begin."""

from __future__ import annotations

import msgspec
import pytest

from gong.workflow.plan import PlannedTask, TaskPlan, parse_plan
from gong.workflow.schedule import Limits, TaskState, choose_ready, judge_failure, judge_review

FULL = {
    "requirement": "count words",
    "analysis": "a small program",
    "id": "w1",
    "tasks": [
        {"id": "a", "title": "the counter"},
        {
            "id": "b",
            "title": "the printer",
            "description": "prints the counts",
            "dependencies": ["a"],
            "priority": 7,
            "files": ["out.py"],
            "status": "pending",
            "execution": {"by": "another program"},
            "reviews": [{"verdict": "pass"}],
        },
    ],
}


def test_a_plan_has_every_field_of_its_tasks():
    """M188: what a program that made the plan put into execution and reviews is kept."""
    plan = parse_plan(msgspec.json.encode(FULL))
    assert plan == TaskPlan(
        requirement="count words",
        analysis="a small program",
        id="w1",
        tasks=(
            PlannedTask("a", "the counter"),
            PlannedTask(
                "b",
                "the printer",
                "prints the counts",
                dependencies=("a",),
                priority=7,
                files=("out.py",),
                execution={"by": "another program"},
                reviews=({"verdict": "pass"},),
            ),
        ),
    )


def test_the_limits_are_those_of_the_design():
    """M189: 5 executors, 2 reviewers, 2 fixers, 3 retries, fixes unless told otherwise."""
    limits = Limits()
    assert (limits.executors, limits.reviewers, limits.fixers) == (5, 2, 2)
    assert (limits.retries, limits.auto_fix, limits.replans) == (3, True, 0)


@pytest.mark.parametrize(
    ("verdict", "state", "limits", "becomes"),
    [
        ("pass", TaskState(tries=1), Limits(), "completed"),
        ("minor", TaskState(tries=1, fixes=2), Limits(), "fixing"),
        ("minor", TaskState(tries=1, fixes=3), Limits(), "completed"),
        ("minor", TaskState(tries=1), Limits(auto_fix=False), "completed"),
        ("critical", TaskState(tries=3), Limits(), "running"),
        ("critical", TaskState(tries=4), Limits(), "failed"),
    ],
)
def test_a_review_decides_what_becomes_of_a_task(verdict, state, limits, becomes):
    """M189"""
    assert judge_review(state, verdict, limits) == becomes


def test_an_executor_that_fails_has_three_more_tries():
    """M189"""
    found = [judge_failure(TaskState(tries=tries), Limits()) for tries in (1, 2, 3, 4)]
    assert found == ["running", "running", "running", "failed"]


def test_the_highest_priority_begins_first_and_a_claimed_file_is_waited_for():
    """M188 M189: dependencies, priority, and files as locks."""
    tasks = (
        PlannedTask("low", "1", files=("a",)),
        PlannedTask("high", "2", priority=9, files=("b",)),
        PlannedTask("late", "3", dependencies=("low",)),
        PlannedTask("claims", "4", files=("c/d",)),
        PlannedTask("works", "5", files=("c",)),
    )
    states = {one.id: TaskState() for one in tasks} | {"works": TaskState("running")}
    ready = choose_ready(TaskPlan(tasks=tasks), states, has_worktrees=True)
    assert [one.id for one in ready] == ["high", "low"]
