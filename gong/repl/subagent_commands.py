"""Slash commands about sub-agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .commands import CommandReply, add_command

if TYPE_CHECKING:
    from ..agent.opening import OpenSession


@add_command("agents", "", "list the types of sub-agents, and those that were started", busy=True)
def _list_agents(host: OpenSession, _argument: str) -> CommandReply:
    agents = host.session.find_agents()
    if agents is None:
        return CommandReply("no sub-agents can be started here")
    rows = [
        f"{one.id}  {one.plan.kind.name}  {one.status}, {one.turns} model calls,"
        f" {one.usage.total:,} tokens: {one.title}"
        for one in agents.by_id.values()
    ]
    types = [f"{one.name}: {one.summary}" for one in agents.types.types.values()]
    return CommandReply("\n".join((*rows, *[""] * bool(rows), *types)))
