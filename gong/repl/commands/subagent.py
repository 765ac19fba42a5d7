"""Slash commands about sub-agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.text import format_count

from .command import CommandReply, SlashCommand

if TYPE_CHECKING:
    from ...assembly.open_session import OpenSession
    from ...subagents.manager import SubagentManager


def _list_agents(host: OpenSession, argument: str) -> CommandReply:
    agents = host.session.find_agents()
    if agents is None:
        return CommandReply("no sub-agents can be started here")
    word, _, name = argument.partition(" ")
    if word == "stop" and name.strip():
        return CommandReply(later=_stop_agent(agents, name.strip()))
    if argument:
        return CommandReply("/agents takes no argument except stop ID", failed=True)
    rows = [
        f"{agent.id}  {agent.plan.kind.name}  {agent.status},"
        f" {format_count(agent.turns, 'model call')},"
        f" {agent.usage.total:,} tokens: {agent.title}"
        for agent in agents.by_id.values()
    ]
    types = [f"{kind.name}: {kind.summary}" for kind in agents.types.types.values()]
    return CommandReply("\n".join((*rows, *[""] * bool(rows), *types)))


async def _stop_agent(agents: SubagentManager, name: str) -> CommandReply:
    """End a sub-agent, and say how it stands; raises ConfigurationError for an unknown one."""
    report = await agents.finish(name)
    return CommandReply(f"{report.agent} is {report.status}")


COMMANDS = (
    SlashCommand(
        "agents",
        "[stop ID]",
        "list sub-agents and their types; end one",
        busy=True,
        run=_list_agents,
    ),
)
"""The commands of this module."""
