"""Slash commands: one table of what each is called, does, and whether it may interrupt work.

A line that looks like a command never reaches the model, also when there is no such command.
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
    ("Enter", "send; while the agent works: steer it at its next step"),
    ("Alt+Enter", "say it when the agent has nothing left to do"),
    ("Ctrl+J", "new line; so does \\ and Enter"),
    ("Esc, Ctrl+C", "stop the agent; what you were writing stays"),
    ("Ctrl+C twice", "leave; once, with nothing going on: empty the line"),
    ("Ctrl+D", "leave, on an empty line"),
    ("Ctrl+Z", "put gong aside; fg in the shell goes on"),
)
"""What keys do, as /help shows it."""


class Reply(NamedTuple):
    """What a command answers; the conversation ends with one that leaves."""

    text: str = ""
    failed: bool = False
    leaves: bool = False
    work: AsyncGenerator[Event, None] | None = None
    """What is to be done before the next prompt; words that come in meanwhile wait."""
    after: Callable[[], str] = lambda: ""
    """Says what came of that work."""


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command."""

    name: str
    argument: str
    """How its argument is written; empty for none."""
    about: str
    busy: bool
    """Whether it may be used while the agent works."""
    run: Callable[[Host, str], Reply]


def is_command(text: str) -> bool:
    """Tell whether a line is meant for us: `/x`, but not a path such as /etc/hosts."""
    return _COMMAND.match(text) is not None


def answer(text: str, host: Host, *, busy: bool, who: str = "the agent") -> Reply:
    """Run the command a line names; what goes wrong is a reply too. `who` is what is busy."""
    found = _COMMAND.match(text)
    assert found is not None, "only commands are answered here"
    command = COMMANDS.get(found["name"])
    if command is None:
        return Reply(_unknown(found["name"]), failed=True)
    if busy and not command.busy:
        return Reply(f"/{command.name} waits for {who}: stop it with Esc first", failed=True)
    if found["argument"] and not command.argument:
        return Reply(f"/{command.name} takes no argument", failed=True)
    try:
        return command.run(host, found["argument"] or "")
    except (GongError, TapeError, OSError) as error:
        return Reply(_in_chat(str(error)), failed=True)


def _in_chat(text: str) -> str:
    """Return an error with what to type here instead of flags of the command line."""
    for flag, command in _FLAGS.items():
        text = re.sub(rf"(?<!\S){flag}\b", command, text)
    return text


def _unknown(name: str) -> str:
    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists what there is"
    return f"unknown command /{name}: {hint} (begin with a blank to send it to the model)"


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
    return Reply(f"this is branch {branch} now; {old} stays as it is")


def _model(host: Host, name: str) -> Reply:
    if name:
        host.session.use_model(host.models.choose(name))
        return Reply(f"{model_name(host)} answers from the next prompt on")
    return Reply(f"{model_name(host)} answers; /model NAME takes another")


def model_name(host: Host) -> str:
    """Return provider/model of who answers the next prompt."""
    model = host.session.setup.model
    return f"{model.provider}/{model.id}"


def _compact(host: Host, focus: str) -> Reply:
    return Reply(work=host.session.compact(Wish("user", focus)))


def _undo(host: Host, leave: str) -> Reply:
    if leave not in {"", "--leave"}:
        return Reply("/undo takes no words but --leave", failed=True)
    anchor = host.session.undo(leave=bool(leave))
    return Reply(f"the {anchor.kind} is taken back: the next prompt has what it covered")


def _context(host: Host, _argument: str) -> Reply:
    session = host.session
    if session.recorder is None:
        return Reply("nothing was said yet")
    parts = session.parts()
    made = next_call(parts)
    used = meter(made.request, made.view, window=parts.model.window, size=measured(made))
    return Reply(text(used))


def _cost(host: Host, _argument: str) -> Reply:
    recorder = host.session.recorder
    if recorder is None:
        return Reply("nothing was said yet")
    entries = (entry for run in recorder.tape.runs(recorder.head()) for entry in run)
    return Reply("\n".join(usage_lines(spent(entries))))


def _handoff(host: Host, name: str) -> Reply:
    recorder = host.session.recorder
    if recorder is None:
        return Reply("nothing was said yet, so there is nothing to hand over", failed=True)
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
        Command("help", "", "this list", busy=True, run=_help),
        Command("model", "[NAME]", "who answers; NAME is provider/model", busy=True, run=_model),
        Command("context", "", "who uses the model's window", busy=True, run=_context),
        Command("cost", "", "tokens and money of this branch", busy=True, run=_cost),
        Command(
            "compact", "[FOCUS]", "a summary in place of older messages", busy=False, run=_compact
        ),
        Command("undo", "[--leave]", "take the newest compaction back", busy=False, run=_undo),
        Command("handoff", "[MODEL]", "hand over: an anchor and a page", busy=False, run=_handoff),
        Command("fork", "[NAME]", "go on in a new branch that begins here", busy=False, run=_fork),
        Command("quit", "", "leave", busy=True, run=_quit),
    )
}
"""Every command by its name, in the order of /help: to look, to make room, to part, to leave."""
