"""Slash commands that go to another session, or to another place in this one.

A command without its argument shows a list, which types the command with an argument.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tape.model.entries import User, join_texts
from tape.resolve import resolve_in_tape, resolve_reference
from tape.text import SHORT

from ..agent.merge import stream_merge
from ..errors import ConfigurationError
from ..policy.permissions import PermissionPolicy
from .commands import CommandReply, SessionChoice, add_command, format_model_name, require_recorder
from .picker import Picker
from .session_lists import list_branches, list_sessions, list_tree

if TYPE_CHECKING:
    from tape.store.tape import Hit

    from ..agent.merge import MergeResult
    from ..agent.opening import OpenSession


def _start_session(host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(opens=SessionChoice(model=format_model_name(host)))


add_command("new", "", "begin a new session; this one stays on its tape", busy=False)(
    _start_session
)
add_command("clear", "", "the same as /new", busy=False)(_start_session)


def build_session_picker(host: OpenSession) -> Picker:
    """Return the list of sessions of all folders."""
    find = partial(list_sessions, host.library.store.tapes.parent)
    return Picker("resume", find, {"enter": ("continues it", "/resume {}")})


@add_command("resume", "[REF]", "continue another session; without REF: a list", busy=False)
def _resume_session(host: OpenSession, ref: str) -> CommandReply:
    if not ref:
        return CommandReply(picks=build_session_picker(host))
    hit = _find_entry(host, ref)
    hit.tape.close()
    return CommandReply(opens=SessionChoice(ref))


@add_command("switch", "[BRANCH]", "continue another branch of this session", busy=False)
def _switch_branch(host: OpenSession, name: str) -> CommandReply:
    recorder = require_recorder(host)
    tape = recorder.tape
    if not name:
        find = partial(list_branches, tape, recorder.branch)
        return CommandReply(picks=Picker("switch", find, {"enter": ("continues it", "/switch {}")}))
    tape.head(name)
    tape.switch(name)
    return CommandReply(opens=SessionChoice(f"{tape.id}:{name}"))


@add_command("branches", "", "list the branches of this session", busy=True)
def _list_branches(host: OpenSession, _argument: str) -> CommandReply:
    recorder = require_recorder(host)
    rows = list_branches(recorder.tape, recorder.branch, "")
    return CommandReply("\n".join(f"{row.text}  ({row.note} ago)" for row in rows))


@add_command("tree", "[REF]", "walk the prompts of all branches; REF goes there", busy=False)
def _open_entry(host: OpenSession, ref: str) -> CommandReply:
    """Switch to a branch, or start one: at a prompt before it, with its text in the prompt."""
    tape = require_recorder(host).tape
    if not ref:
        keys = {"enter": ("goes there", "/tree {}"), "c-x": ("compares", "/compare {}")}
        return CommandReply(picks=Picker("tree", partial(list_tree, tape), keys))
    if ref in tape.refs().branches:
        return _switch_branch(host, ref)
    hit = _find_entry(host, ref)
    try:
        data = hit.tape.entry(hit.head).data
        if isinstance(data, User) and hit.head.header.n > 0:
            before, draft = f"{hit.tape.id}@{hit.head.entry}~1", join_texts(data.content)
        else:
            before, draft = f"{hit.tape.id}@{hit.head.entry}", ""
    finally:
        hit.tape.close()
    return CommandReply(opens=SessionChoice(before, forks=True, draft=draft))


def _find_entry(host: OpenSession, ref: str) -> Hit:
    """Return the entry that a REF names, with its tape, which the caller closes."""
    folder = host.session.setup.env.working_directory
    return resolve_reference(*host.library, ref, folder)


@add_command("name", "[TITLE]", "show or set the title of this session", busy=True)
def _name_session(host: OpenSession, title: str) -> CommandReply:
    tape = require_recorder(host).tape
    if title:
        tape.rename(title)
    return CommandReply(f"title: {tape.title() or '–'}")


@add_command("label", "NAME [REF]", "name the newest entry, or another one, by a label", busy=True)
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


@add_command("merge", "BRANCH", "bring a branch back into this one as a summary", busy=False)
def _merge_branch(host: OpenSession, name: str) -> CommandReply:
    tape = require_recorder(host).tape
    if not name:
        return CommandReply("/merge needs the name of a branch: /branches lists them", failed=True)
    done: list[MergeResult] = []
    work = stream_merge(host.session, tape.head(name), left=False, done=done.append)
    return CommandReply(
        work=work,
        after=lambda: f"{name} is merged; tape merge --undo undoes it" if done else "",
    )


@add_command("reload", "", "read settings, instructions and hooks again", busy=False)
def _open_session_again(host: OpenSession, _argument: str) -> CommandReply:
    recorder, name = host.session.recorder, format_model_name(host)
    ref = f"{recorder.tape.id}:{recorder.branch}" if recorder else None
    return CommandReply(opens=SessionChoice(ref, model=name))


@add_command("add-dir", "[PATH]", "let the agent work in another folder, too", busy=True)
def _add_folder(host: OpenSession, path: str) -> CommandReply:
    policy, session = host.session.setup.policy, host.session
    if not isinstance(policy, PermissionPolicy):
        raise ConfigurationError("the policy of this session knows no folders")
    if not path:
        return CommandReply("\n".join((policy.cwd, *policy.folders)))
    folder = session.setup.env.resolve(path)
    if not Path(folder).is_dir():
        raise ConfigurationError(f"{folder} is no folder")
    policy.folders = tuple(dict.fromkeys((*policy.folders, folder)))
    return CommandReply(f"the agent may work in {folder}, from the next call on")


@add_command("memory", "", "list the instruction files that this session follows", busy=True)
def _list_instructions(host: OpenSession, _argument: str) -> CommandReply:
    files = host.session.setup.model.instructions.files
    rows = [f"{one.name}  {one.path}" for one in files]
    return CommandReply("\n".join(rows) or "none; /init writes AGENTS.md")


@add_command("debug", "", "say where this session is, and how its model is reached", busy=True)
def _show_places(host: OpenSession, _argument: str) -> CommandReply:
    session, recorder = host.session, host.session.recorder
    model = session.setup.model
    rows = [
        f"tape      {recorder.tape.folder if recorder else '– (begins with the first prompt)'}",
        f"branch    {recorder.branch if recorder else '–'}",
        f"model     {model.name} over {model.api} at {model.endpoint or '–'}",
        f"profile   {model.profile}",
        f"folder    {session.setup.env.working_directory}",
        f"process   {os.getpid()}",
    ]
    return CommandReply("\n".join(rows))
