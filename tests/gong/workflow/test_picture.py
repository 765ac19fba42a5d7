"""The picture of a workflow that runs: its lines, the time that is left, a real terminal."""

from __future__ import annotations

import json

import pexpect
import pyte
import pytest

from gong.workflow.picture import TimeLeft, draw_picture, estimate_time_left, format_time_left
from gong.workflow.plan import PlannedTask, TaskPlan
from gong.workflow.record import Workflow, WorkflowEvent
from gong.workflow.schedule import TaskState
from tape.clock import format_timestamp
from tests.gong.workflow.conftest import bash

SECOND = 1_000_000
BEGAN = 1_700_000_000 * SECOND


def build_workflow(*states, waits=()):
    """Return a workflow of tasks a, b, c…, each with its status and the seconds it began and took.

    `waits` are pairs: the first task waits for the second one.
    """
    names = "abcdefghij"[: len(states)]
    tasks = tuple(
        PlannedTask(name, f"make {name}", dependencies=tuple(b for a, b in waits if a == name))
        for name in names
    )
    made = Workflow("0123456789ab")
    made.apply_event(WorkflowEvent("plan", plan=TaskPlan(tasks=tasks)), "")
    for name, (status, began, took) in zip(names, states, strict=True):
        if began is None:
            continue
        at = format_timestamp(BEGAN + began * SECOND)
        event = WorkflowEvent("task", task=name, state=TaskState("running", 1))
        made.apply_event(event, at)
        ended = format_timestamp(BEGAN + (began + took) * SECOND)
        made.apply_event(WorkflowEvent("task", task=name, state=TaskState(status, 1)), ended)
    return made


WAITING = ("pending", None, None)


@pytest.mark.parametrize(
    ("workflow", "left"),
    [
        (build_workflow(WAITING), None),
        (build_workflow(("completed", 0, 10)), TimeLeft(0, 0)),
        (build_workflow(("completed", 0, 10), ("completed", 0, 30), WAITING), TimeLeft(10, 30)),
        (
            build_workflow(("completed", 0, 10), WAITING, WAITING, waits=("cb",)),
            TimeLeft(20, 20),
        ),
        (build_workflow(("completed", 90, 10), *[WAITING] * 9), TimeLeft(10, 20)),
        (build_workflow(("completed", 0, 10), ("running", 96, 0)), TimeLeft(6, 6)),
        (build_workflow(("completed", 0, 10), ("running", 60, 0)), TimeLeft(0, 0)),
    ],
    ids=["none", "all", "range", "chain", "rounds", "running", "late"],
)
def test_the_time_left_is_a_range_from_what_is_completed(workflow, left):
    assert estimate_time_left(workflow, BEGAN + 100 * SECOND) == left


def test_a_range_of_time_is_rounded():
    assert format_time_left(None) == "time left is not known yet"
    assert format_time_left(TimeLeft(5.2, 5.4)) == "5 s left"
    assert format_time_left(TimeLeft(21, 184)) == "21 s to 3 min 0 s left"


def test_a_picture_names_who_is_at_work_and_keeps_to_its_rows():
    workflow = build_workflow(("completed", 0, 10), ("running", 10, 0), *[WAITING] * 8)
    now = BEGAN + 15 * SECOND
    head, *lines = draw_picture(workflow, {"b": "executor, calling bash"}, now, BEGAN, 60, 40)
    assert head == "workflow 01234567  1/10 done  15 s, 5 s to 15 s left"
    assert len(lines) == 10
    assert lines[1].startswith("● b: make b  ")
    assert lines[1].endswith("executor, calling bash  5 s")
    assert len(lines[1]) == 60
    few = draw_picture(workflow, {}, now, BEGAN, 60, 6)
    assert len(few) == 6
    assert [few[1][:4], few[-1]] == ["● b:", "… 6 more"]
    assert all(len(one) <= 20 for one in draw_picture(workflow, {}, now, BEGAN, 20, 6))


@pytest.mark.slow
def test_a_terminal_shows_the_tasks_in_their_place(place):
    """M187: the state is redrawn, the lines above it stay."""
    place.play("executor", bash("sleep 1"), "made")
    command = place.build_command(
        "--plan", place.write_plan("a", ("b", "a")), "--yolo", *place.list_models()
    )
    child = pexpect.spawn(
        command[0],
        command[1:],
        cwd=str(place.repo),
        env={**place.env, "TERM": "xterm"},
        dimensions=(12, 70),
        timeout=60,
    )
    seen = child.expect(pexpect.EOF)
    assert seen == 0
    assert b"executor, calling bash" in child.before
    screen = pyte.Screen(70, 12)
    pyte.ByteStream(screen).feed(child.before)
    lines = [one.rstrip() for one in screen.display if one.strip()]
    assert lines[0] == "plan: 2 tasks"
    assert "2/2 done" in lines[1]
    assert lines[2].startswith("✓ a: make a  ")
    assert lines[3].startswith("  ✓ b: make b ← a  ")
    assert lines[4:] == [f"workflow {lines[1][9:17]}: completed, score 90", "good"]


def test_programs_get_the_same_as_lines_of_json(place):
    said = place.start(place.write_plan("a", ("b", "a")), "--json")
    events = [json.loads(one) for one in said.splitlines()]
    progress = [one for one in events if one["event"] == "progress"]
    assert (progress[-1]["completed"], progress[-1]["tasks"]) == (2, 2)
    assert progress[-1]["seconds_left"] == [0, 0]
    assert any(one["at_work"].get("a", "").startswith("executor") for one in progress)
    assert [one["event"] for one in events][-2:] == ["score", "end"]
