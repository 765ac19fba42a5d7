"""/workflow: plan one, run it beside the conversation, see how it stands, stop it.

A workflow runs as a process of its own, which continues when the conversation ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tape.errors import NotFound
from tape.own_program import build_own_words

from ...env.wrappers import find_folder_here
from .command import CommandReply, SlashCommand
from .program import build_program_variables, refuse_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...assembly.open_session import OpenSession
    from ...workflow.record import Workflow

_PLAN_SECONDS = 900
_VERBS = ("run", "cancel")


def _answer_workflow(host: OpenSession, argument: str) -> CommandReply:
    first, _, rest = argument.partition(" ")
    if not argument:
        rows = [_describe_workflow(workflow) for workflow in _read_workflows(host, "")]
        begin = "/workflow REQUIREMENT plans one"
        return CommandReply("\n".join(rows) or f"there are no workflows: {begin}")
    if rest and first != "cancel":
        refuse_elsewhere(host, "workflow")
    if rest and first not in _VERBS:
        return CommandReply(later=_plan_workflow(host, argument))
    name = rest.strip() or first
    workflow = next(_read_workflows(host, name), None)
    if workflow is None:
        return CommandReply(f"no workflow is called {name}; /workflow lists them", failed=True)
    if rest:
        return CommandReply(later=_run_workflow(host, first, workflow.id))
    return CommandReply(_draw_workflow(workflow))


async def _plan_workflow(host: OpenSession, requirement: str) -> CommandReply:
    """Let the manager plan, as `gong workflow --plan-only` does, and show the plan."""
    model = host.session.setup.model.name
    words = ("start", "--plan-only", "--model", model, "--", requirement)
    process = await _start_program(host, words, output=asyncio.subprocess.PIPE)
    try:
        _, errors = await asyncio.wait_for(process.communicate(), _PLAN_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return CommandReply(f"there is no plan after {_PLAN_SECONDS} s", failed=True)
    if process.returncode:
        return CommandReply(errors.decode("utf-8", "replace").strip(), failed=True)
    workflow = next(_read_workflows(host, ""))
    return CommandReply(
        f"{_draw_workflow(workflow)}\n/workflow run {workflow.id[:8]} carries it out"
    )


async def _run_workflow(host: OpenSession, verb: str, workflow: str) -> CommandReply:
    """Let a workflow run as a process of its own, or stop it."""
    if verb == "cancel":
        process = await _start_program(host, ("cancel", workflow), output=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        return CommandReply(output.decode("utf-8", "replace").strip())
    process = await _start_program(host, ("resume", workflow), output=asyncio.subprocess.DEVNULL)
    name = workflow[:8]
    return CommandReply(
        f"workflow {name} runs: /workflow {name} shows how it stands, /workflow cancel {name}"
        " stops it"
    )


async def _start_program(
    host: OpenSession, words: tuple[str, ...], *, output: int
) -> asyncio.subprocess.Process:
    """Start `gong workflow`; it does not end with the conversation."""
    return await asyncio.create_subprocess_exec(
        *build_own_words("gong", "workflow", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=find_folder_here(host.session.setup.env),
        env=build_program_variables(host),
        start_new_session=True,
    )


def _read_workflows(host: OpenSession, prefix: str) -> Iterator[Workflow]:
    """Return the workflows whose id begins so, the newest first; without those not begun."""
    from ...workflow.record import (  # few sessions use workflows
        list_workflow_ids,
        read_workflow,
    )

    for identity in list_workflow_ids(host.library):
        if not identity.startswith(prefix):
            continue
        with host.library.store.open(identity) as tape:
            try:
                yield read_workflow(identity, tape.entries(tape.head("main")))
            except NotFound:
                continue


def _draw_workflow(workflow: Workflow) -> str:
    from ...workflow.report import draw_graph  # few sessions use workflows

    return "\n".join((_describe_workflow(workflow), *draw_graph(workflow.plan, workflow.states)))


def _describe_workflow(workflow: Workflow) -> str:
    completed = sum(state.status == "completed" for state in workflow.states.values())
    progress = f"{workflow.status} {completed}/{len(workflow.states)}"
    return f"{workflow.id[:8]}  {progress}  {workflow.requirement}"


COMMANDS = (
    SlashCommand(
        "workflow",
        "[ID|run ID|cancel ID|REQUIREMENT]",
        "plan, run, show or stop workflows",
        busy=True,
        run=_answer_workflow,
    ),
)
"""The commands of this module."""
