"""/undo, /redo and /rewind: talk and files of this session go back, and forward again.

Without a scope the plan is shown with its patch, and a list asks what goes back; with one it is
done:

    /rewind              a list of prompts, which types:
    /rewind 4be81c20     the plan, and a list of scopes, which types:
    /rewind 4be81c20 both   both go back; the text of the prompt is in the prompt line again
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, get_args

from tape.model.entries import User, join_texts
from tape.text import format_count

from ...agent.rewind import build_file_patches, plan_redo, plan_rewind, plan_undo
from ...checkpoints.rewind import Scope
from ...checkpoints.rewind_report import describe_plan, describe_report
from ...errors import NothingToUndo
from ..draw.picker import Picker
from ..draw.picker_rows import PickerRow
from .command import CommandReply, SlashCommand, require_recorder
from .session_lists import list_prompts, select_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...assembly.open_session import OpenSession
    from ...checkpoints.rewind import RewindPlan

_COLUMNS = 100
_PATCH_LINES = 60
_MAX_DIGITS = 9
_SCOPES: dict[Scope, str] = {
    "both": "talk and files",
    "talk": "only the talk; no file is changed",
    "files": "only files; the talk stays",
}


def _undo_prompts(host: OpenSession, argument: str) -> CommandReply:
    count, _, scope = (argument or "1").partition(" ")
    if not count.isdecimal() or len(count) > _MAX_DIGITS or count == "0":
        return CommandReply("/undo takes a number of prompts: /undo 2", failed=True)
    return _answer_plan(host, partial(plan_undo, host.session, int(count)), f"undo {count}", scope)


def _restore_prompt(host: OpenSession, argument: str) -> CommandReply:
    recorder = require_recorder(host)
    ref, _, scope = argument.partition(" ")
    if not ref:
        find = partial(list_prompts, recorder.tape, recorder.branch)
        keys = {"enter": ("goes back to before it", "/rewind {}")}
        return CommandReply(picks=Picker("rewind", find, keys))
    return _answer_plan(host, partial(plan_rewind, host.session, ref), f"rewind {ref}", scope)


def _apply_redo(host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(_apply_plan(host, plan_redo(host.session)))


def _answer_plan(
    host: OpenSession, plan: Callable[[Scope], RewindPlan], command: str, scope: str
) -> CommandReply:
    """Do what is planned for a scope, or show it and ask for the scope."""
    for choice in get_args(Scope):
        if choice == scope:
            planned = plan(choice)
            draft = "" if choice == "files" else _read_first_prompt(host, planned)
            return CommandReply(_apply_plan(host, planned), draft=draft)
    if scope:
        scopes = ", ".join(_SCOPES)
        return CommandReply(f"{scope} is not a scope: choose one of {scopes}", failed=True)
    whole, rows = plan("both"), []
    for choice in _SCOPES:
        with suppress(NothingToUndo):
            rows.append(_build_scope_row(choice, plan(choice)))
    keys = {"enter": ("does it", f"/{command} {{}}")}
    picks = Picker("go back", lambda words: select_rows(rows, words), keys, is_question=True)
    lines = describe_plan(whole, _COLUMNS, how_to_overwrite="gong rewind --overwrite PATH")
    patches = build_file_patches(host.session, whole).values()
    lines_of_patches = [
        line for patch in patches for line in patch.decode("utf-8", "replace").splitlines()
    ]
    rest = len(lines_of_patches) - _PATCH_LINES
    more = [f"… {rest} more lines: gong {whole.reason} -p --dry-run shows all"] if rest > 0 else []
    return CommandReply("\n".join([*lines, *lines_of_patches[:_PATCH_LINES], *more]), picks=picks)


def _build_scope_row(scope: Scope, plan: RewindPlan) -> PickerRow:
    prompts = format_count(len(plan.prompts), "prompt")
    files = format_count(len(plan.files.select("restore")), "file")
    return PickerRow(scope, _SCOPES[scope], f"{prompts}, {files}")


def _apply_plan(host: OpenSession, plan: RewindPlan) -> str:
    report = host.session.apply_rewind(plan)
    failed = [f"{path} was not restored: {why}" for path, why in report.failed.items()]
    return "\n".join([*failed, describe_report(report, redo="/redo")])


def _read_first_prompt(host: OpenSession, plan: RewindPlan) -> str:
    """Return the text of the oldest prompt that leaves the branch."""
    tape = require_recorder(host).tape
    for entry in tape.entries(tape.head(require_recorder(host).branch)):
        if entry.n > plan.target.header.n and isinstance(entry.data, User):
            return join_texts(entry.data.content)
    return ""


COMMANDS = (
    SlashCommand(
        "undo",
        "[N]",
        "undo the newest prompts, with what they did to files",
        busy=False,
        run=_undo_prompts,
    ),
    SlashCommand(
        "rewind",
        "[REF]",
        "go back to before a prompt; without REF: a list",
        busy=False,
        run=_restore_prompt,
    ),
    SlashCommand(
        "redo", "", "reverse the newest undo or rewind, as a whole", busy=False, run=_apply_redo
    ),
)
"""The commands of this module."""
