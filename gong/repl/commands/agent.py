"""Slash commands about the agent: model, effort, mode, window, cost, compaction, handoff, fork."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

from tape.context.view import view
from tape.model.entries import User, join_texts
from tape.text import format_count, shorten_to_width

from ...agent.compaction import CompactionRequest, plan_compaction
from ...agent.handoff import build_handoff_page, record_handoff
from ...context.agent_calls import list_tape_calls
from ...context.costs import Spend, render_token_usage, suggest_savings
from ...context.usage_report import measure_context_usage, render_context_usage
from ...llm.models import EffortChoice, fit_effort
from ...policy.approval import ModalPolicy
from ...policy.modes import PermissionMode
from ...tools.registry import TOOL_PRESETS
from ...tools.todo import render_todos
from .command import CommandReply, SlashCommand, format_model_name, undo_anchor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...agent.compaction import CompactionPlan
    from ...assembly.open_session import OpenSession

_PROMPT_COLUMNS = 70
_CLAUSE_END = re.compile(r"[.:;](?:\s|$)")
"""Where the first clause of a tool's description ends."""


def _switch_model(host: OpenSession, name: str) -> CommandReply:
    if name:
        host.session.use_model(host.models.choose(name))
        return CommandReply(f"current model: {format_model_name(host)}, from the next prompt on")
    return CommandReply(f"current model: {format_model_name(host)}; switch with /model NAME")


def _set_effort(host: OpenSession, effort_text: str) -> CommandReply:
    session = host.session
    choice = next(
        (effort_name for effort_name in get_args(EffortChoice) if effort_name == effort_text), None
    )
    if effort_text and choice is None:
        efforts = ", ".join(get_args(EffortChoice))
        return CommandReply(f"unknown effort {effort_text}: choose one of {efforts}", failed=True)
    if choice is not None:
        session.use_effort(choice)
    model, own = session.setup.model, session.setup.config.effort
    effort = own or model.effort or "none"
    fitted = fit_effort(effort, model.name, efforts=model.efforts, reasons=model.reasons)
    if effort_text:
        text = f"effort: {effort}, from the next call on"
    else:
        text = f"effort: {effort}{'' if own else ' (not set here)'}; set with /effort LEVEL"
    return CommandReply(f"{text}\n{fitted.remark}" if fitted.remark else text)


def _show_todos(host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(render_todos(host.session.todos) or "there is nothing on the todo list")


def _list_tasks(host: OpenSession, _argument: str) -> CommandReply:
    running = host.session.run_state.background.running
    rows = [f"{command.shell_id}  {command.command}" for command in running]
    return CommandReply("\n".join(rows) or "nothing runs in the background")


def _set_plan_mode(host: OpenSession, state: str) -> CommandReply:
    session = host.session
    if state == "on":
        session.use_permission("plan")
        return CommandReply("plan mode is on: nothing is changed until you approve a plan")
    if state == "off":
        mode = session.leave_plan_mode()
        return CommandReply(f"the permission mode is {mode} now" if mode else "plan mode is off")
    if state:
        return CommandReply("/plan takes no argument except on and off", failed=True)
    policy = session.setup.policy
    is_on = isinstance(policy, ModalPolicy) and policy.mode is PermissionMode.PLAN
    return CommandReply(
        "plan mode is on; /plan off ends it"
        if is_on
        else "plan mode is off; start it with /plan on"
    )


def _set_mode(host: OpenSession, name: str) -> CommandReply:
    session = host.session
    if name:
        session.use_permission(name)
        return CommandReply(f"permission mode: {session.permission}, from the next call on")
    modes = ", ".join(PermissionMode)
    return CommandReply(f"permission mode: {session.permission}; set with /mode NAME: {modes}")


def _choose_tools(host: OpenSession, names: str) -> CommandReply:
    session = host.session
    if names:
        session.use_tools(names.replace(",", " ").split())
        return CommandReply(
            f"tools: {', '.join(session.setup.tools.active)}, from the next call on"
        )
    rows = [
        (spec.name, _CLAUSE_END.split(spec.description, maxsplit=1)[0])
        for spec in session.setup.tools.specs()
    ]
    hint = f"/tools read,grep offers these; a preset is {', '.join(TOOL_PRESETS)}"
    width = max((len(name) for name, _ in rows), default=0)
    return CommandReply("\n".join((*(f"{name:<{width}}  {about}" for name, about in rows), hint)))


def _show_context(host: OpenSession, _argument: str) -> CommandReply:
    session = host.session
    if session.recorder is None:
        return CommandReply("the session is empty")
    prepared = session.build_run_context().prepare_next_call()
    recorder, model = session.recorder, session.setup.model
    used = measure_context_usage(
        prepared.request,
        view(recorder.path, recorder.kept),
        window=session.run_state.find_window(model),
        size=prepared.measure(),
        instructions=model.instructions.files,
    )
    return CommandReply(render_context_usage(used))


def _show_cost(host: OpenSession, _argument: str) -> CommandReply:
    recorder = host.session.recorder
    if recorder is None:
        return CommandReply("the session is empty")
    calls = list_tape_calls(recorder.tape, host.library.store.open)
    total = sum((call.spend for call in calls), Spend())
    hints = suggest_savings(calls, host.models.names.catalogue.list_models)
    lines = (*render_token_usage(total), *(f"Hint: {hint}" for hint in hints))
    return CommandReply("\n".join(lines))


def _ask_again(host: OpenSession, _argument: str) -> CommandReply:
    return CommandReply(work=host.session.retry(), work_name="")


def _compact_session(host: OpenSession, argument: str) -> CommandReply:
    """Compact, --hard without messages besides the summary; or --undo that, with --leave.

    --show says what would be replaced and kept, and does nothing.
    """
    flags: set[str] = set()
    known = ("--hard", "--show", "--undo", "--leave")
    focus = argument  # what is left after the flags
    while (word := focus.split(maxsplit=1)[:1]) and word[0] in known:
        flags.add(word[0])
        focus = focus[len(word[0]) :].lstrip()
    if "--undo" in flags:
        anchor = undo_anchor(host, ("compaction", "handoff"), leave="--leave" in flags)
        return CommandReply(
            f"{anchor.kind.capitalize()} undone: "
            "the next request contains the messages that it covered"
        )
    request = CompactionRequest("user", focus, hard="--hard" in flags)
    if "--show" in flags:
        if host.session.recorder is None:
            return CommandReply("the session is empty: there is nothing to compact", failed=True)
        plan = plan_compaction(host.session.setup, host.session.recorder, request)
        return CommandReply("\n".join(_describe_plan(plan)))
    return CommandReply(work=host.session.compact(request))


def _describe_plan(plan: CompactionPlan) -> Iterator[str]:
    """Yield what a compaction would do, with the prompts on both sides of the cut."""
    for heading, entries in (("replaced by a summary", plan.covered), ("kept", plan.kept)):
        prompts = [entry.data for entry in entries if isinstance(entry.data, User)]
        count = format_count(len(entries), "entry")
        yield f"{heading}: {count}, {format_count(len(prompts), 'prompt')}"
        for prompt in prompts:
            words = shorten_to_width(join_texts(prompt.content), _PROMPT_COLUMNS)
            yield f"  > {words or '(no words)'}"
    yield f"the next request: {plan.before:,} tokens now, {plan.at_least:,} and the summary then"


def _hand_off_session(host: OpenSession, name: str) -> CommandReply:
    recorder = host.session.recorder
    if recorder is None:
        return CommandReply("the session is empty: there is nothing to hand over", failed=True)
    to = host.models.names.resolve_name(name) if name else format_model_name(host)
    cwd = host.session.setup.env.working_directory
    return CommandReply(
        work=record_handoff(host.session, to),
        work_name="the handoff",
        after=lambda: build_handoff_page(recorder, to_model=to, cwd=cwd),
    )


def _fork_session(host: OpenSession, name: str) -> CommandReply:
    recorder = host.session.recorder
    old = recorder.branch if recorder else ""
    branch = host.session.fork(name or None)
    return CommandReply(f"Switched to new branch {branch}; {old} is unchanged")


COMMANDS = (
    SlashCommand(
        "model",
        "[NAME]",
        "show or switch the model; NAME is provider/model",
        busy=True,
        run=_switch_model,
    ),
    SlashCommand("todo", "", "show the todo list of the agent", busy=True, run=_show_todos),
    SlashCommand(
        "tasks", "", "list the commands that run in the background", busy=True, run=_list_tasks
    ),
    SlashCommand(
        "plan",
        "[on|off]",
        "plan first: nothing is changed until you approve a plan",
        busy=True,
        run=_set_plan_mode,
    ),
    SlashCommand("mode", "[NAME]", "show or set the permission mode", busy=True, run=_set_mode),
    SlashCommand(
        "tools",
        "[NAMES|PRESET]",
        "list the tools, or offer others: readonly, default",
        busy=True,
        run=_choose_tools,
    ),
    SlashCommand("context", "", "show context usage", busy=True, run=_show_context),
    SlashCommand(
        "retry",
        "",
        "ask the model again, after a failure or a stop",
        busy=False,
        run=_ask_again,
    ),
    SlashCommand(
        "cost",
        "",
        "show tokens and cost of this session, all its branches",
        busy=True,
        run=_show_cost,
    ),
    SlashCommand(
        "compact",
        "[FOCUS]",
        "replace older messages by a summary; --show, --undo",
        busy=False,
        run=_compact_session,
    ),
    SlashCommand(
        "handoff",
        "[MODEL]",
        "hand over: set an anchor, print a page",
        busy=False,
        run=_hand_off_session,
    ),
    SlashCommand(
        "fork", "[NAME]", "switch to a new branch that starts here", busy=False, run=_fork_session
    ),
    SlashCommand(
        "effort", "[LEVEL]", "show or set how hard the model thinks", busy=True, run=_set_effort
    ),
    SlashCommand("thinking", "[LEVEL]", "the same as /effort", busy=True, run=_set_effort),
    SlashCommand("usage", "", "the same as /cost", busy=True, run=_show_cost),
)
"""The commands of this module."""
