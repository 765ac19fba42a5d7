"""Slash commands: one table of names, functions, and whether each may run while the agent works.

A line that looks like a command is never sent to the model, even if there is no such command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import TapeError

from ..agent.compaction import Wish
from ..agent.handing import hand_over, handoff_page
from ..agent.window import measured, next_call
from ..context.costs import spent, usage_lines
from ..context.shares import meter, text
from ..errors import GongError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from ..agent.events import Event
    from ..agent.opening import Host

_COMMAND = re.compile(r"/(?P<name>[^\s/]*)(?:\s+(?P<argument>.*?))?\s*\Z", re.DOTALL)
_FLAGS = {"-m": "/model", "--leave": "/undo --leave"}

KEYS = (
    ("Enter", "send; while the agent works: steer it before its next step"),
    ("Alt+Enter", "queue a follow-up for when the agent is done"),
    ("Ctrl+J", "new line; also \\ and Enter"),
    ("Esc, Ctrl+C", "stop the agent; your draft is kept"),
    ("Ctrl+C twice", "quit; once, while idle: clear the line"),
    ("Ctrl+D", "quit, on an empty line"),
    ("Ctrl+Z", "suspend gong; fg in the shell resumes it"),
)
"""Keys and what they do, for /help."""


class Reply(NamedTuple):
    """The result of a command; `leaves` ends the conversation."""

    text: str = ""
    failed: bool = False
    leaves: bool = False
    work: AsyncGenerator[Event, None] | None = None
    """Work to run before the next prompt; input that arrives meanwhile is queued."""
    after: Callable[[], str] = lambda: ""
    """Returns the text to show after that work."""


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command."""

    name: str
    argument: str
    """The argument as /help shows it; empty for none."""
    about: str
    busy: bool
    """Whether the command may run while the agent works."""
    run: Callable[[Host, str], Reply]


def is_command(text: str) -> bool:
    """Return whether a line is a command: `/x`, but not a path such as /etc/hosts."""
    return _COMMAND.match(text) is not None


def answer(text: str, host: Host, *, busy: bool, who: str = "the agent") -> Reply:
    """Run the command on a line; an error is a reply too. `who` names what is busy."""
    found = _COMMAND.match(text)
    assert found is not None, "the line is a command"
    command = COMMANDS.get(found["name"])
    if command is None:
        return Reply(_unknown(found["name"]), failed=True)
    if busy and not command.busy:
        return Reply(f"/{command.name} has to wait for {who}: stop it with Esc first", failed=True)
    if found["argument"] and not command.argument:
        return Reply(f"/{command.name} takes no argument", failed=True)
    try:
        return command.run(host, found["argument"] or "")
    except (GongError, TapeError, OSError) as error:
        return Reply(_in_chat(str(error)), failed=True)


def _in_chat(text: str) -> str:
    """Return the text of an error, with slash commands in place of command-line flags."""
    for flag, command in _FLAGS.items():
        text = re.sub(rf"(?<!\S){flag}\b", command, text)
    return text


def _unknown(name: str) -> str:
    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists all commands"
    return f"unknown command /{name}: {hint} (start with a space to send it to the model)"


def _help(_host: Host, _argument: str) -> Reply:
    commands = [_help_row(command) for command in COMMANDS.values()]
    keys = [f"{key:<20}{about}" for key, about in KEYS]
    return Reply("\n".join([*commands, "* also while the agent works", "", *keys]))


def _help_row(command: Command) -> str:
    usage = f"/{command.name} {command.argument}".rstrip()
    return f"{usage:<18}{'*' if command.busy else ' '} {command.about}"


def _fork(host: Host, name: str) -> Reply:
    recorder = host.session.recorder
    old = recorder.branch if recorder else ""
    branch = host.session.fork(name or None)
    return Reply(f"Switched to new branch {branch}; {old} is unchanged")


def _model(host: Host, name: str) -> Reply:
    if name:
        host.session.use_model(host.models.choose(name))
        return Reply(f"current model: {model_name(host)}, from the next prompt on")
    return Reply(f"current model: {model_name(host)}; switch with /model NAME")


def model_name(host: Host) -> str:
    """Return provider/model of the current model."""
    model = host.session.setup.model
    return f"{model.provider}/{model.id}"


def _compact(host: Host, focus: str) -> Reply:
    return Reply(work=host.session.compact(Wish("user", focus)))


def _undo(host: Host, leave: str) -> Reply:
    if leave not in {"", "--leave"}:
        return Reply("/undo takes no argument except --leave", failed=True)
    anchor = host.session.undo(leave=bool(leave))
    return Reply(
        f"{anchor.kind.capitalize()} undone: the next request contains the messages that it covered"
    )


def _context(host: Host, _argument: str) -> Reply:
    session = host.session
    if session.recorder is None:
        return Reply("the session is empty")
    parts = session.parts()
    made = next_call(parts)
    used = meter(made.request, made.view, window=parts.model.window, size=measured(made))
    return Reply(text(used))


def _cost(host: Host, _argument: str) -> Reply:
    recorder = host.session.recorder
    if recorder is None:
        return Reply("the session is empty")
    entries = (entry for run in recorder.tape.runs(recorder.head()) for entry in run)
    return Reply("\n".join(usage_lines(spent(entries))))


def _handoff(host: Host, name: str) -> Reply:
    recorder = host.session.recorder
    if recorder is None:
        return Reply("the session is empty: there is nothing to hand over", failed=True)
    to = host.models.names.full(name) if name else model_name(host)
    cwd = host.session.setup.env.working_directory
    return Reply(
        work=hand_over(host.session, to),
        after=lambda: handoff_page(recorder, to_model=to, cwd=cwd),
    )


def _quit(_host: Host, _argument: str) -> Reply:
    return Reply(leaves=True)


COMMANDS = {
    command.name: command
    for command in (
        Command("help", "", "show this list", busy=True, run=_help),
        Command(
            "model",
            "[NAME]",
            "show or switch the model; NAME is provider/model",
            busy=True,
            run=_model,
        ),
        Command("context", "", "show context usage", busy=True, run=_context),
        Command("cost", "", "show tokens and cost of this branch", busy=True, run=_cost),
        Command(
            "compact", "[FOCUS]", "replace older messages by a summary", busy=False, run=_compact
        ),
        Command("undo", "[--leave]", "undo the newest compaction", busy=False, run=_undo),
        Command(
            "handoff", "[MODEL]", "hand over: set an anchor, print a page", busy=False, run=_handoff
        ),
        Command("fork", "[NAME]", "switch to a new branch that starts here", busy=False, run=_fork),
        Command("quit", "", "leave", busy=True, run=_quit),
    )
}
"""Every command by its name, in the order of /help."""
