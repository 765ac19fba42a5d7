"""/workflow: the workflows of the store, and how one stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.errors import NotFound

from .commands import CommandReply, add_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..agent.opening import OpenSession
    from ..workflow.record import Workflow


@add_command("workflow", "[ID]", "list workflows, or show the tasks of one", busy=True)
def _show_workflows(host: OpenSession, argument: str) -> CommandReply:
    from ..workflow.report import draw_graph  # noqa: PLC0415 (few sessions use workflows)

    if not argument:
        rows = [_describe_workflow(one) for one in _read_workflows(host, "")]
        begin = 'gong workflow "REQUIREMENT" begins one'
        return CommandReply("\n".join(rows) or f"there are no workflows: {begin}")
    found = next(_read_workflows(host, argument), None)
    if found is None:
        return CommandReply(f"no workflow is called {argument}; /workflow lists them", failed=True)
    graph = draw_graph(found.plan, found.states)
    return CommandReply("\n".join((_describe_workflow(found), *graph)))


def _read_workflows(host: OpenSession, prefix: str) -> Iterator[Workflow]:
    """Return the workflows whose id begins so, the newest first; without those not begun."""
    from ..workflow.record import list_workflow_ids, read_workflow  # noqa: PLC0415 (as above)

    for identity in list_workflow_ids(host.library):
        if not identity.startswith(prefix):
            continue
        with host.library.store.open(identity) as tape:
            try:
                yield read_workflow(identity, tape.entries(tape.head("main")))
            except NotFound:
                continue


def _describe_workflow(one: Workflow) -> str:
    completed = sum(state.status == "completed" for state in one.states.values())
    return f"{one.id[:8]}  {one.status} {completed}/{len(one.states)}  {one.requirement}"
