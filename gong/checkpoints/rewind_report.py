"""What an undo, redo or rewind would do, and what it did, as lines for people."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tape.render.calls import OP_LETTERS
from tape.text import format_count, shorten_to_width, to_single_line

if TYPE_CHECKING:
    from .rewind import RewindPlan, RewindReport

_PAST = {"undo": "Undone", "redo": "Redone", "rewind": "Rewound"}


def describe_plan(plan: RewindPlan, columns: int, *, how_to_overwrite: str) -> list[str]:
    """Return which prompts and files a plan is about, a line each, or that no file changes.

    `how_to_overwrite` says how a conflict is restored all the same.
    """
    lines = []
    if plan.prompts:
        back = "come back" if plan.reason == "redo" else "leave the branch"
        verb = back if len(plan.prompts) > 1 else f"{back.replace(' ', 's ', 1)}"
        lines.append(f"{format_count(len(plan.prompts), 'prompt')} {verb}:")
        lines += [f"  {shorten_to_width(prompt, columns - 2)}" for prompt in plan.prompts]
    files = [file for file in plan.files.files if file.status != "same"]
    paths = [to_single_line(shorten_path(file.path, plan)) for file in files]
    wide = max(map(len, paths), default=0)
    for file, path in zip(files, paths, strict=True):
        note = "" if file.status == "restore" else f"{file.status}: {file.why}"
        lines.append(f"  {OP_LETTERS.get(file.op, '?')}  {path:<{wide}}  {note}".rstrip())
    if plan.files.select("conflict"):
        lines.append(f"Conflicts are kept; {how_to_overwrite} restores one of them.")
    if plan.unrecorded:
        lines.append(f"{_describe_unrecorded(plan)}.")
    return lines or ["no file has to change"]


def describe_report(report: RewindReport, *, redo: str) -> str:
    """Return in one line what was done; `redo` is the command that reverses it."""
    plan = report.plan
    parts = []
    if report.is_unfinished:
        done = format_count(len(report.restored), "file")
        return f"{plan.reason} is not complete: {done} restored; the same again completes it"
    if plan.prompts:
        parts.append(format_count(len(plan.prompts), "prompt"))
    parts.append(f"{format_count(len(report.restored), 'file')} restored")
    if report.kept:
        parts.append(f"{len(report.kept)} kept as they are")
    again = "" if plan.reason == "redo" else f"; {redo} reverses it"
    stays = f"; {_describe_unrecorded(plan)}" if plan.unrecorded else ""
    return f"{_PAST[plan.reason]}: {', '.join(parts)}{again}{stays}"


def _describe_unrecorded(plan: RewindPlan) -> str:
    places = ", ".join(plan.unrecorded)
    return f"what commands changed in {places} is not recorded and stays there"


def shorten_path(path: str, plan: RewindPlan) -> str:
    """Return a path from the session's folder, where it is in it."""
    inside = os.path.relpath(path, plan.folder)
    return path if inside.startswith("..") else inside
