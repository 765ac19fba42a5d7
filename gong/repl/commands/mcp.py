"""`/mcp`: the MCP servers of a session: their states, their tools, and a new start of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .command import CommandReply, SlashCommand

if TYPE_CHECKING:
    from ...assembly.open_session import OpenSession
    from ...mcp.connection import ServerConnection


def _show_servers(host: OpenSession, name: str) -> CommandReply:
    """Show each server with its state and tools; with a name start that server again."""
    nothing = CommandReply("this session has no MCP servers; add one with gong mcp add")
    if not host.session.setup.sources:
        return nothing
    from ...mcp.session_servers import SessionServers  # only with sources

    sources = [
        source for source in host.session.setup.sources if isinstance(source, SessionServers)
    ]
    if not sources:
        return nothing
    connections: dict[str, ServerConnection] = {}
    waiting: list[str] = []
    for source in sources:
        connections |= source.connections
        waiting += [
            server.name for server in source.servers if server.name not in source.connections
        ]
    if not name:
        lines = [_describe_server(connection) for connection in connections.values()]
        lines += [f"{name}  starts with the next prompt" for name in waiting]
        return CommandReply("\n".join(lines))
    if name not in connections:
        there = ", ".join(connections) or "none that was started"
        return CommandReply(f"no MCP server is called {name}: there are {there}", failed=True)

    async def restart() -> CommandReply:
        connection = connections[name]
        await connection.restart()
        is_ready = await connection.wait(connection.server.startup_seconds + 1)
        return CommandReply(_describe_server(connection), failed=not is_ready)

    return CommandReply(f"{name} is started again", later=restart())


def is_server_prompt(text: str, host: OpenSession) -> bool:
    """Return whether a line names a prompt of a server: `/server:prompt`."""
    server, is_named, _ = text[1:].partition(":")
    if not is_named or not host.session.setup.sources:
        return False
    from ...mcp.session_servers import SessionServers  # only with sources

    sources = [
        source for source in host.session.setup.sources if isinstance(source, SessionServers)
    ]
    return any(server == configured.name for source in sources for configured in source.servers)


def _describe_server(connection: ServerConnection) -> str:
    tools = ", ".join(tool.name for tool in connection.tools)
    about = connection.error if connection.state == "failed" else tools
    return f"{connection.server.name}  {connection.state}  {about}".rstrip()


COMMANDS = (
    SlashCommand(
        "mcp",
        "[NAME]",
        "show the MCP servers; /mcp NAME starts one again",
        busy=True,
        run=_show_servers,
    ),
)
"""The commands of this module."""
