"""Slash commands: one table of names, functions, and whether each may run while the agent works.

A line that looks like a command is never sent to the model, even if there is no such command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import TapeError

from ..agent.compaction import CompactionRequest
from ..agent.handoff import build_handoff_page, record_handoff
from ..agent.loop import measure_request, prepare_next_call
from ..context.costs import render_token_usage, sum_spend
from ..context.usage_report import measure_context_usage, render_context_usage
from ..errors import GongError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from ..agent.events import Event
    from ..agent.opening import OpenSession

_COMMAND_LINE = re.compile(r"/(?P<name>[^\s/]*)(?:\s+(?P<argument>.*?))?\s*\Z", re.DOTALL)
_FLAG_COMMANDS = {"-m": "/model", "--leave": "/undo --leave"}

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


class CommandReply(NamedTuple):
    """The result of a command; `leaves` ends the conversation."""

    text: str = ""
    failed: bool = False
    leaves: bool = False
    work: AsyncGenerator[Event, None] | None = None
    """Work to run before the next prompt; input that arrives meanwhile is queued."""
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
    run: Callable[[OpenSession, str], CommandReply]


def is_command(text: str) -> bool:
    """Return whether a line is a command: `/x`, but not a path such as /etc/hosts."""
    return _COMMAND_LINE.match(text) is not None


def answer_command(
    text: str, host: OpenSession, *, busy: bool, who: str = "the agent"
) -> CommandReply:
    """Run the command on a line; an error is a reply too. `who` names what is busy."""
    found = _COMMAND_LINE.match(text)
    assert found is not None, "the line is a command"
    command = COMMANDS.get(found["name"])
    if command is None:
        return CommandReply(_explain_unknown(found["name"]), failed=True)
    if busy and not command.busy:
        return CommandReply(
            f"/{command.name} has to wait for {who}: stop it with Esc first", failed=True
        )
    if found["argument"] and not command.argument:
        return CommandReply(f"/{command.name} takes no argument", failed=True)
    try:
        return command.run(host, found["argument"] or "")
    except (GongError, TapeError, OSError) as error:
        return CommandReply(_translate_flags(str(error)), failed=True)


def _translate_flags(text: str) -> str:
    """Return the text of an error, with slash commands in place of command-line flags."""
    for flag, command in _FLAG_COMMANDS.items():
        text = re.sub(rf"(?<!\S){flag}\b", command, text)
    return text


def _explain_unknown(name: str) -> str:
    near = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean /{near[0]}?" if near else "/help lists all commands"
    return f"unknown command /{name}: {hint} (start with a space to send it to the model)"


def _show_help(_host: OpenSession, _argument: str) -> CommandReply:
    commands = [_render_help_row(command) for command in COMMANDS.values()]
    keys = [f"{key:<20}{about}" for key, about in KEYS]
    return CommandReply("\n".join([*commands, "* also while the agent works", "", *keys]))


def _render_help_row(command: SlashCommand) -> str:
    usage = f"/{command.name} {command.argument}".rstrip()
    return f"{usage:<18}{'*' if command.busy else ' '} {command.about}"


def _fork_session(host: OpenSession, name: str) -> CommandReply:
    recorder = host.session.recorder
    old = recorder.branch if recorder else ""
    branch = host.session.fork(name or None)
    return CommandReply(f"Switched to new branch {branch}; {old} is unchanged")


def _switch_model(host: OpenSession, name: str) -> CommandReply:
    if name:
        host.session.use_model(host.models.choose(name))
        return CommandReply(f"current model: {format_model_name(host)}, from the next prompt on")
    return CommandReply(f"current model: {format_model_name(host)}; switch with /model NAME")


def format_model_name(host: OpenSession) -> str:
    """Return provider/model of the current model."""
    model = host.session.setup.model
    return f"{model.provider}/{model.id}"


def _compact_session(host: OpenSession, focus: str) -> CommandReply:
    return CommandReply(work=host.session.compact(CompactionRequest("user", focus)))


def _undo_anchor(host: OpenSession, leave: str) -> CommandReply:
    if leave not in {"", "--leave"}:
        return CommandReply("/undo takes no argument except --leave", failed=True)
    anchor = host.session.undo(leave=bool(leave))
    return CommandReply(
        f"{anchor.kind.capitalize()} undone: the next request contains the messages that it covered"
    )


def _show_context(host: OpenSession, _argument: str) -> CommandReply:
    session = host.session
    if session.recorder is None:
        return CommandReply("the session is empty")
    made = prepare_next_call(session.build_run_context())
    used = measure_context_usage(
        made.request, made.view, window=session.setup.model.window, size=measure_request(made)
    )
    return CommandReply(render_context_usage(used))


def _show_cost(host: OpenSession, _argument: str) -> CommandReply:
    recorder = host.session.recorder
    if recorder is None:
        return CommandReply("the session is empty")
    entries = (entry for run in recorder.tape.read_runs(recorder.head()) for entry in run)
    return CommandReply("\n".join(render_token_usage(sum_spend(entries))))


def _hand_off_session(host: OpenSession, name: str) -> CommandReply:
    recorder = host.session.recorder
    if recorder is None:
        return CommandReply("the session is empty: there is nothing to hand over", failed=True)
    to = host.models.names.resolve_name(name) if name else format_model_name(host)
    cwd = host.session.setup.env.working_directory
    return CommandReply(
        work=record_handoff(host.session, to),
        after=lambda: build_handoff_page(recorder, to_model=to, cwd=cwd),
    )


def _quit_chat(_host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(leaves=True)


COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("help", "", "show this list", busy=True, run=_show_help),
        SlashCommand(
            "model",
            "[NAME]",
            "show or switch the model; NAME is provider/model",
            busy=True,
            run=_switch_model,
        ),
        SlashCommand("context", "", "show context usage", busy=True, run=_show_context),
        SlashCommand("cost", "", "show tokens and cost of this branch", busy=True, run=_show_cost),
        SlashCommand(
            "compact",
            "[FOCUS]",
            "replace older messages by a summary",
            busy=False,
            run=_compact_session,
        ),
        SlashCommand(
            "undo", "[--leave]", "undo the newest compaction", busy=False, run=_undo_anchor
        ),
        SlashCommand(
            "handoff",
            "[MODEL]",
            "hand over: set an anchor, print a page",
            busy=False,
            run=_hand_off_session,
        ),
        SlashCommand(
            "fork",
            "[NAME]",
            "switch to a new branch that starts here",
            busy=False,
            run=_fork_session,
        ),
        SlashCommand("quit", "", "leave", busy=True, run=_quit_chat),
    )
}
"""Every command by its name, in the order of /help."""
