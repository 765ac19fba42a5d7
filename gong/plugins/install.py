"""Plugins are installed as a copy of a folder, repository or npm package, and removed.

A copy is made beside its place and renamed when it is complete, so that no half of one is used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tape.errors import NotFound

from ..errors import ConfigurationError
from .installed import locate_plugins, open_plugin
from .manifest import CLAUDE_FILE, SCHEMA, STANDARD_FILE, merge_entry, read_object
from .named_commands import write_named_commands
from .npm_package import fetch_npm_package

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .installed import Plugin

_MARKETPLACE = ".claude-plugin/marketplace.json"
_CLONE_SECONDS = 300
_REPOSITORIES = frozenset(("github", "url", "git", "git-subdir"))
"""Kinds of an entry's source that are repositories."""
_SHORT_URL = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@contextmanager
def fetch_plugin(source: str, environ: Mapping[str, str]) -> Iterator[Plugin]:
    """Hold a copy of the plugin of a folder or repository, to look at and to install.

    `source` is a path, what `git clone` takes, or OWNER/NAME of GitHub; `#NAME` at its end chooses
    from a marketplace, whose entry may be the plugin's manifest, and may name a repository or an
    npm package. Raises ConfigurationError.
    """
    place, _, chosen = source.partition("#")
    folder = locate_plugins(environ)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as temporary:
        local = Path(place).expanduser()
        copy = Path(temporary) / _name_folder(local)
        if local.is_dir():
            if folder.resolve().is_relative_to(local.resolve()):
                raise ConfigurationError(f"{local} is not a plugin: your own settings are in it")
            try:
                shutil.copytree(
                    local, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__")
                )
            except (OSError, shutil.Error) as error:
                raise ConfigurationError(f"{local} cannot be copied: {error}") from error
        else:
            _fetch_repository(place, copy, environ)
        entry = _find_entry(copy, chosen)
        root = copy if entry is None else _find_root(copy, entry, environ)
        _write_manifest(root, entry, is_whole=root == copy.resolve())
        plugin = open_plugin(root)
        if plugin.is_empty:
            raise ConfigurationError(
                f"plugin {plugin.name} brings nothing that is used here: it has no skills, "
                "commands, agents, hooks or MCP servers"
            )
        yield plugin


def install_plugin(plugin: Plugin, environ: Mapping[str, str]) -> Path:
    """Put a fetched plugin in its place; an older copy is replaced. Raises ConfigurationError."""
    place = locate_plugins(environ) / plugin.name
    old = plugin.root.with_name(".old")
    try:
        if place.exists():
            place.rename(old)
        plugin.root.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ConfigurationError(f"{place} cannot be written: {error.strerror}") from error
    return place


def remove_plugin(name: str, environ: Mapping[str, str]) -> Path:
    """Remove an installed plugin by its name. Raises NotFound."""
    folder = locate_plugins(environ)
    place = folder / name
    if place.parent != folder or name.startswith(".") or not place.is_dir():
        raise NotFound(f"no plugin is called {name}: gong plugin list names them")
    shutil.rmtree(place)
    return place


def _name_folder(place: Path) -> str:
    """Return a name for the copy of a folder or repository, which names a plugin without name."""
    name = place.name if place.name not in {"", ".", ".."} else place.resolve().name
    return name.removesuffix(".git").lstrip(".") or "plugin"


def _fetch_repository(
    source: str, copy: Path, environ: Mapping[str, str], ref: str = "", commit: str = ""
) -> None:
    """Clone a repository: its default branch, a branch or tag, or one commit."""
    if _SHORT_URL.fullmatch(source):
        source = f"https://github.com/{source}.git"
    if source.startswith("-"):
        raise ConfigurationError(f"{source} is neither a folder nor a repository")
    words = ["clone", "--quiet", "--depth", "1", *([f"--branch={ref}"] if ref else [])]
    _run_git([*words, "--", source, str(copy)], source, environ)
    if commit:
        inside = ["-C", str(copy)]
        _run_git([*inside, "fetch", "--quiet", "--depth=1", "origin", commit], source, environ)
        _run_git([*inside, "checkout", "--quiet", "--detach", "FETCH_HEAD"], source, environ)
    shutil.rmtree(copy / ".git", ignore_errors=True)


def _run_git(words: list[str], source: str, environ: Mapping[str, str]) -> None:
    quiet = {**environ, "GIT_TERMINAL_PROMPT": "0", "PATH": environ.get("PATH", os.defpath)}
    try:
        subprocess.run(
            ["git", *words],  # noqa: S607 (as the person's PATH has it)
            env=quiet,
            check=True,
            capture_output=True,
            text=True,
            timeout=_CLONE_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip() or f"git ended with {error.returncode}"
        raise ConfigurationError(f"{source} cannot be cloned: {reason}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{source} cannot be cloned: {error}") from error


def _find_entry(copy: Path, chosen: str) -> dict[str, Any] | None:
    """Return the entry of a plugin in a marketplace; None where the copy is the plugin."""
    file = copy / _MARKETPLACE
    if not file.is_file() or (not chosen and (copy / STANDARD_FILE).is_file()):
        return None
    market = read_object(file)
    rows = market.get("plugins")
    entries = {
        row["name"]: row
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and isinstance(row.get("name"), str)
    }
    if not chosen and len(entries) == 1:
        chosen = next(iter(entries))
    if chosen not in entries:
        there = ", ".join(entries) or "none"
        raise ConfigurationError(
            f"this is a marketplace: choose a plugin in it with #NAME. There are: {there}"
        )
    return entries[chosen]


def _find_root(copy: Path, entry: Mapping[str, Any], environ: Mapping[str, str]) -> Path:
    """Return the folder of an entry's plugin: in the copy, or in a repository that it names."""
    source = entry.get("source", "./")
    if isinstance(source, dict):
        return _fetch_entry(source, copy.with_name(f"{copy.name}-source"), environ)
    if not isinstance(source, str):
        raise ConfigurationError(f"source of {entry['name']} is no path and no repository")
    about = read_object(copy / _MARKETPLACE).get("metadata")
    base = about.get("pluginRoot") if isinstance(about, dict) else None
    within = copy / base / source if isinstance(base, str) else copy
    root = _resolve_folder(copy, within if base and within.is_dir() else copy / source, source)
    for link in [*root.rglob("*")] if root != copy.resolve() else ():
        _copy_target(link, root, copy.resolve())
    return root


def _copy_target(link: Path, root: Path, market: Path) -> None:
    """Put what a link leads to in its place, where that is of the marketplace, not the plugin."""
    if not link.is_symlink():
        return
    target = link.resolve()
    shared = target.is_relative_to(market) and not root.is_relative_to(target)
    if target.is_relative_to(root) or not shared or not target.exists():
        return
    link.unlink()
    if target.is_dir():
        shutil.copytree(target, link, symlinks=True)
    else:
        shutil.copy2(target, link)


def _fetch_entry(source: Mapping[str, Any], copy: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder of a plugin in a repository or package that an entry's `source` names."""
    texts = {key: value for key, value in source.items() if isinstance(value, str)}
    kind, url = texts.get("source", ""), texts.get("url") or texts.get("repo", "")
    if kind == "npm":
        return fetch_npm_package(texts, copy, environ)
    if kind not in _REPOSITORIES or not url:
        raise ConfigurationError(f"a plugin from {kind or 'an unknown place'} cannot be fetched")
    commit = texts.get("sha", "")
    if commit and not _COMMIT.fullmatch(commit):
        raise ConfigurationError(f"{commit} is no commit of {url}")
    _fetch_repository(url, copy, environ, texts.get("ref", ""), commit)
    path = texts.get("path", "")
    return _resolve_folder(copy, copy / path, path)


def _resolve_folder(copy: Path, path: Path, name: str) -> Path:
    folder = path.resolve()
    if not folder.is_relative_to(copy.resolve()) or not folder.is_dir():
        raise ConfigurationError(f"{name} of the marketplace is not a folder in it")
    return folder


def _write_manifest(root: Path, entry: Mapping[str, Any] | None, *, is_whole: bool) -> None:
    """Write what a marketplace says about a plugin into its own manifest, which may be missing.

    A plugin that is the whole marketplace has of it only what an entry with `strict: false` names.
    Commands that it names as an object become files.
    """
    if _is_standard(root):
        return
    file = root / CLAUDE_FILE
    if entry is None and not file.is_file() and (root / STANDARD_FILE).is_file():
        file = root / STANDARD_FILE
    own = read_object(file) if file.is_file() else {}
    fields = own
    if entry is not None or not own:
        fields = merge_entry(own, entry or {"name": root.name})
        if not is_whole:
            fields.pop("strict", None)
    named = fields.get("commands")
    rows = named if isinstance(named, list) else [named]
    if any(isinstance(row, dict) for row in rows):
        fields = {**fields, "commands": write_named_commands(root, rows)}
    if fields is not own:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(fields)))


def _is_standard(root: Path) -> bool:
    file = root / STANDARD_FILE
    return file.is_file() and read_object(file).get("$schema") == SCHEMA
