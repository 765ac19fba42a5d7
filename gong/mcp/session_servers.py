"""The servers of one session: started with its first prompt, their tools offered as they come.

    when                      what
    ------------------------  ---------------------------------------------------------------
    the first turn            all servers are started at once, and waited for: without a person
                              until each is ready or has failed, with one a few seconds
    every later turn          a server that became ready meanwhile joins; one that said that its
                              tools changed, or whose list is too old, is asked again
    a server fails            one warning; its tools stay, and a call starts it again
    the end of the session    all are ended

Tools are added in the order of the servers, each server's sorted by name, so that requests begin
alike; what joins later stands behind. A tool that its server no longer has is no longer offered.
"""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from tape.text import to_single_line

from ..env.local import build_child_variables
from ..errors import ConfigurationError, GongError
from ..project import locate_project
from ..tools.tool import AgentTool, AnyObject, ToolOutcome
from .servers import choose_tools, load_servers
from .tool_names import format_server_part, name_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    import mcp_types as types

    from ..env.sandbox.sandbox import Sandbox
    from ..env.variables import VariablePolicy, VariableRules
    from ..tools.registry import ToolRegistry
    from ..tools.tool import ToolContext
    from .connection import ServerConnection
    from .mentions import ServerDocument
    from .servers import ServerConfig

MISSING_EXTRA = "MCP servers need the package mcp: pip install 'gong[mcp]'"
_PERSON_WAITS_SECONDS = 5.0
"""How long the first prompt of a person waits for servers."""


def load_sdk() -> ModuleType:
    """Return `connection`, and with it the SDK; raises ConfigurationError without the extra."""
    if find_spec("mcp") is None:
        raise ConfigurationError(MISSING_EXTRA)
    return import_module(".connection", __package__)


class ServerTool(NamedTuple):
    """A tool of a server."""

    connection: ServerConnection
    tool: types.Tool


class SessionServers:
    """The servers of a session, as a source of its tools (`agent.setup.ToolSource`)."""

    def __init__(
        self,
        servers: Sequence[ServerConfig],
        *,
        folder: str,
        environ: Mapping[str, str],
        policy: VariablePolicy | VariableRules = "filter",
        patterns: Sequence[str] | None = None,
        version: str = "",
        sandbox: Sandbox | None = None,
    ) -> None:
        """Take the servers in their order; nothing is started, and later inside the `sandbox`.

        `patterns` has the names and patterns of the tools that are offered; None offers all.
        """
        self.servers = tuple(servers)
        self.connections: dict[str, ServerConnection] = {}
        """Those that were started once, by the server's name."""
        self.offered: dict[str, ServerTool] = {}
        """The tools that the session has, by the names it knows them under."""
        self._folder, self._environ, self._policy = folder, environ, policy
        self._wanted, self._version, self._sandbox = patterns, version, sandbox
        self._reported: set[str] = set()
        """The servers whose failure was told, until they are ready again; the remarks that were."""
        self._joined: dict[str, tuple[types.Tool, ...]] = {}
        """The lists of tools that were offered, by the server's name."""
        self._is_refused = False

    async def offer(self, tools: ToolRegistry, *, has_person: bool) -> list[str]:
        """Bring the tools of a session up to date; return what its person should know."""
        if not self.connections:
            # Start all servers, and wait for those that are soon there
            if self._is_refused or not self.servers:
                return []
            try:
                await self.connect()
            except ConfigurationError as error:
                self._is_refused = True
                return [str(error)]
            longest = max(server.startup_seconds for server in self.servers) + 1
            seconds = _PERSON_WAITS_SECONDS if has_person else longest
            await asyncio.gather(
                *(connection.wait(seconds) for connection in self.connections.values())
            )
            return self._join(tools)
        remarks: list[str] = []
        for connection in self.connections.values():
            if connection.state == "failed" and connection.server.name not in self._joined:
                connection.begin()  # its tools are not known yet: no call can start it
            try:
                await connection.refresh()
            except Exception as error:  # noqa: BLE001 - whatever a server does, the session goes on
                remarks.append(f"{connection.server.name}: {error}")
        return [*remarks, *self._join(tools)]

    async def read_mentions(self, prompt: str) -> tuple[list[ServerDocument], list[str]]:
        """Return what a prompt names of these servers (`mentions`), and what to warn of."""
        if "@" not in prompt and not prompt.startswith("/"):
            return [], []
        if find_spec("mcp") is None:
            return [], []  # `offer` says so
        from .mentions import find_parts, read_part  # the SDK takes a second

        parts = find_parts(prompt, [server.name for server in self.servers])
        if parts and not self.connections:
            await self.connect()
        documents: list[ServerDocument] = []
        remarks: list[str] = []
        for part in parts:
            try:
                documents += await read_part(part, self.connections[part.server])
            except GongError as error:
                remarks.append(str(error))
        return documents, remarks

    async def connect(self) -> None:
        """Start all servers in the background; raises ConfigurationError without the extra."""
        sdk = await asyncio.to_thread(load_sdk)  # it takes a second to import
        for server in self.servers:
            self.connections[server.name] = self._build_connection(sdk, server)
        for connection in self.connections.values():
            connection.begin()

    def _build_connection(self, sdk: ModuleType, server: ServerConfig) -> ServerConnection:
        transports = import_module(".transports", __package__)
        auth = None
        if server.kind != "stdio" and "authorization" not in {
            key.lower() for key in server.headers
        }:
            auth = import_module(".oauth", __package__).build_auth(server, self._environ)
        connection: ServerConnection = sdk.ServerConnection(
            server,
            folder=str(locate_project(self._folder)),
            variables=build_child_variables(self._environ, self._policy),
            log=transports.locate_log(server.name, self._environ),
            auth=auth,
            version=self._version,
            sandbox=self._sandbox if server.is_inside else None,
        )
        return connection

    def _join(self, tools: ToolRegistry) -> list[str]:
        """Offer what has become known, remove what is gone; return the failures not yet told."""
        remarks = []
        for name, connection in self.connections.items():
            if connection.state == "ready":
                self._reported.discard(name)
                if self._joined.get(name) != connection.tools:
                    self._replace_tools(tools, connection)
                remarks += self._report_left_out(connection)
            elif connection.state == "failed" and name not in self._reported:
                self._reported.add(name)
                log = f" (log: {connection.log})" if connection.server.kind == "stdio" else ""
                remarks.append(f"MCP server {name} is left out: {connection.error}{log}")
        missing = [tool for tool in self.offered if tools.get(tool) is None]
        for name in missing:  # another registry, as of another model
            self._add_tool(tools, name, self.offered[name])
        return remarks

    def _replace_tools(self, tools: ToolRegistry, connection: ServerConnection) -> None:
        """Offer the tools of a server, and no others of it."""
        own = {tool.name: tool for tool in connection.tools}
        names = name_tools(connection.server.name, choose_tools(connection.server, [*own]))
        names = {name: tool for name, tool in names.items() if self._is_wanted(name)}
        for name, known in [*self.offered.items()]:
            if known.connection is connection and name not in names:
                del self.offered[name]
                if tools.get(name) is not None:
                    tools.unregister(name)
        for name, tool in names.items():
            self.offered[name] = ServerTool(connection, own[tool])
            self._add_tool(tools, name, self.offered[name])
        self._joined[connection.server.name] = connection.tools

    def _report_left_out(self, connection: ServerConnection) -> list[str]:
        """Return what to say of tools that cannot be used, each once."""
        server = connection.server.name
        reports = [describe_left_out(server, "tool", *part) for part in connection.left_out]
        new = [report for report in reports if report not in self._reported]
        self._reported.update(new)
        return new

    def _is_wanted(self, name: str) -> bool:
        if self._wanted is None:
            return True
        patterns = (pattern.removeprefix("mcp__") for pattern in self._wanted)
        return any(
            fnmatchcase(name, pattern) or name.startswith(f"{pattern}__") for pattern in patterns
        )

    @staticmethod
    def _add_tool(tools: ToolRegistry, name: str, known: ServerTool) -> None:
        is_new = name not in tools.active
        tools.register(build_agent_tool(name, known.connection, known.tool))
        if is_new and name not in tools.active:
            tools.activate((name,))

    async def close(self) -> None:
        """End all servers."""
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))


def build_agent_tool(name: str, connection: ServerConnection, tool: types.Tool) -> AgentTool:
    """Return a server's tool for a session, its schema as providers take it."""
    adapted = connection.schemas[tool.name]
    return AgentTool(
        name=name,
        description=tool.description or tool.title or tool.name,
        arguments=AnyObject,
        run=partial(_run_tool, connection, tool.name, adapted.names),
        schema=adapted.schema,
        remark=describe_hints(connection.server.name, tool),
    )


async def _run_tool(
    connection: ServerConnection,
    tool: str,
    names: Mapping[str, str],
    arguments: AnyObject,
    context: ToolContext,
) -> ToolOutcome:
    own_arguments = {names.get(name, name): value for name, value in arguments.value.items()}
    return await connection.call(tool, own_arguments, context)


def describe_left_out(server: str, kind: str, name: str, why: str) -> str:
    """Return in one line which tool, resource or prompt of a server cannot be used, and why."""
    return to_single_line(f"MCP server {server}: the {kind} {name} is left out: {why}")


def describe_hints(server: str, tool: types.Tool) -> str:
    """Return what a server says of its tool, for questions; it allows nothing."""
    hints = tool.annotations
    if hints is None:
        return ""
    claims = []
    if hints.read_only_hint:
        claims.append("only reads")
    elif hints.destructive_hint:
        claims.append("may destroy")
    return f"the server {server} says that it {' and '.join(claims)}" if claims else ""


def load_session_servers(
    folder: str,
    environ: Mapping[str, str],
    policy: VariablePolicy | VariableRules,
    patterns: Sequence[str] | None,
    *,
    version: str,
    host_servers: Mapping[str, Any] | None = None,
    sandbox: Sandbox | None = None,
) -> tuple[SessionServers | None, tuple[str, ...]]:
    """Return the servers of a session, None without any, and what to warn of.

    `host_servers` is as for `load_servers`.
    """
    found_servers = load_servers(folder, environ, host_servers=host_servers)
    warnings = [*found_servers.warnings]
    by_part: dict[str, ServerConfig] = {}
    for server in found_servers.servers:
        part = format_server_part(server.name)
        if part in by_part:
            warnings.append(
                f"MCP server {server.name} is left out: its tools would be called {part}__…, as"
                f" those of {by_part[part].name}; rename one of them"
            )
            continue
        by_part[part] = server
    if not by_part:
        return None, tuple(warnings)
    servers = SessionServers(
        tuple(by_part.values()),
        folder=folder,
        environ=environ,
        policy=policy,
        patterns=patterns,
        version=version,
        sandbox=sandbox,
    )
    return servers, tuple(warnings)
