"""Which MCP servers a session has: the files that name them, and how one entry is read.

    file                            scope     takes effect
    ------------------------------  --------  ----------------------------------------------
    mcp.json beside config.toml     user      always
    .mcp.json of the project        project   as it was trusted (gong.trust)
    .gong/mcp.json of the project   project   as it was trusted
    named by an editor              host      always

Of several entries of one name the last counts. Both keys `mcpServers` and `servers` are read, and
`mcpServers` is written. `${NAME}` and `${NAME:-default}` are variables in every text; a
default may have variables in it.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from msgspec import Struct

from ..errors import ConfigurationError
from ..private_files import locate_config_file, write_private_file
from ..project import locate_project
from ..trust import read_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

TransportKind = Literal["stdio", "http", "sse"]
Scope = Literal["user", "project", "plugin", "host"]

USER_FILE = "mcp.json"
"""The user's servers, beside config.toml."""
PROJECT_FILE = ".mcp.json"
"""The file of a project that `gong mcp add` writes."""
_KEYS = ("servers", "mcpServers")
_KINDS: dict[str, TransportKind] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "remote": "http",
    "sse": "sse",
}
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-|\})")
"""The beginning of a variable: up to its end, or to its default."""
_BRACE = re.compile(r"\$\{|\}")
STARTUP_SECONDS, CALL_SECONDS = 30.0, 600.0


class OAuthClient(Struct, frozen=True, omit_defaults=True):
    """A client that was registered at the server's authority beforehand."""

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""


class ServerConfig(Struct, frozen=True, omit_defaults=True):
    """One server: how it is reached, with variables replaced."""

    name: str
    kind: TransportKind
    source: str
    """The file that names it."""
    scope: Scope = "user"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    """Where its process runs; absolute, or empty for the project's folder."""
    url: str = ""
    headers: dict[str, str] = {}
    oauth: OAuthClient = OAuthClient()
    startup_seconds: float = STARTUP_SECONDS
    call_seconds: float = CALL_SECONDS
    is_inside: bool = True
    """Whether its process runs in the session's sandbox; only the user's own may be outside."""
    only: tuple[str, ...] = ()
    """Its tools that are offered; empty for all."""
    without: tuple[str, ...] = ()
    """Its tools that are not offered."""

    @property
    def runs(self) -> str:
        """The command line or the address, for people; headers and variables are not shown."""
        return " ".join((self.command, *self.args)) if self.kind == "stdio" else self.url


class FoundServers(Struct, frozen=True):
    """The servers of a folder in their order, and what was wrong with the others."""

    servers: tuple[ServerConfig, ...] = ()
    warnings: tuple[str, ...] = ()


def locate_user_file(environ: Mapping[str, str]) -> Path:
    """Return the file of the user's servers, which need not exist."""
    return locate_config_file(environ).with_name(USER_FILE)


def load_servers(
    folder: str, environ: Mapping[str, str], host_servers: Mapping[str, Any] | None = None
) -> FoundServers:
    """Return the servers for a folder: the user's, plugins', the project's, then the host's.

    `host_servers` has what the host names, by the server's name. Nothing is started. A file that
    cannot be read, and an entry that names no server, are warned of and left out.
    """
    by_name: dict[str, ServerConfig] = {}
    warnings: list[str] = []
    root = locate_project(folder)
    named: tuple[str, Scope, Mapping[str, Any]] = ("the host", "host", host_servers or {})
    tables = _read_tables(folder, environ, warnings.append)
    for source, scope, table in chain(tables, [named]):
        for name, entry in table.items():
            by_name.pop(name, None)  # the last one of a name has its place, too
            try:
                server = read_server(name, entry, source, scope, environ, root)
            except ConfigurationError as error:
                warnings.append(str(error))
                continue
            if server is not None:
                by_name[name] = server
    return FoundServers(tuple(by_name.values()), tuple(warnings))


def _read_tables(
    folder: str,
    environ: Mapping[str, str],
    warn: Callable[[str], None],
) -> Iterator[tuple[str, Scope, Mapping[str, Any]]]:
    """Yield source, scope and entries of every file that may take effect."""
    user = locate_user_file(environ)
    try:
        yield str(user), "user", parse_table(user.read_bytes(), str(user))
    except FileNotFoundError:
        pass
    except OSError as error:
        warn(f"{user} cannot be read: {error.strerror}")
    except ConfigurationError as error:
        warn(str(error))
    if user.with_name("plugins").is_dir():
        from ..plugins.installed import load_server_tables  # only with plugins

        for source, table in load_server_tables(environ).items():
            yield source, "plugin", dict(table)
    project = read_project(folder, environ)
    for part in project.parts:
        if part.kind == "mcp" and part.state == "trusted":
            source = str(project.root / part.path)
            try:
                yield source, "project", parse_table(part.content, source)
            except ConfigurationError as error:
                warn(str(error))


def parse_table(content: bytes, source: str) -> dict[str, Any]:
    """Return the entries of a file by the server's name; raises ConfigurationError."""
    try:
        value = json.loads(content.decode("utf-8-sig")) if content.strip() else {}
    except ValueError as error:
        raise ConfigurationError(f"{source} is not JSON: {error}") from error
    if not _is_object(value):
        raise ConfigurationError(f"{source} is not a JSON object: see gong mcp add")
    merged: dict[str, Any] = {}
    for key in _KEYS:
        table = value.get(key, {})
        if not _is_object(table):
            raise ConfigurationError(f"{source}: {key} is not an object of servers by their name")
        merged |= table
    return merged


def read_server(
    name: str,
    entry: Any,
    source: str,
    scope: Scope,
    environ: Mapping[str, str],
    root: Path,
) -> ServerConfig | None:
    """Return the server of an entry; None if it is switched off. Raises ConfigurationError.

    A relative `cwd` starts at `root`, the top of the project.
    """
    where = f"{source}: server {name}"
    if not _is_object(entry):
        raise ConfigurationError(f"{where} is not an object")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return None
    entry = expand_variables(entry, environ, where)
    url = next((entry[key] for key in ("url", "httpUrl", "serverUrl") if entry.get(key)), "")
    command, args = entry.get("command", ""), entry.get("args", [])
    if isinstance(command, list):
        command, args = (command[0] if command else ""), [*command[1:], *args]
    named = entry.get("type", entry.get("transport", "http" if url else "stdio"))
    kind = _KINDS.get(str(named).lower())
    if kind is None:
        raise ConfigurationError(f"{where}: type {named} is not one of stdio, http, sse")
    if not (command if kind == "stdio" else url):
        need = "a command" if kind == "stdio" else "a url"
        raise ConfigurationError(f"{where} has no {need[2:]}: a server of type {kind} needs {need}")
    strings = {"command": command, "url": url, "cwd": entry.get("cwd") or ""}
    for key, value in strings.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"{where}: {key} is not a text")
    oauth = entry.get("oauth") if _is_object(entry.get("oauth")) else {}
    return ServerConfig(
        name=name,
        kind=kind,
        source=source,
        scope=scope,
        command=command,
        args=_read_texts(args, where, "args"),
        env=_read_text_table(entry.get("env"), where, "env"),
        cwd=os.path.normpath(root / Path(strings["cwd"]).expanduser()) if strings["cwd"] else "",
        url=url,
        headers=_read_text_table(entry.get("headers"), where, "headers"),
        oauth=OAuthClient(
            *(str(oauth.get(key) or "") for key in ("clientId", "clientSecret", "scope"))
        ),
        startup_seconds=_read_seconds(entry, ("startup_timeout_sec", 1), default=STARTUP_SECONDS),
        call_seconds=_read_seconds(
            entry, ("tool_timeout_sec", 1), ("timeout", 1000), default=CALL_SECONDS
        ),
        is_inside=not (entry.get("sandbox") is False and scope in {"user", "host"}),
        only=_read_texts(entry.get("enabled_tools", entry.get("includeTools")), where, "tools"),
        without=_read_texts(entry.get("disabled_tools", entry.get("excludeTools")), where, "tools"),
    )


def expand_variables(value: Any, environ: Mapping[str, str], where: str) -> Any:
    """Return a JSON value with variables in its texts replaced.

    Raises ConfigurationError for a variable that is not set and has no default.
    """
    if isinstance(value, str):
        return _expand_text(value, environ, where)
    if isinstance(value, list):
        return [expand_variables(item, environ, where) for item in value]
    if isinstance(value, dict):
        return {key: expand_variables(item, environ, where) for key, item in value.items()}
    return value


def _expand_text(text: str, environ: Mapping[str, str], where: str) -> str:
    """Return a text with its variables replaced, and those in a default that is used."""
    parts: list[str] = []
    at = 0
    while (match := _VARIABLE.search(text, at)) is not None:
        end, default = match.end(), None
        if match[2] != "}":
            end = _find_end(text, match.end())
            if end < 0:
                break  # no variable: its end is missing
            default = text[match.end() : end - 1]
        set_value = environ.get(match[1])
        if not set_value and default is not None:
            set_value = _expand_text(default, environ, where)
        if set_value is None:
            name = match[1]
            raise ConfigurationError(
                f"{where}: the variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        parts += text[at : match.start()], set_value
        at = end
    return "".join((*parts, text[at:]))


def _find_end(text: str, start: int) -> int:
    """Return where a default ends, behind its brace; -1 where it does not."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "${" else -1
        if depth == 0:
            return brace.end()
    return -1


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _read_texts(value: Any, where: str, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or any(isinstance(item, list | dict) for item in value):
        raise ConfigurationError(f"{where}: {key} is not a list of texts")
    return tuple(map(_to_text, value))


def _read_text_table(value: Any, where: str, key: str) -> dict[str, str]:
    if value is None:
        return {}
    if not _is_object(value) or any(isinstance(item, list | dict) for item in value.values()):
        raise ConfigurationError(f"{where}: {key} is not an object of texts")
    return {name: _to_text(item) for name, item in value.items() if item is not None}


def _to_text(value: Any) -> str:
    """Return a JSON number or truth value as it was written."""
    return value if isinstance(value, str) else json.dumps(value)


def _read_seconds(entry: Mapping[str, Any], *names: tuple[str, float], default: float) -> float:
    """Return a time of an entry in seconds; each name comes with its units in a second."""
    for name, units in names:
        number = entry.get(name)
        if isinstance(number, int | float) and not isinstance(number, bool) and number > 0:
            return number / units
    return default


def locate_scope_file(
    scope: Literal["user", "project"], folder: str, environ: Mapping[str, str]
) -> Path:
    """Return the file that servers of a scope are written to."""
    return locate_user_file(environ) if scope == "user" else locate_project(folder) / PROJECT_FILE


def save_server(file: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Write the entry of a server into a file, in place of one of that name; the rest stays.

    Raises ConfigurationError where the file is not what it should be, or cannot be written.
    """
    document = _read_document(file)
    if name in document.get("servers", {}):
        document["servers"].pop(name)
    document.setdefault("mcpServers", {})[name] = dict(entry)
    _write_document(file, document)


def remove_server(file: Path, name: str) -> bool:
    """Remove the entry of a server from a file; False if it has none. Raises as `save_server`."""
    document = _read_document(file)
    removed = [document[key].pop(name) for key in _KEYS if name in document.get(key, {})]
    if removed:
        _write_document(file, document)
    return bool(removed)


def _read_document(file: Path) -> dict[str, Any]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    parse_table(content, str(file))
    document: dict[str, Any] = json.loads(content.decode("utf-8-sig")) if content.strip() else {}
    return document


def _write_document(file: Path, document: Mapping[str, Any]) -> None:
    """Replace a file; a new one, or one of the user's, is readable by its owner only."""
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        mode = file.stat().st_mode & 0o777 if file.exists() else None
        write_private_file(Path(os.path.realpath(file)), text.encode())
        if mode is not None:
            file.chmod(mode)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error


def choose_tools(server: ServerConfig, names: Sequence[str]) -> list[str]:
    """Return which of a server's tools are offered."""
    return [
        name
        for name in names
        if (not server.only or name in server.only) and name not in server.without
    ]


def list_untrusted(folder: str, environ: Mapping[str, str]) -> tuple[ServerConfig, ...]:
    """Return the servers that the project of a folder names, and that do not take effect."""
    project = read_project(folder, environ)
    untrusted = []
    for part in project.list_untrusted("mcp"):
        source = str(project.root / part.path)
        with suppress(ConfigurationError):
            for name, entry in parse_table(part.content, source).items():
                with suppress(ConfigurationError):
                    server = read_server(name, entry, source, "project", environ, project.root)
                    untrusted += [server] if server is not None else []
    return tuple(untrusted)
