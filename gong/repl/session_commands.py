"""Slash commands that go to another session, or to another place in this one.

A command without its argument shows a list, which types the command with an argument.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tape.model.entries import User, join_texts
from tape.resolve import resolve_reference

from ..errors import ConfigurationError
from .commands import CommandReply, SessionChoice, add_command, format_model_name
from .picker import Picker
from .session_lists import list_branches, list_sessions, list_tree

if TYPE_CHECKING:
    from tape.store.tape import Hit

    from ..agent.opening import OpenSession
    from ..agent.recorder import Recorder


def require_recorder(host: OpenSession) -> Recorder:
    """Return what records the session; raises ConfigurationError before its first prompt."""
    if (recorder := host.session.recorder) is None:
        raise ConfigurationError("the session is empty: type a prompt first")
    return recorder


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
