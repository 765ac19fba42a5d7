"""Slash commands that go to another branch of this session, or to an earlier entry of it.

Before another branch is entered, a list asks for a summary of the branch that is left:

    chosen                     types                         the branch that is entered
    -------------------------  ----------------------------  ---------------------------------
    no summary                 /switch main --no-summary     as it was
    a summary                  /switch main --summary        gets one, written by the model
    your words, typed there    /switch main --summary WORDS  gets these words
    your own words             /switch main --words          the prompt waits for the words

A summary is an anchor on the branch that is entered (`agent.merge`). Nothing is asked where that
branch knows all that was said on the other.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import TapeError
from tape.history.merge_plan import plan_merge, read_entries_since
from tape.model.entries import Assistant, User, join_texts
from tape.places.resolve import resolve_in_tape, resolve_reference
from tape.text import SHORT

from ...agent.merge import stream_merge
from ...env.wrappers import find_folder_here
from ..draw.picker import Picker
from ..draw.picker_rows import PickerRow
from .command import CommandReply, SessionChoice, SlashCommand, require_recorder, undo_anchor
from .session_lists import list_branches, list_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.store.refs import Head
    from tape.store.tape import Hit, Tape

    from ...agent.merge import MergeResult
    from ...assembly.open_session import OpenSession

_FLAGS = ("--summary", "--no-summary", "--words")
_LABEL = "--label"


class _Target(NamedTuple):
    """Where the user goes, and which summary they chose."""

    ref: str
    flag: str = ""
    """One of `_FLAGS`; empty where the user gave none."""
    words: str = ""
    """The summary in their own words, or the label."""


def _read_target(argument: str, *more: str) -> _Target | None:
    """Return the target that is typed; None for a flag not in `_FLAGS` or `more`."""
    ref, _, rest = argument.partition(" ")
    flag, _, words = rest.strip().partition(" ")
    is_known = not flag or flag in {*_FLAGS, *more}
    return _Target(ref, flag, words.strip()) if is_known else None


_WRONG_FLAG = CommandReply(
    "after its name comes --summary, --summary TEXT or --no-summary", failed=True
)


def _switch_branch(host: OpenSession, argument: str) -> CommandReply:
    recorder = require_recorder(host)
    tape = recorder.tape
    if not argument:
        find = partial(list_branches, tape, recorder.branch)
        return CommandReply(picks=Picker("switch", find, {"enter": ("continues it", "/switch {}")}))
    if (target := _read_target(argument)) is None:
        return _WRONG_FLAG
    head = tape.head(target.ref)
    reply = _leave_branch(
        host, f"/switch {target.ref}", target, head, SessionChoice(f"{tape.id}:{target.ref}")
    )
    if reply.opens is not None:
        tape.switch(target.ref)
    return reply


def _list_branches(host: OpenSession, _argument: str) -> CommandReply:
    recorder = require_recorder(host)
    rows = list_branches(recorder.tape, recorder.branch, "")
    return CommandReply("\n".join(f"{row.text}  ({row.note} ago)" for row in rows))


def _open_entry(host: OpenSession, argument: str) -> CommandReply:
    """Switch to a branch, or start one: at a prompt before it, with its text in the prompt."""
    recorder = require_recorder(host)
    tape = recorder.tape
    if not argument:
        keys = {
            "enter": ("goes there", "/tree {}"),
            "c-x": ("compares", "/compare {}"),
            "c-l": ("labels", f"/tree {{}} {_LABEL}"),
        }
        return CommandReply(picks=Picker("tree", partial(list_tree, tape, recorder.branch), keys))
    if (target := _read_target(argument, _LABEL)) is None:
        return _WRONG_FLAG
    if target.flag == _LABEL:
        return _change_label(host, tape, target.ref, target.words)
    if target.ref in tape.refs().branches:
        return _switch_branch(host, argument)
    hit = _find_entry(host, target.ref)
    with hit.tape:
        data = hit.tape.entry(hit.head).data
        place, draft = f"{hit.tape.id}@{hit.head.entry}", ""
        if isinstance(data, User) and hit.head.header.n > 0:
            place, draft = f"{place}~1", join_texts(data.content)
        choice = SessionChoice(place, forks=True, draft=draft)
        if hit.tape.id != tape.id:  # an entry of the origin, which knows no branch of this tape
            return CommandReply(opens=choice)
        at = f"@{hit.head.entry}{'~1' if draft else ''}"
        into = resolve_in_tape(tape, at, "").head
    return _leave_branch(host, f"/tree {target.ref}", target, into, choice)


def _leave_branch(
    host: OpenSession, command: str, target: _Target, into: Head, choice: SessionChoice
) -> CommandReply:
    """Continue at another place, once it is chosen which summary of the branch left it gets."""
    recorder = require_recorder(host)
    recorder.barrier()
    left = recorder.branch
    if target.flag == "--words":
        return CommandReply("the summary in your words:", draft=f"{command} --summary ")
    if target.flag == "--summary":
        return CommandReply(
            opens=choice._replace(line=f"/merge {left} --left {target.words}".rstrip())
        )
    if not target.flag and _has_news(recorder.tape, into, recorder.head()):
        return CommandReply(picks=_build_summary_picker(left, command))
    return CommandReply(opens=choice)


def _has_news(tape: Tape, into: Head, left: Head) -> bool:
    """Return whether something was said on a branch that is left and is unknown at `into`."""
    with suppress(TapeError):  # of what cannot be read no summary is offered
        plan = plan_merge(tape, into, left, skipped=lambda _: None, left=True)
        since = read_entries_since(plan, lambda _: None)
        return any(isinstance(entry.data, User | Assistant) for entry in since)
    return False


def _build_summary_picker(left: str, command: str) -> Picker:
    """Return the list of summaries of the branch that is left, for the one that is entered."""

    def find(words: str) -> Sequence[PickerRow]:
        if words:
            return [PickerRow(f"--summary {words}", f"in your words: {words}")]
        return [
            PickerRow("--no-summary", "no summary"),
            PickerRow("--summary", "a summary", "the model writes it"),
            PickerRow("--words", "a summary in your own words", "type it here"),
        ]

    keys = {"enter": ("goes there", f"{command} {{}}")}
    return Picker(f"summary of {left}", find, keys, is_question=True)


def _find_entry(host: OpenSession, ref: str) -> Hit:
    """Return the entry that a REF names, with its tape, which the caller closes."""
    folder = find_folder_here(host.session.setup.env)
    return resolve_reference(*host.library, ref, folder)


def _change_label(host: OpenSession, tape: Tape, ref: str, name: str) -> CommandReply:
    """Label the entry of a row of the tree, or remove a label that it has."""
    if not name:
        remark = "the label to set, or one of this entry to remove it:"
        return CommandReply(remark, draft=f"/tree {ref} {_LABEL} ")
    refs = tape.refs()
    if ref in refs.branches:
        entry = tape.head(ref).entry
    else:
        with (hit := _find_entry(host, ref)).tape:
            entry = hit.head.entry
        if hit.tape.id != tape.id:
            remark = f"{ref} is in the session that this one was forked from: label it there"
            return CommandReply(remark, failed=True)
    require_recorder(host).barrier()
    is_removed = refs.labels.get(name) == entry
    tape.label(name, None if is_removed else entry)
    remark = "is removed from" if is_removed else "is at"
    return CommandReply(f"label {name} {remark} {entry[:SHORT]}")


def _set_label(host: OpenSession, argument: str) -> CommandReply:
    recorder = require_recorder(host)
    name, _, ref = argument.partition(" ")
    if not name:
        labels = recorder.tape.refs().labels
        rows = [f"{label}  {entry[:SHORT]}" for label, entry in sorted(labels.items())]
        return CommandReply("\n".join(rows) or "no labels yet; set one with /label NAME")
    recorder.barrier()
    head = resolve_in_tape(recorder.tape, ref, recorder.branch).head if ref else recorder.head()
    recorder.tape.label(name, head.entry)
    return CommandReply(f"label {name} is at {head.entry[:SHORT]}")


def _merge_branch(host: OpenSession, argument: str) -> CommandReply:
    """Join a branch; with --left tell of one that was left, in the words that follow it."""
    tape = require_recorder(host).tape
    if argument in {"--undo", "--undo --leave"}:
        undo_anchor(host, ("merge",), leave=argument.endswith("--leave"))
        return CommandReply("Merge undone: its summary has left the branch")
    name, _, rest = argument.partition(" ")
    flag, _, words = rest.strip().partition(" ")
    if not name:
        return CommandReply("/merge needs the name of a branch: /branches lists them", failed=True)
    if flag not in {"", "--left"}:
        return CommandReply(f"/merge {name} takes no {flag}", failed=True)
    done: list[MergeResult] = []
    left = flag == "--left"
    work = stream_merge(
        host.session, tape.head(name), left=left, words=words.strip(), done=done.append
    )
    remark = f"this branch has a summary of {name}" if left else f"{name} is merged"
    return CommandReply(
        work=work,
        work_name="the merge",
        after=lambda: f"{remark}; /merge --undo undoes it" if done else "",
    )


COMMANDS = (
    SlashCommand(
        "switch",
        "[BRANCH]",
        "switch to another branch, if you like with a summary of this one",
        busy=False,
        run=_switch_branch,
    ),
    SlashCommand(
        "branches", "", "list the branches of this session", busy=True, run=_list_branches
    ),
    SlashCommand(
        "tree",
        "[REF]",
        "walk the prompts of all branches; REF goes there",
        busy=False,
        run=_open_entry,
    ),
    SlashCommand(
        "label",
        "NAME [REF]",
        "name the newest entry, or another one, by a label",
        busy=True,
        run=_set_label,
    ),
    SlashCommand(
        "merge",
        "BRANCH",
        "bring a branch back into this one as a summary; --undo",
        busy=False,
        run=_merge_branch,
    ),
)
"""The commands of this module."""
