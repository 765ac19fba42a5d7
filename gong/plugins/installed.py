"""The installed plugins and what they bring; every path is inside the root of its plugin.

They are in `plugins` beside config.toml, one folder each. Installing one is the user's yes to it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import ConfigurationError
from ..private_files import locate_config_file
from ..trust import describe_skill
from .manifest import PluginManifest, read_manifest, read_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = "plugins"
_ROOT_VARIABLES = ("${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin in a folder."""

    root: Path
    """Its folder, links resolved."""
    manifest: PluginManifest

    @property
    def name(self) -> str:
        """Its name."""
        return self.manifest.name

    def list_folders(self, key: str) -> list[Path]:
        """Return its folders of skills, commands or agents: the usual one, and those it names.

        Raises ConfigurationError for a path that leads out of the plugin.
        """
        given = self.manifest.fields.get(key) if self.manifest.kind == "claude" else None
        names = given if isinstance(given, list) else [given]
        paths = [key, *(one for one in names if isinstance(one, str))]
        found = (resolve_inside(self.root, one) for one in paths)
        return [*dict.fromkeys(one for one in found if one.is_dir())]

    def read_hooks(self) -> tuple[str, bytes] | None:
        """Return the source of its hooks and their JSON, with the root filled in; None without."""
        given = self.manifest.fields.get("hooks") if self.manifest.kind == "claude" else None
        if isinstance(given, dict):
            return f"{self.root}: hooks", self._fill_root(msgspec.json.encode(given))
        name = given if isinstance(given, str) else "hooks/hooks.json"
        file = resolve_inside(self.root, name)
        if not file.is_file():
            return None
        with suppress(OSError):
            return str(file), self._fill_root(file.read_bytes())
        return None

    def read_servers(self) -> dict[str, dict[str, Any]]:
        """Return its MCP servers by name. Raises ConfigurationError for what is wrong with one."""
        given = self.manifest.fields.get("mcpServers") if self.manifest.kind == "claude" else None
        if isinstance(given, dict):
            table = given
        else:
            usual = "mcp.json" if self.manifest.kind == "standard" else ".mcp.json"
            file = resolve_inside(self.root, given if isinstance(given, str) else usual)
            if not file.is_file():
                return {}
            value = read_object(file)
            table = value.get("mcpServers", value.get("servers", {}))
        if not isinstance(table, dict) or not all(isinstance(one, dict) for one in table.values()):
            raise ConfigurationError(f"plugin {self.name}: mcpServers is not an object of objects")
        return {name: self._read_server(name, entry) for name, entry in table.items()}

    def _read_server(self, name: str, entry: dict[str, Any]) -> dict[str, Any]:
        if self.manifest.kind == "standard" and not isinstance(entry.get("type"), str):
            raise ConfigurationError(f"plugin {self.name}: server {name} has no type")
        server = msgspec.json.decode(self._fill_root(msgspec.json.encode(entry)), type=dict)
        for key in ("command", "cwd"):
            if isinstance(path := server.get(key), str) and path.startswith("./"):
                server[key] = str(resolve_inside(self.root, path))
        if isinstance(arguments := server.get("args"), list):
            server["args"] = [
                str(resolve_inside(self.root, one))
                if isinstance(one, str) and one.startswith("./")
                else one
                for one in arguments
            ]
        return server

    def _fill_root(self, content: bytes) -> bytes:
        """Return JSON with the plugin's folder in place of its variables."""
        inside = msgspec.json.encode(str(self.root))[1:-1]
        for variable in _ROOT_VARIABLES:
            content = content.replace(variable.encode(), inside)
        return content

    def describe_runs(self) -> Iterator[str]:
        """Yield what would run, in lines: hooks, servers, and skills with commands or grants."""
        if (hooks := self.read_hooks()) is not None:
            for command in _find_commands(hooks[1]):
                yield f"hook: {command}"
        for name, server in self.read_servers().items():
            words = [server.get("command") or server.get("url") or "", *server.get("args", ())]
            yield f"MCP server {name}: {' '.join(map(str, words))}"
        for kind in ("skills", "commands"):
            for folder in self.list_folders(kind):
                pattern = "*/SKILL.md" if kind == "skills" else "**/*.md"
                for file in sorted(folder.glob(pattern)):
                    if ": " in (text := describe_skill(folder, file, is_command=kind != "skills")):
                        yield f"skill {text}"


def resolve_inside(root: Path, path: str) -> Path:
    """Return a path of a plugin, links resolved; ConfigurationError where it leads out of it."""
    found = (root / path).resolve()
    if not found.is_relative_to(root.resolve()):
        raise ConfigurationError(f"{path} leads out of the plugin {root}")
    return found


def open_plugin(root: Path) -> Plugin:
    """Return the plugin in a folder; ConfigurationError if it is none, or a link leads out."""
    root = root.resolve()
    manifest = read_manifest(root)
    for at, folders, files in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            path = Path(at, name)
            if path.is_symlink():
                resolve_inside(root, str(path.relative_to(root)))
    return Plugin(root, manifest)


def locate_plugins(environ: Mapping[str, str]) -> Path:
    """Return the folder of installed plugins, which need not exist."""
    return locate_config_file(environ).with_name(FOLDER)


def list_plugins(environ: Mapping[str, str]) -> tuple[list[Plugin], list[str]]:
    """Return the installed plugins by name, and warnings of those that cannot be used."""
    found: list[Plugin] = []
    warnings: list[str] = []
    folder = locate_plugins(environ)
    for root in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not root.is_dir() or root.name.startswith("."):
            continue
        try:
            plugin = open_plugin(root)
            for kind in ("skills", "commands", "agents"):
                plugin.list_folders(kind)
            plugin.read_hooks()
            plugin.read_servers()
        except ConfigurationError as error:
            warnings.append(f"plugin {root.name} is not used: {error}")
            continue
        found.append(plugin)
    return found, warnings


def list_agent_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of agent files that installed plugins bring."""
    return [one for plugin in list_plugins(environ)[0] for one in plugin.list_folders("agents")]


def load_server_tables(environ: Mapping[str, str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the MCP servers of installed plugins: source, such as `plugin:x` → name → table."""
    plugins, _ = list_plugins(environ)
    return {f"plugin:{one.name}": table for one in plugins if (table := one.read_servers())}


def _find_commands(content: bytes) -> Iterator[str]:
    """Yield the commands that the JSON of hooks names."""
    try:
        waiting = [msgspec.json.decode(content)]
    except (msgspec.DecodeError, UnicodeError):
        return
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, dict):
            command = value.get("command") or value.get("url")
            if isinstance(command, str):
                yield " ".join([command, *map(str, value.get("args") or ())])
            waiting = [*value.values(), *waiting]
        elif isinstance(value, list):
            waiting = [*value, *waiting]
