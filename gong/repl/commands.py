"""Slash commands: the table of them, and the line that runs one.

A line that looks like a command is never sent to the model, even if there is no such command. The
commands are in modules by their subject, and each adds itself to the table:

    agent_commands     model, effort, mode, plan, context, cost, compaction, handoff, fork
    subagent_commands  types of sub-agents, and those that run
    workflow_commands  workflows, and how one stands
    session_commands   other sessions; what this session is and follows
    branch_commands    other branches and entries of this session, and what they tell each other
    skill_commands     skills, which are commands of their own
    rewind_commands    back to before a prompt, and forward again
    program_commands   commands of the command line
    mcp_commands       the MCP servers of a session
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tape.errors import TapeError

from ..errors import ConfigurationError, GongError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from ..agent.events import Event
    from ..agent.recorder import Recorder
    from .picker import Picker

_COMMAND_LINE = re.compile(r"/(?P<name>[^\s/]*)(?:\s+(?P<argument>.*?))?\s*\Z", re.DOTALL)
_FLAG_COMMANDS = {"-m": "/model", "--leave": "/compact --undo --leave"}


class SessionChoice(NamedTuple):
    """The session that the conversation goes to next."""

    ref: str | None = None
    """A tape, branch or entry; None is a new session."""
    forks: bool = False
    """Whether a new branch starts there."""
    model: str | None = None
    """provider/model to use; None leaves the choice to the session and the settings."""
    draft: str = ""
    """Text that stands in its prompt."""
    line: str = ""
    """A command that it begins with."""


class CommandReply(NamedTuple):
    """The result of a command; `leaves` ends the conversation, `opens` continues it elsewhere."""

    text: str = ""
    failed: bool = False
    leaves: bool = False
    opens: SessionChoice | None = None
    draft: str = ""
    """Text that is put into the prompt where it is empty."""
    picks: Picker | None = None
    """A list to choose from; what is chosen is the next command."""
    work: AsyncGenerator[Event, None] | None = None
    """Work to run before the next prompt; input that arrives meanwhile is queued."""
    later: Awaitable[CommandReply] | None = None
    """What the command prints once it has ended; the conversation continues meanwhile."""
    types: Callable[[Any], None] | None = None
    """What happens in the prompt then, once the command is no longer in it."""
    after: Callable[[], str] = lambda: ""
    """Returns the text to show after that work."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One slash command."""

    name: str
    argument: str
    """The argument as /help shows it; empty for none."""
    about: str
    busy: bool
    """Whether the command may run while the agent works."""
    run: Callable[[Any, str], CommandReply]


CommandFunction: TypeAlias = "Callable[[Any, str], CommandReply]"
COMMANDS: dict[str, SlashCommand] = {}
"""Every command by its name; its function gets the `OpenSession` and the argument."""


def add_command(
    name: str, argument: str, about: str, *, busy: bool
) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that adds a function from host and argument as a command."""

    def add(run: CommandFunction) -> CommandFunction:
        COMMANDS[name] = SlashCommand(name, argument, about, busy, run)
        return run

    return add


def is_command(text: str) -> bool:
    """Return whether a line is a command: `/x`, but not a path such as /etc/hosts."""
    return _COMMAND_LINE.match(text) is not None


def answer_command(text: str, host: Any, *, busy: bool, who: str = "the agent") -> CommandReply:
    """Run the command on a line; an error is a reply too. `who` names what is busy."""
    found = _COMMAND_LINE.match(text)
    assert found is not None, "the line is a command"
    name, argument = found["name"], found["argument"] or ""
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists all commands"
        said = f"unknown command /{name}: {hint} (start with a space to send it to the model)"
    elif busy and not command.busy:
        said = f"/{name} has to wait for {who}: stop it with Esc first"
    elif argument and not command.argument:
        said = f"/{name} takes no argument"
    else:
        try:
            return command.run(host, argument)
        except (GongError, TapeError, OSError) as error:
            said = str(error)
            for flag, slash in _FLAG_COMMANDS.items():
                said = re.sub(rf"(?<!\S){flag}\b", slash, said)
    return CommandReply(said, failed=True)


def require_recorder(host: Any) -> Recorder:
    """Return what records the session; raises ConfigurationError before its first prompt."""
    recorder: Recorder | None = host.session.recorder
    if recorder is None:
        raise ConfigurationError("the session is empty: type a prompt first")
    return recorder


def format_model_name(host: Any) -> str:
    """Return provider/model of the current model."""
    return str(host.session.setup.model.name)


@add_command("help", "", "show this list", busy=True)
def _show_help(_host: object, _argument: str) -> CommandReply:
    usages = [(f"/{name} {one.argument}".rstrip(), one) for name, one in sorted(COMMANDS.items())]
    rows = [f"{usage:<18}{'*' if one.busy else ' '} {one.about}" for usage, one in usages]
    return CommandReply(
        "\n".join([*rows, "* also while the agent works", "", "/keys lists the keys"])
    )


@add_command("quit", "", "leave", busy=True)
def _quit_chat(_host: object, _argument: str) -> CommandReply:
    return CommandReply(leaves=True)


add_command("exit", "", "leave", busy=True)(_quit_chat)
