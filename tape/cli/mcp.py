"""`mcp`: serve the store to agents that speak the Model Context Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .output import format_examples
from .resolve import get_current_folder, open_library
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
    from ..mcp_server import (  # noqa: PLC0415 (an extra, for this command only)
        build_server,
        require_sdk,
        serve_http,
        serve_stdio,
    )

    require_sdk()
    with open_library(options) as library:
        server = build_server(library, get_current_folder(), writes=write)
        if port is None:
            serve_stdio(server)
        else:
            serve_http(server, port, lambda address: print_lines([f"serving {address}"]))
