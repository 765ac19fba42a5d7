"""What the agents of a workflow are asked, and how their answers are read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from .plan import PlanError, TaskPlan, change_plan, parse_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from .plan import PlannedTask

Answer = TypeVar("Answer")
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n```", re.DOTALL)

PLAN_SHAPE = (
    '{"requirement": "…", "analysis": "…", "tasks": [{"id": "short-id", "title": "…",'
    ' "description": "…", "dependencies": ["id"], "priority": 0, "files": ["path"]}]}'
)
REVIEW_SHAPE = (
    '{"verdict": "pass" | "minor" | "critical", "findings": [{"file": "…", "lines": "…",'
    ' "severity": "…", "text": "…"}], "summary": "…"}'
)
NOTES_SHAPE = '{"messages": [{"to": "task id, or all", "text": "…"}], "replan": "why, or nothing"}'
SCORE_SHAPE = '{"score": 0 to 100, "report": "…"}'


class Review(Struct, frozen=True):
    """What a reviewer answers."""

    verdict: Literal["pass", "minor", "critical"]
    findings: tuple[Any, ...] = ()
    summary: str = ""


class Score(Struct, frozen=True):
    """What an evaluator answers."""

    score: float
    report: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 100:  # noqa: PLR2004 (per cent)
            raise ValueError(f"score is {self.score:g}, and not 0 to 100")


class TaskMessage(Struct, frozen=True):
    """What one task has to tell another."""

    text: str
    to: str = "all"
    """The id of a task; `all` is every one that begins later."""


class TaskNotes(Struct, frozen=True):
    """What an executor may add to its answer."""

    messages: tuple[TaskMessage, ...] = ()
    replan: str = ""
    """Why the plan does not fit; empty where it does."""


class MalformedAnswer(ValueError):
    """An answer is not what was asked for; the text says what is wrong with it."""


def find_object(text: str, field: str = "") -> str:
    """Return the JSON object in an answer: all of it, a fenced block, or what a brace begins.

    Of several, the first that has the field; the first of all where none has it. Raises
    MalformedAnswer where there is none.
    """
    objects = list(_list_objects(text, field))
    if not objects:
        raise MalformedAnswer("it holds no object")
    return next((whole for whole, has_field in objects if has_field), objects[0][0])


def _list_objects(text: str, field: str) -> Iterator[tuple[str, bool]]:
    """Yield the objects of an answer, and whether each has the field."""
    tries = [text.strip(), *(fence.strip() for fence in _FENCE.findall(text))]
    for candidate in tries:
        if candidate.startswith("{") and (value := _read_json(candidate)) is not None:
            yield candidate, field in value
    decoder, last = json.JSONDecoder(), 0
    for at in (brace.start() for brace in re.finditer(r"\{", text)):
        if at < last:  # inside of the one before
            continue
        try:
            value, last = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        yield text[at:last], field in value


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_plan(text: str) -> TaskPlan:
    """Return the plan in an answer; raises MalformedAnswer."""
    try:
        return parse_plan(find_object(text, "tasks"))
    except PlanError as error:
        raise MalformedAnswer(str(error)) from error


def read_revised_plan(text: str, plan: TaskPlan, started: Collection[str]) -> TaskPlan:
    """Return the plan in an answer, with the tasks of another plan that have begun."""
    try:
        return change_plan(plan, started, _read_as(text, TaskPlan, "tasks"))
    except PlanError as error:
        raise MalformedAnswer(str(error)) from error


def read_review(text: str) -> Review:
    """Return the review in an answer; raises MalformedAnswer."""
    return _read_as(text, Review, "verdict")


def read_score(text: str) -> Score:
    """Return the score in an answer; raises MalformedAnswer."""
    return _read_as(text, Score, "score")


def read_notes(text: str) -> TaskNotes:
    """Return what an executor has added to its answer; nothing where it cannot be read."""
    try:
        return _read_as(text, TaskNotes, "messages")
    except MalformedAnswer:
        return TaskNotes()


def _read_as(text: str, kind: type[Answer], field: str) -> Answer:
    try:
        return msgspec.json.decode(find_object(text, field), type=kind)
    except msgspec.MsgspecError as error:
        raise MalformedAnswer(str(error)) from error


def ask_again(error: MalformedAnswer, shape: str) -> str:
    """Return the prompt for an agent whose answer could not be read."""
    return f"Your answer cannot be read: {error}. Answer again with this JSON object alone: {shape}"


def ask_for_plan(requirement: str) -> str:
    """Return what the planner is asked."""
    return (
        f"Plan how this requirement is met in this folder:\n\n{requirement}\n\nLook at the code"
        " first. Divide the work into tasks that one person each can do and check alone, as"
        " independent of each other as they can be; name in `files` what a task changes, and in"
        " `dependencies` the ids of tasks whose result it needs. Answer with this JSON object"
        f" alone: {PLAN_SHAPE}"
    )


def ask_for_another_plan(plan: TaskPlan, why: str, done: Callable[[str], str]) -> str:
    """Return what the planner is asked when a plan does not fit; `done` says how a task stands."""
    tasks = "\n".join(f"- {task.id}: {task.title}: {done(task.id)}" for task in plan.tasks)
    return (
        f"This requirement is being met by a plan of yours:\n\n{plan.requirement}\n\nThe tasks:\n"
        f"{tasks}\n\nThe plan does not fit any more:\n{why}\n\nLook at the code as it is. Change"
        " the tasks that are pending, or replace them and what failed by others with new ids; what"
        " has begun is kept. Answer with the whole plan as this JSON object alone:"
        f" {PLAN_SHAPE}"
    )


def ask_for_work(
    plan: TaskPlan,
    task: PlannedTask,
    findings: Sequence[Any],
    note: str,
    messages: Sequence[str] = (),
) -> str:
    """Return what an executor is asked; `findings` and `note` are of the try before.

    `messages` are those of other tasks.
    """
    parts = [
        f"Do this task: {task.title}",
        task.description,
        f"It is part of: {plan.requirement}",
        f"Change these files only: {', '.join(task.files)}" if task.files else "",
    ]
    if findings:
        parts.append(f"A review of your work refused it. Its findings:\n{_list_findings(findings)}")
    if note:
        parts.append(f"The try before ended so: {note}")
    if messages:
        parts.append(
            "Those who do other tasks say:\n" + "\n".join(f"- {message}" for message in messages)
        )
    parts.append(
        "Check what you did, with tests where there are some. Say at the end what you did. Only if"
        " another task must know something, or the plan does not fit what you found, end with this"
        f" JSON object: {NOTES_SHAPE}"
    )
    return "\n\n".join(filter(None, parts))


def ask_for_review(plan: TaskPlan, task: PlannedTask, changes: str, result: str) -> str:
    """Return what a reviewer is asked."""
    return "\n\n".join(
        (
            f"Review the work on this task: {task.title}",
            task.description,
            f"It is part of: {plan.requirement}",
            f"What the one who did it says:\n{result}" if result else "",
            f"The changes:\n{changes}" if changes else "There are no changes to files.",
            (
                "`pass` if the task is done and correct, `minor` if small things are to be fixed,"
                " `critical` if it is wrong or not done. Answer with this JSON object alone:"
                f" {REVIEW_SHAPE}"
            ),
        )
    )


def ask_for_fix(task: PlannedTask, findings: Sequence[Any], summary: str) -> str:
    """Return what a fixer is asked."""
    findings_text = _list_findings(findings) or summary
    return (
        f"Fix what a review of the task {task.title!r} found, and nothing else:\n\n{findings_text}"
    )


def ask_for_resolution(task: PlannedTask, files: Sequence[str]) -> str:
    """Return what a fixer is asked who finds conflicts of a merge."""
    listed = "\n".join(files)
    return (
        f"Merging the work on {task.title!r} with that of other tasks left conflicts. Resolve them"
        f" in these files, so that the work of both sides stays, and leave no markers:\n{listed}"
    )


def ask_for_score(plan: TaskPlan, done: Callable[[str], str]) -> str:
    """Return what the evaluator is asked; `done` says how a task ended."""
    tasks = "\n".join(f"- {task.id}: {task.title}: {done(task.id)}" for task in plan.tasks)
    return (
        f"Judge whether the work in this folder meets the requirement:\n\n{plan.requirement}\n\n"
        f"The tasks:\n{tasks}\n\nAnswer with this JSON object alone: {SCORE_SHAPE}"
    )


def _list_findings(findings: Sequence[Any]) -> str:
    return "\n".join(
        f"- {json.dumps(finding, ensure_ascii=False) if isinstance(finding, dict) else finding}"
        for finding in findings
    )
