"""`gong mcp`: the MCP servers of this folder: add, list, try, log in, remove."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import Struct

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.errors import NotFound
from tape.text import to_single_line

from .. import __version__
from ..errors import ConfigurationError
from ..mcp.servers import (
    list_untrusted,
    load_servers,
    locate_scope_file,
    remove_server,
    save_server,
)
from ..mcp.session_servers import SessionServers, describe_left_out, load_sdk
from ..mcp.tool_names import name_tools
from ..project import locate_folder
from ..trust import read_project, trust_part
from .options import load_settings, print_warning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import mcp_types as types

    from ..mcp.servers import ServerConfig

Scope = Literal["user", "project"]
_NOTHING_EXIT = 3


class ListedServer(Struct, frozen=True):
    """One server as `gong mcp list --json` prints it; values of variables are not shown."""

    name: str
    type: str
    scope: str
    runs: str
    """The command line or the address."""
    env: tuple[str, ...]
    """Names of the variables it gets."""
    headers: tuple[str, ...]
    """Names of the headers it gets."""
    source: str
    trusted: bool


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
        "gong mcp add docs --url https://example.org/mcp --header 'Authorization: Bearer ${TOKEN}'",
        "gong mcp test files",
    ),
)
def mcp() -> None:
    """Add, list and test the MCP servers of this folder, whose tools sessions offer."""


@mcp.command("add")
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARGS]...]")
@click.option("--url", metavar="URL", help="The address of a server that runs elsewhere.")
@click.option(
    "--transport", type=click.Choice(["http", "sse"]), default="http", help="The protocol of URL."
)
@click.option("--env", "-e", multiple=True, metavar="K=V", help="A variable for its process.")
@click.option("--header", "-H", multiple=True, metavar="K:V", help="A header of each request.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Whether all your sessions get it, or everybody in this project (.mcp.json).",
)
def add(
    name: str,
    command: tuple[str, ...],
    url: str | None,
    transport: str,
    env: tuple[str, ...],
    header: tuple[str, ...],
    scope: Scope,
) -> None:
    """Add a server that COMMAND runs, or that URL reaches; one of that name is replaced.

    ${NAME} and ${NAME:-default} in any value are variables, so that no secret has to be
    written.
    """
    if bool(command) == bool(url):
        raise click.UsageError("give either -- COMMAND or --url")
    entry: dict[str, Any]
    if command:
        entry = {"type": "stdio", "command": command[0], "args": [*command[1:]]}
        if env:
            entry["env"] = dict(_split_pair(pair, "=", "--env") for pair in env)
    else:
        entry = {"type": transport, "url": url}
        if header:
            pairs = (_split_pair(pair, ":" if ":" in pair else "=", "--header") for pair in header)
            entry["headers"] = dict(pairs)
    folder = locate_folder()
    file = locate_scope_file(scope, folder, os.environ)
    is_own = scope == "project" and _is_trusted_part(folder, file)
    save_server(file, name, entry)
    if is_own:  # whoever adds a server knows what it runs
        trust_part(folder, file.name, os.environ)
    print_lines([f"added {name} to {file}"])
    if scope == "project" and not is_own:
        print_warning(f"{file} is not trusted, so it has no effect: gong trust shows and allows it")


def _split_pair(text: str, separator: str, option: str) -> tuple[str, str]:
    key, mark, value = text.partition(separator)
    if not (mark and key.strip()):
        raise click.UsageError(f"{option} {text}: write KEY{separator}VALUE")
    return key.strip(), value.strip() if separator == ":" else value


def _is_trusted_part(folder: str, file: Path) -> bool:
    """Return whether a file of the project takes effect, or is not there yet."""
    parts = {part.path: part for part in read_project(folder, os.environ).parts}
    known = parts.get(file.name)
    return known.state == "trusted" if known is not None else not file.exists()


@mcp.command("list")
@as_json
def list_servers(as_json: bool) -> None:
    """List the servers of this folder.

    --json prints [{name, type, scope, runs, env, headers, source, trusted}].
    """
    folder = locate_folder()
    servers = load_servers(folder, os.environ)
    for warning in servers.warnings:
        print_warning(warning)
    untrusted = list_untrusted(folder, os.environ)
    listed = [_describe_server(server, trusted=True) for server in servers.servers]
    listed += [_describe_server(server, trusted=False) for server in untrusted]
    if as_json:
        print_json(listed)
        return
    if not listed:
        print_lines(["no MCP servers are configured for this folder"])
        return
    rows = [
        (
            server.name,
            server.type,
            server.scope if server.trusted else "untrusted",
            to_single_line(server.runs),
        )
        for server in listed
    ]
    print_lines(format_table(rows, headings=("NAME", "TYPE", "SCOPE", "RUNS"), optional=("TYPE",)))
    if untrusted:
        print_warning(
            "servers that are not trusted are not started: gong trust shows and allows it"
        )


def _describe_server(server: ServerConfig, *, trusted: bool) -> ListedServer:
    runs = shlex.join((server.command, *server.args)) if server.kind == "stdio" else server.url
    env, headers = tuple(server.env), tuple(server.headers)
    parts = (server.name, server.kind, server.scope, runs, env, headers, server.source)
    return ListedServer(*parts, trusted)


@mcp.command("test")
@click.argument("name")
@as_json
def test_server(name: str, as_json: bool) -> None:
    """Start the server NAME, show what it offers, and end it. Exit code 1 if it fails.

    A tool, resource or prompt that cannot be used is named in a warning. --json prints one object:
    name, protocol, server, instructions, resources, prompts, the tools as the server sent them, in
    names what models call each tool, and what the server does, in left_out {kind, name, why} of
    what cannot be used.
    """
    server = _find_server(name)
    try:
        tried = asyncio.run(_try_server(server))
    except BaseExceptionGroup as group:  # of the SDK's tasks: the first one says it
        raise group.exceptions[0] from None
    for row in tried["left_out"]:
        print_warning(describe_left_out(name, row["kind"], row["name"], row["why"]))
    if as_json:
        print_json(tried)
        return
    about = tried["server"] or {}
    who = " ".join(str(about[key]) for key in ("name", "version") if about.get(key))
    print_lines([f"{name}: {who or 'ready'}, protocol {tried['protocol']}"])
    for offered, tool in tried["names"].items():
        hint = next(row for row in tried["tools"] if row["name"] == tool)
        print_lines([f"  {offered}  {to_single_line(hint.get('description') or '')[:90]}".rstrip()])
    counts = ((len(tried["resources"]), "resources"), (len(tried["prompts"]), "prompts"))
    print_lines([f"  {number} {what}" for number, what in counts if number])


def _find_server(name: str) -> ServerConfig:
    """Return a server of this folder; raises NotFound, ConfigurationError if it cannot be used."""
    folder = locate_folder()
    servers = load_servers(folder, os.environ)
    server = next((server for server in servers.servers if server.name == name), None)
    if server is not None:
        return server
    if any(server.name == name for server in list_untrusted(folder, os.environ)):
        raise ConfigurationError(f"{name} is of a file that is not trusted: gong trust shows it")
    warnings = "; ".join(warning for warning in servers.warnings if f"server {name}" in warning)
    there = ", ".join(server.name for server in servers.servers) or "none"
    if warnings:
        raise ConfigurationError(warnings)
    raise NotFound(f"no MCP server is called {name}: there are {there}")


async def _try_server(server: ServerConfig) -> dict[str, Any]:
    """Start one server and return what it offers."""
    settings, folder, sandbox = load_settings(), locate_folder(), None
    if settings.border.mode != "off":
        from ..assembly.border import open_border  # only where one is asked for

        sandbox = open_border(settings, folder, os.environ, (), print_warning)
    servers = SessionServers(
        [server],
        folder=folder,
        environ=os.environ,
        policy=settings.variable_rules,
        version=__version__,
        sandbox=sandbox,
    )
    if sandbox is not None:
        await sandbox.start()
    try:
        await servers.connect()
        connection = servers.connections[server.name]
        client = await connection.ensure()
        tools = [_encode_value(tool) for tool in connection.tools]
        resources, prompts = await connection.list_resources(), await connection.list_prompts()
        left_out = (
            *(("tool", member) for member in connection.left_out),
            *(("resource", member) for member in connection.list_refused("resources")),
            *(("prompt", member) for member in connection.list_refused("prompts")),
        )
        return {
            "name": server.name,
            "protocol": client.protocol_version,
            "server": None if client.server_info is None else _encode_value(client.server_info),
            "instructions": client.instructions or "",
            "tools": tools,
            "names": name_tools(server.name, [tool["name"] for tool in tools]),
            "resources": [_encode_value(resource) for resource in resources],
            "prompts": [_encode_value(prompt) for prompt in prompts],
            "left_out": [
                {"kind": kind, "name": member.name, "why": member.why} for kind, member in left_out
            ],
        }
    finally:
        await servers.close()
        if sandbox is not None:
            sandbox.close()


def _encode_value(
    value: types.Tool | types.Implementation | types.Resource | types.Prompt,
) -> dict[str, Any]:
    """Return a value of the SDK as the server sent it."""
    dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return dumped


@mcp.command("login")
@click.argument("name")
def log_in(name: str) -> None:
    """Log in at the server NAME with a browser; its tokens are kept with the API keys.

    The address to open is printed. The browser comes back to a port of this machine.
    """
    server = _find_server(name)
    if server.kind == "stdio":
        raise ConfigurationError(f"{name} is a process of this machine: it needs no login")
    load_sdk()
    from ..mcp.oauth import fetch_tokens  # needs the SDK

    tools = asyncio.run(fetch_tokens(server, os.environ, _send_to_browser))
    print_lines([f"logged in at {name}: {tools} tools"])


def _send_to_browser(address: str) -> None:
    print_lines([f"open this address to log in: {address}"])
    click.launch(address)


@mcp.command("logout")
@click.argument("name")
def log_out(name: str) -> None:
    """Forget the tokens of the server NAME. Exit code 3 if there are none."""
    server = _find_server(name)
    load_sdk()
    from ..mcp.oauth import TokenStore  # needs the SDK

    if not TokenStore(server, os.environ).forget():
        raise SystemExit(_NOTHING_EXIT)
    print_lines([f"forgot the login at {name}"])


@mcp.command("remove")
@click.argument("name")
@click.option(
    "--scope", type=click.Choice(["user", "project"]), help="Only from this scope's file."
)
def remove(name: str, scope: Scope | None) -> None:
    """Remove the server NAME from the files that name it."""
    folder = locate_folder()
    scopes: Sequence[Scope] = (scope,) if scope else ("user", "project")
    removed = []
    for file_scope in scopes:
        file = locate_scope_file(file_scope, folder, os.environ)
        is_own = file_scope == "project" and _is_trusted_part(folder, file)
        if remove_server(file, name):
            removed.append(file)
            if is_own and read_project(folder, os.environ).parts:
                trust_part(folder, file.name, os.environ)
    if not removed:
        raise NotFound(f"no MCP server is called {name} in your files: gong mcp list")
    print_lines([f"removed {name} from {file}" for file in removed])
