"""An MCP server of tools that ask the store, over stdio or HTTP on the loopback.

The tools are those of `agent_tools`, and given: this room knows the protocol only. The SDK is an
extra and imported here only. Tools run one at a time, in the order of the calls: they are plain
functions, and each is soon over.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..errors import TapeError, UsageError
from ..version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import mcp_types as types
    from mcp.server.lowlevel import Server

_INSTRUCTIONS = (
    "The recorded sessions of coding agents on this machine. Use search to find what was said or"
    " done, then show or log with the ref of a match; blame says why a line of a file is there."
)

_LIST_TTL_MS = 3_600_000
"""The tools never change while a server runs."""


def require_sdk() -> None:
    """Raise UsageError where the extra is not installed."""
    if find_spec("mcp") is None:
        raise UsageError("tape mcp needs the package mcp: pip install 'gong[mcp]'")


class ServedTool(NamedTuple):
    """A tool as a client sees it, and what runs it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    writes: bool
    run: Callable[[dict[str, Any]], tuple[msgspec.Struct, str]]
    """Returns the answer to a call's arguments as a value and as text; raises TapeError."""


def build_server(served: Iterable[ServedTool]) -> Server[Any]:
    """Return a server of these tools."""
    import mcp_types as types  # an extra
    from mcp.server.caching import CacheHint
    from mcp.server.lowlevel import Server

    tools = {tool.name: tool for tool in served}
    listed = types.ListToolsResult(tools=[_describe_tool(tool) for tool in tools.values()])

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return listed

    async def call_tool(
        _context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return answer_call(tools, params.name, params.arguments or {})

    return Server(
        "tape",
        version=__version__,
        title="Recorded sessions",
        instructions=_INSTRUCTIONS,
        cache_hints={"tools/list": CacheHint(ttl_ms=_LIST_TTL_MS, scope="public")},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _describe_tool(tool: ServedTool) -> types.Tool:
    import mcp_types as types  # an extra

    hints = types.ToolAnnotations(
        read_only_hint=not tool.writes,
        destructive_hint=False,
        idempotent_hint=not tool.writes,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=hints,
    )


def answer_call(
    tools: dict[str, ServedTool], name: str, arguments: dict[str, Any]
) -> types.CallToolResult:
    """Run a tool; what it raises is a result that a model can act on.

    Raises the SDK's error for a tool that is not there.
    """
    import mcp_types as types  # an extra
    from mcp.shared.exceptions import MCPError

    tool = tools.get(name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}; there are {', '.join(tools)}")
    try:
        value, text = tool.run(arguments)
    except (TapeError, OSError) as error:
        content = types.TextContent(type="text", text=str(error))
        return types.CallToolResult(content=[content], is_error=True)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=msgspec.to_builtins(value),
    )


def serve_stdio(server: Server[Any]) -> None:
    """Serve on standard input and output until the client closes them.

    Raises OSError when an answer cannot be written, as on a full disk.
    """
    import anyio  # comes with the extra
    from mcp.server.stdio import stdio_server  # an extra

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    try:
        anyio.run(serve)
    except BaseExceptionGroup as group:  # of the tasks that read and write
        failure = _find_os_error(group)
        if failure is None:
            raise
        if not isinstance(failure, ConnectionError):
            raise failure from None


def _find_os_error(error: BaseException) -> OSError | None:
    """Return the first OSError of a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_find_os_error, error.exceptions)), None)
    return error if isinstance(error, OSError) else None


def serve_http(server: Server[Any], port: int, report: Callable[[str], None]) -> None:
    """Serve on a port of the loopback address, 0 for a free one, until a signal ends it.

    `report` is called with the address once it is served. Raises OSError where the port is taken.
    """
    import anyio  # comes with the extra
    import uvicorn

    app = server.streamable_http_app(host="127.0.0.1")
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
    with config.bind_socket() as bound:
        bound.listen(config.backlog)  # whoever reads the address may connect
        port = bound.getsockname()[1]

        async def serve() -> None:
            report(f"http://127.0.0.1:{port}/mcp")
            await uvicorn.Server(config).serve([bound])

        anyio.run(serve)
