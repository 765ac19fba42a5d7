"""`gong hooks`: the hooks for this folder, and what each answers to a sample."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.text import to_single_line

from ..hooks.claude import EVENTS, OWN_NAMES
from ..hooks.command_hook import CommandHook
from ..hooks.dispatcher import HookDispatcher, HookFailure
from ..hooks.hook import HookCall, HookSession
from ..hooks.sources import ConfiguredHook, load_hooks
from ..project import locate_folder
from .options import load_settings, print_warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FAILED_EXIT = 1


class ListedHook(Struct, frozen=True):
    """One hook as `gong hooks list --json` prints it."""

    event: str
    matcher: str
    runs: str
    source: str
    trust: str
    active: bool


class TestedHook(Struct, frozen=True, omit_defaults=True):
    """One hook as `gong hooks test --json` prints it."""

    hook: str
    outcome: str
    """answered, failed, not asked or not trusted."""
    decision: str = ""
    reason: str = ""
    changed: dict[str, Any] = {}
    context: str = ""
    message: str = ""
    stop: str = ""
    error: str = ""


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong hooks list", 'gong hooks test PreToolUse --tool bash --args \'{"command": "ls"}\''
    ),
)
def hooks() -> None:
    """List the hooks of this folder, or run them on a sample."""


@hooks.command("list")
@as_json
def list_hooks(as_json: bool) -> None:
    """List all hooks for this folder in the order in which they are asked.

    --json prints [{event, matcher, runs, source, trust, active}]; trust is user, trusted, refused
    or new.
    """
    configured = _load_configured()
    if as_json:
        print_json(
            [
                ListedHook(
                    hook.event, hook.matcher, hook.runs, hook.source, hook.trust, hook.is_active
                )
                for hook in configured
            ]
        )
        return
    if not configured:
        print_lines(["no hooks are configured for this folder"])
        return
    rows = [
        (hook.trust, hook.event, hook.matcher or "*", to_single_line(hook.runs), hook.source)
        for hook in configured
    ]
    headings = ("TRUST", "EVENT", "MATCHER", "RUNS", "FROM")
    print_lines(format_table(rows, headings=headings, optional=("FROM", "MATCHER")))
    if not all(hook.is_active for hook in configured):
        print_warning("hooks that are not trusted do not run: gong trust shows and allows them")


@hooks.command("test")
@click.argument("event")
@click.option("--tool", default="bash", show_default=True, help="The tool that is called.")
@click.option("--args", "arguments", metavar="JSON", help="Its arguments, as a JSON object.")
@as_json
def test_hooks(event: str, tool: str, arguments: str | None, as_json: bool) -> None:
    """Run the hooks of EVENT on a sample and show what each answers; no tool runs.

    EVENT is a name such as PreToolUse. Exit code 1 if a hook fails. --json prints [{hook, outcome,
    decision, reason, changed, context, message, stop, error}] without empty fields.
    """
    name = OWN_NAMES.get(event, event)
    if name not in EVENTS:
        near = get_close_matches(name, EVENTS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EVENTS)}"
        raise click.UsageError(f"unknown hook event {event}: {hint}")
    call = _build_sample(name, tool, _parse_arguments(tool, arguments))
    matching = [
        configured for configured in _load_configured() if configured.hook.wants(call.point)
    ]
    with _enter_sandbox(matching):
        tested = asyncio.run(_try_hooks(matching, call))
    if as_json:
        print_json(tested)
    elif not tested:
        print_lines([f"no hook is configured for {name}"])
    else:
        print_lines(line for result in tested for line in _render_answer(result))
    sys.exit(_FAILED_EXIT if any(result.outcome == "failed" for result in tested) else 0)


@contextmanager
def _enter_sandbox(hooks: Sequence[ConfiguredHook]) -> Iterator[None]:
    """Let hooks of a project run in the sandbox that a session would have."""
    settings = load_settings()
    theirs = [
        configured.hook
        for configured in hooks
        if isinstance(configured.hook, CommandHook) and configured.hook.rule.is_of_project
    ]
    if settings.border.mode == "off" or not theirs:
        yield
        return
    from ..assembly.border import open_border  # only where one is asked for

    sandbox = open_border(settings, locate_folder(), os.environ, (), print_warning)
    for hook in theirs:
        hook.sandbox = sandbox
    try:
        yield
    finally:
        if sandbox is not None:
            sandbox.close()


def _load_configured() -> list[ConfiguredHook]:
    settings = load_settings()
    folder = locate_folder()
    hooks = load_hooks(folder, os.environ, settings.hooks, settings.variable_rules)
    for warning in hooks.warnings:
        print_warning(warning)
    return hooks.configured


def _parse_arguments(tool: str, arguments: str | None) -> dict[str, Any]:
    if arguments is None:
        return {"command": "true"} if tool.lower() in {"bash", "shell"} else {}
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise click.UsageError(f"--args is not a JSON object: {error}") from error


def _build_sample(event: str, tool: str, args: dict[str, Any]) -> HookCall:
    """Return the question that an event asks, with made-up values for all that is not given."""
    point = EVENTS[event].point
    is_error = event == "PostToolUseFailure"
    samples: dict[str, dict[str, Any]] = {
        "tool_call": {"tool": tool, "args": args, "call_id": "c_sample"},
        "permission": {"tool": tool, "args": args, "call_id": "c_sample", "suggestions": []},
        "tool_result": {
            "tool": tool,
            "args": args,
            "call_id": "c_sample",
            "duration_ms": 1,
            "result": {"content": "sample output", "is_error": is_error, "details": {}},
        },
        "input": {"text": "a sample prompt", "images": []},
        "session_start": {"source": "startup"},
        "stop": {"text": "a sample answer", "active": False},
        "session_op": {"op": "compact", "meta": {"trigger": "manual", "focus": ""}},
        "after_compact": {"trigger": "manual", "compact_summary": "a sample summary"},
        "notification": {"message": "a sample", "notification_type": "permission_prompt"},
        "setup": {"trigger": "init"},
        "session_end": {"reason": "other"},
    }
    agent = "sample" if event.startswith("Subagent") else ""
    facts = HookSession(locate_folder(), agent_id=agent, agent_type=agent)
    return HookCall(point, samples[point], facts)


async def _try_hooks(hooks: Sequence[ConfiguredHook], call: HookCall) -> list[TestedHook]:
    tested = []
    for configured in hooks:
        name = configured.hook.name
        if not configured.is_active:
            tested.append(TestedHook(name, "not trusted"))
        elif not configured.hook.handles(call):
            tested.append(TestedHook(name, "not asked"))
        else:
            tested.append(await _try_hook(configured, call))
    return tested


async def _try_hook(configured: ConfiguredHook, call: HookCall) -> TestedHook:
    failures: list[HookFailure] = []
    asking = HookDispatcher([configured.hook], failures.append)
    outcome = await asking.ask(call.point, call.value, call.facts)
    changed = {key: value for key, value in outcome.value.items() if value != call.value[key]}
    return TestedHook(
        hook=configured.hook.name,
        outcome="failed" if failures else "answered",
        decision=outcome.decision,
        reason=outcome.reason,
        changed=changed,
        context="\n".join(outcome.contexts),
        message="\n".join(outcome.messages),
        stop=outcome.stop or "",
        error=failures[0].error if failures else "",
    )


def _render_answer(result: TestedHook) -> Iterator[str]:
    """Yield the lines for one hook: its name and what became of it, then each part of it."""
    yield f"{to_single_line(result.hook)}: {result.outcome}"
    for field in ("decision", "reason", "context", "message", "stop", "error"):
        if text := getattr(result, field):
            yield f"  {field:<8}  {to_single_line(text)}"
    if result.changed:
        yield f"  changed   {to_single_line(msgspec.json.encode(result.changed).decode())}"
