"""Slash commands about sessions: another one, and what this one is and follows.

A command without its argument shows a list, which types the command with an argument.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tape.places.resolve import resolve_reference

from ...env.wrappers import describe_folder, find_folder_here
from ...errors import ConfigurationError
from ...policy.permissions import PermissionPolicy
from .command import CommandReply, SessionChoice, SlashCommand, format_model_name, require_recorder
from .session_picker import build_session_picker

if TYPE_CHECKING:
    from ...assembly.open_session import OpenSession


def _start_session(host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(opens=SessionChoice(model=format_model_name(host)))


def _resume_session(host: OpenSession, ref: str) -> CommandReply:
    if not ref:
        return CommandReply(picks=build_session_picker(host))
    resolve_reference(*host.library, ref, find_folder_here(host.session.setup.env)).tape.close()
    return CommandReply(opens=SessionChoice(ref))


def _name_session(host: OpenSession, title: str) -> CommandReply:
    tape = require_recorder(host).tape
    if title:
        tape.rename(title)
    return CommandReply(f"title: {tape.title() or '–'}")


def _open_session_again(host: OpenSession, _argument: str) -> CommandReply:
    recorder, name = host.session.recorder, format_model_name(host)
    ref = f"{recorder.tape.id}:{recorder.branch}" if recorder else None
    return CommandReply(opens=SessionChoice(ref, model=name))


def _add_folder(host: OpenSession, path: str) -> CommandReply:
    policy, session = host.session.setup.policy, host.session
    if not isinstance(policy, PermissionPolicy):
        raise ConfigurationError("the policy of this session has no folders")
    if not path:
        return CommandReply("\n".join((policy.cwd, *policy.folders)))
    folder = session.setup.env.resolve(path)
    if not Path(folder).is_dir():
        raise ConfigurationError(f"{folder} is not a folder")
    policy.folders = tuple(dict.fromkeys((*policy.folders, folder)))
    return CommandReply(f"the agent may work in {folder}, from the next call on")


def _list_instructions(host: OpenSession, _argument: str) -> CommandReply:
    files = host.session.setup.model.instructions.files
    rows = [f"{file.name}  {file.path}" for file in files]
    return CommandReply("\n".join(rows) or "none; /init writes AGENTS.md")


def _show_places(host: OpenSession, _argument: str) -> CommandReply:
    session, recorder = host.session, host.session.recorder
    model = session.setup.model
    rows = [
        f"tape      {recorder.tape.folder if recorder else '– (begins with the first prompt)'}",
        f"branch    {recorder.branch if recorder else '–'}",
        f"model     {model.name} over {model.api} at {model.endpoint or '–'}",
        f"profile   {model.profile}",
        f"folder    {describe_folder(session.setup.env)}",
        f"process   {os.getpid()}",
    ]
    return CommandReply("\n".join(rows))


COMMANDS = (
    SlashCommand(
        "resume",
        "[REF]",
        "continue another session; without REF: a list",
        busy=False,
        run=_resume_session,
    ),
    SlashCommand(
        "name", "[TITLE]", "show or set the title of this session", busy=True, run=_name_session
    ),
    SlashCommand(
        "reload",
        "",
        "read settings, instructions and hooks again",
        busy=False,
        run=_open_session_again,
    ),
    SlashCommand(
        "add-dir", "[PATH]", "let the agent work in another folder, too", busy=True, run=_add_folder
    ),
    SlashCommand(
        "memory",
        "",
        "list the instruction files that this session follows",
        busy=True,
        run=_list_instructions,
    ),
    SlashCommand(
        "debug",
        "",
        "show where this session is stored, and how its model is reached",
        busy=True,
        run=_show_places,
    ),
    SlashCommand(
        "new", "", "begin a new session; this one stays on its tape", busy=False, run=_start_session
    ),
    SlashCommand("clear", "", "the same as /new", busy=False, run=_start_session),
)
"""The commands of this module."""
