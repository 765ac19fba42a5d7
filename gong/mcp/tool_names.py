"""Names under which the tools of servers are offered: `server__tool`.

Providers take at most 64 letters, digits, `_` and `-`, and a name must not begin with a digit.
What has to be changed for that gets the beginning of a hash, so that no two tools share a name:

    server       tool            name
    -----------  --------------  ---------------------------------
    github       create_pr       github__create_pr
    my files     read.text       my_files__read_text_1e7b0c52
    mcp          x               mcp-server__x

A server's part has no `__` and no `_` at its ends, so that a rule about one server never covers a
tool of another one; and it is not `mcp`, which begins the names in rules.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHARS = 64
_SERVER_CHARS = 24
"""What a server's part is cut to where the whole is too long."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_HASH_CHARS = 8


def format_server_part(server: str) -> str:
    """Return the part of a tool's name that says whose it is."""
    part = re.sub("_{2,}", "_", _FOREIGN.sub("_", server)).strip("_")
    if not part or part.lower() == "mcp":
        part = f"{part or 'mcp'}-server"
    return f"s{part}" if part[0].isdigit() or part[0] == "-" else part


def build_tool_name(server: str, tool: str) -> str:
    """Return the name of a server's tool for models and rules."""
    part, own = format_server_part(server), _FOREIGN.sub("_", tool)
    name = f"{part}__{own}"
    if own == tool and len(name) <= MAX_CHARS:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_HASH_CHARS]
    room = MAX_CHARS - _HASH_CHARS - 1
    if len(name) > room:
        name = f"{part[:_SERVER_CHARS].strip('_')}__{own}"[:room]
    return f"{name}_{digest}"


def name_tools(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Return the tools of a server by the names they are offered under, sorted by them."""
    return dict(sorted((build_tool_name(server, tool), tool) for tool in tools))
