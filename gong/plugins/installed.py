"""The installed plugins and what they bring; every path is inside the root of its plugin.

They are in `plugins` beside config.toml, one folder each. Installing one is the user's yes to it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..errors import ConfigurationError
from ..front_matter import parse_front_matter
from ..private_files import locate_config_file
from ..trust import describe_skill_runs
from .manifest import PluginManifest, read_manifest, read_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PartKind = Literal["skills", "commands", "agents"]

FOLDER = "plugins"
SKILL_FILE = "SKILL.md"
_PARTS: tuple[PartKind, ...] = ("skills", "commands", "agents")
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

    @property
    def is_empty(self) -> bool:
        """Whether it brings nothing."""
        parts = any(self.list_files(kind) for kind in _PARTS)
        return not (parts or self.read_hooks() or self.read_servers())

    def list_places(self, key: PartKind) -> list[Path]:
        """Return where its skills, commands or agents are: the usual folder, and what it names.

        What it names are folders, or files of one each. Raises ConfigurationError for a path that
        leads out of the plugin.
        """
        places = [source for source in self._list_sources(key, key) if isinstance(source, Path)]
        if key != "skills":
            return places
        usual = self.root / key
        if not places and (self.root / SKILL_FILE).is_file():
            places = [self.root]
        return [
            file if place != usual and (file := place / SKILL_FILE).is_file() else place
            for place in places
        ]

    def read_hooks(self) -> list[tuple[str, bytes]]:
        """Return its hooks, each with their source and JSON, in which the root is filled in."""
        hooks = []
        for source in self._list_sources("hooks", "hooks/hooks.json"):
            if isinstance(source, dict):
                hooks.append((f"{self.root}: hooks", self._fill_root(msgspec.json.encode(source))))
            elif source.is_file():
                with suppress(OSError):
                    hooks.append((str(source), self._fill_root(source.read_bytes())))
        return hooks

    def read_servers(self) -> dict[str, dict[str, Any]]:
        """Return its MCP servers by name. Raises ConfigurationError for what is wrong with one."""
        usual = "mcp.json" if self.manifest.kind == "standard" else ".mcp.json"
        servers: dict[str, Any] = {}
        for source in self._list_sources("mcpServers", usual):
            table = (
                source
                if isinstance(source, dict)
                else read_object(source)
                if source.is_file()
                else {}
            )
            inner = table.get("mcpServers", table.get("servers"))
            if inner is None:  # a published file may be the table itself
                inner = {} if self.manifest.kind == "standard" else table
            if not isinstance(inner, dict) or not all(isinstance(x, dict) for x in inner.values()):
                raise ConfigurationError(
                    f"plugin {self.name}: mcpServers is not an object of objects"
                )
            servers |= inner
        return {name: self._read_server(name, entry) for name, entry in servers.items()}

    def _list_sources(self, key: str, usual: str) -> list[Path | dict[str, Any]]:
        """Return what there is of a part: the usual path, and the paths and objects it names.

        Of a plugin that is a part of its marketplace's folder only what it names counts.
        """
        rows = self._list_named(key)
        if not rows or self.manifest.fields.get("strict") is not False:
            rows = [usual, *rows]
        sources: list[Path | dict[str, Any]] = []
        for row in rows:
            if isinstance(row, dict):
                sources.append(row)
            elif isinstance(row, str) and (path := resolve_inside(self.root, row)) not in sources:
                sources += [path] if path.exists() else []
        return sources

    def _list_named(self, key: str) -> list[Any]:
        value = self.manifest.fields.get(key) if self.manifest.kind == "claude" else None
        return [item for item in (value if isinstance(value, list) else [value]) if item]

    def _read_server(self, name: str, entry: dict[str, Any]) -> dict[str, Any]:
        if self.manifest.kind == "standard" and not isinstance(entry.get("type"), str):
            raise ConfigurationError(f"plugin {self.name}: server {name} has no type")
        server = msgspec.json.decode(self._fill_root(msgspec.json.encode(entry)), type=dict)
        for key in ("command", "cwd"):
            if isinstance(path := server.get(key), str) and path.startswith("./"):
                server[key] = str(resolve_inside(self.root, path))
        if isinstance(arguments := server.get("args"), list):
            server["args"] = [
                str(resolve_inside(self.root, argument))
                if isinstance(argument, str) and argument.startswith("./")
                else argument
                for argument in arguments
            ]
        return server

    def _fill_root(self, content: bytes) -> bytes:
        """Return JSON with the plugin's folder in place of its variables."""
        inside = msgspec.json.encode(str(self.root))[1:-1]
        for variable in _ROOT_VARIABLES:
            content = content.replace(variable.encode(), inside)
        return content

    def list_warnings(self) -> Iterator[str]:
        """Yield what its manifest says without effect, and which of its files are not YAML."""
        yield from self.manifest.warnings
        for key in (*_PARTS, "hooks", "mcpServers"):
            for path in self._list_named(key):
                if isinstance(path, str) and not resolve_inside(self.root, path).exists():
                    yield f"{key}: {path} is not there"
                elif isinstance(path, dict) and key == "commands":
                    names = ", ".join(path)
                    yield f"commands: no content, and no source that is there, for {names}"
        for kind in _PARTS:
            for file, _ in self.list_files(kind):
                with suppress(OSError):
                    text = file.read_bytes().decode("utf-8", "replace")
                    if (warning := parse_front_matter(text).warning) is not None:
                        yield f"{file.relative_to(self.root)}: {warning}"

    def list_files(self, kind: PartKind) -> list[tuple[Path, str]]:
        """Return its files of a kind, each once, with the name that it gives."""
        files = (part for place in self.list_places(kind) for part in list_part_files(place, kind))
        return [*{file: (file, name) for file, name in files}.values()]

    def describe_runs(self) -> Iterator[str]:
        """Yield what would run, in lines: hooks, servers, and skills with commands or grants."""
        for _, content in self.read_hooks():
            for command in _find_commands(content):
                yield f"hook: {command}"
        for name, server in self.read_servers().items():
            words = [server.get("command") or server.get("url") or "", *server.get("args", ())]
            yield f"MCP server {name}: {' '.join(map(str, words))}"
        kinds: tuple[PartKind, ...] = ("skills", "commands")
        for kind in kinds:
            for file, name in self.list_files(kind):
                if facts := describe_skill_runs(file):
                    yield f"skill {name}: {facts}"


def list_part_files(place: Path, kind: PartKind) -> Iterator[tuple[Path, str]]:
    """Yield the files of skills, commands or agents in a place, each with the name it gives them.

    A place is a folder of them, or one file.
    """
    try:
        if place.is_file():
            yield place, place.parent.name if kind == "skills" else place.stem
        elif kind == "skills":
            for folder in sorted(place.iterdir()):
                if (folder / SKILL_FILE).is_file():
                    yield folder / SKILL_FILE, folder.name
        else:
            for file in sorted(place.rglob("*.md")):
                if file.is_file():
                    yield file, ":".join(file.relative_to(place).with_suffix("").parts)
    except OSError:  # it is not there, or is no folder
        return


def resolve_inside(root: Path, path: str) -> Path:
    """Return a path of a plugin, links resolved; ConfigurationError where it leads out of it."""
    target = (root / path).resolve()
    if not target.is_relative_to(root.resolve()):
        raise ConfigurationError(f"{path} leads out of the plugin {root}")
    return target


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
    usable: list[Plugin] = []
    warnings: list[str] = []
    folder = locate_plugins(environ)
    for root in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not root.is_dir() or root.name.startswith("."):
            continue
        try:
            plugin = open_plugin(root)
            for kind in _PARTS:
                plugin.list_places(kind)
            plugin.read_hooks()
            plugin.read_servers()
        except ConfigurationError as error:
            warnings.append(f"plugin {root.name} is not used: {error}")
            continue
        usable.append(plugin)
    return usable, warnings


def list_agent_files(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the agent files that installed plugins bring, each once, with its plugin's name."""
    plugins, _ = list_plugins(environ)
    return [(plugin.name, file) for plugin in plugins for file, _ in plugin.list_files("agents")]


def load_server_tables(environ: Mapping[str, str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the MCP servers of installed plugins: source, such as `plugin:x` → name → table."""
    plugins, _ = list_plugins(environ)
    return {
        f"plugin:{plugin.name}": table for plugin in plugins if (table := plugin.read_servers())
    }


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
