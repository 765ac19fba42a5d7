"""The table of slash commands, and the line that runs one.

A line that looks like a command is never sent to the model, even if there is no such command. The
commands are in modules by their subject:

    agent      model, effort, mode, plan, context, cost, compaction, handoff, fork
    subagent   types of sub-agents, and those that run
    workflow   workflows, and how one stands
    session    other sessions; what this session is and follows
    branch     other branches and entries of this session, and what they tell each other
    skill      skills, which are commands of their own
    rewind     back to before a prompt, and forward again
    program    commands of the command line
    mcp        the MCP servers of a session
    input      what happens in the prompt: pictures, the editor, keys
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from tape.errors import TapeError

from ...errors import GongError
from . import agent, branch, mcp, place, program, rewind, session, skill, subagent, workflow
from . import input as input_
from .command import CommandReply, SlashCommand

_COMMAND_LINE = re.compile(r"/(?P<name>[^\s/]*)(?:\s+(?P<argument>.*?))?\s*\Z", re.DOTALL)
_FLAG_COMMANDS = {"-m": "/model", "--leave": "/{} --undo --leave"}
"""Flags of the command line that errors name → how they are typed here, `{}` for the command."""


def is_command(text: str) -> bool:
    """Return whether a line is a command: `/x`, but not a path such as /etc/hosts."""
    return _COMMAND_LINE.match(text) is not None


def answer_command(text: str, host: Any, *, busy: bool, who: str = "the agent") -> CommandReply:
    """Run the command on a line; an error is a reply too. `who` names what is busy."""
    match = _COMMAND_LINE.match(text)
    assert match is not None, "the line is a command"
    name, argument = match["name"], match["argument"] or ""
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists all commands"
        remark = f"unknown command /{name}: {hint} (start with a space to send it to the model)"
    elif busy and not command.busy:
        remark = f"/{name} has to wait for {who}: stop it with Esc first"
    elif argument and not command.argument:
        remark = f"/{name} takes no argument"
    else:
        try:
            return command.run(host, argument)
        except (GongError, TapeError, OSError) as error:
            remark = str(error)
            for flag, slash in _FLAG_COMMANDS.items():
                remark = re.sub(rf"(?<!\S){flag}\b", slash.format(name), remark)
    return CommandReply(remark, failed=True)


def _show_help(_host: object, _argument: str) -> CommandReply:
    usages = [
        (f"/{name} {command.argument}".rstrip(), command)
        for name, command in sorted(COMMANDS.items())
    ]
    rows = [
        f"{usage:<17} {'*' if command.busy else ' '} {command.about}" for usage, command in usages
    ]
    return CommandReply(
        "\n".join([*rows, "* also while the agent works", "", "/keys lists the keys"])
    )


def _quit_chat(_host: object, _argument: str) -> CommandReply:
    return CommandReply(leaves=True)


def _show_skills(host: Any, name: str) -> CommandReply:
    return skill.show_skills(host, name, COMMANDS)


_OWN = (
    SlashCommand("help", "", "show this list", busy=True, run=_show_help),
    SlashCommand("quit", "", "leave", busy=True, run=_quit_chat),
    SlashCommand("exit", "", "leave", busy=True, run=_quit_chat),
    SlashCommand("skills", "[NAME]", "list the skills, or show one", busy=True, run=_show_skills),
)
_SUBJECTS = (
    *(_OWN, agent.COMMANDS, branch.COMMANDS, input_.COMMANDS, mcp.COMMANDS, place.COMMANDS),
    *(program.COMMANDS, rewind.COMMANDS, session.COMMANDS, subagent.COMMANDS, workflow.COMMANDS),
)
COMMANDS = {command.name: command for commands in _SUBJECTS for command in commands}
"""Every command by its name; its function gets the `OpenSession` and the argument."""
