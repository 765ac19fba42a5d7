"""`mcp`: serve the store to agents that speak the Model Context Protocol."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from .environment import get_current_folder
from .output import format_examples
from .resolve import open_library
from .terminal import print_lines

if TYPE_CHECKING:
    from .group import GlobalOptions


@click.command(
    epilog=format_examples(
        "tape mcp --write",
        "tape mcp --http 8000",
    )
)
@click.option("--write", is_flag=True, help="Also serve append, label and fork.")
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve on this port of the loopback address instead; 0 chooses one.",
)
@click.pass_obj
def mcp(options: GlobalOptions, write: bool, port: int | None) -> None:
    """Serve the recorded sessions to any agent, as an MCP server on standard input and output.

    Its tools are search, log, show, context, blame and files; they only read. A REF without a tape
    means the newest session of the folder in which this is started. Needs gong[mcp].
    """
    from ..tools.agent_tools import TOOLS, AgentLibrary, build_schema  # for this command
    from ..tools.mcp_server import (  # an extra, for this command only
        ServedTool,
        build_server,
        require_sdk,
        serve_http,
        serve_stdio,
    )

    require_sdk()
    with open_library(options) as library:
        served = AgentLibrary(library, get_current_folder())
        server = build_server(
            ServedTool(
                tool.name,
                tool.description,
                input_schema=build_schema(tool.arguments),
                output_schema=build_schema(tool.answer),
                writes=tool.writes,
                run=partial(tool.call, served),
            )
            for tool in TOOLS
            if write or not tool.writes
        )
        if port is None:
            serve_stdio(server)
        else:
            serve_http(server, port, lambda address: print_lines([f"serving {address}"]))
