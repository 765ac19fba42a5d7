"""Plugins are installed as a copy of a folder or a clone of a repository, and removed.

A copy is made beside its place and renamed when it is complete, so that no half of one is used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tape.errors import NotFound

from ..errors import ConfigurationError
from .installed import locate_plugins, open_plugin
from .manifest import read_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .installed import Plugin

_MARKETPLACE = ".claude-plugin/marketplace.json"
_CLONE_SECONDS = 300


@contextmanager
def fetch_plugin(source: str, environ: Mapping[str, str]) -> Iterator[Plugin]:
    """Hold a copy of the plugin of a folder or repository, to look at and to install.

    `source` is a path, or what `git clone` takes; `#NAME` at its end chooses from a marketplace.
    Raises ConfigurationError.
    """
    place, _, chosen = source.partition("#")
    folder = locate_plugins(environ)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as temporary:
        copy = Path(temporary) / "plugin"
        local = Path(place).expanduser()
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
        yield open_plugin(_choose_folder(copy, chosen))


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


def _fetch_repository(source: str, copy: Path, environ: Mapping[str, str]) -> None:
    if source.startswith("-"):
        raise ConfigurationError(f"{source} is neither a folder nor a repository")
    argv = ["git", "clone", "--quiet", "--depth", "1", "--", source, str(copy)]
    quiet = {**environ, "GIT_TERMINAL_PROMPT": "0", "PATH": environ.get("PATH", os.defpath)}
    try:
        subprocess.run(  # noqa: S603 (git, with a source that is no option)
            argv, env=quiet, check=True, capture_output=True, text=True, timeout=_CLONE_SECONDS
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip() or f"git ended with {error.returncode}"
        raise ConfigurationError(f"{source} cannot be cloned: {said}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{source} cannot be cloned: {error}") from error
    shutil.rmtree(copy / ".git", ignore_errors=True)


def _choose_folder(copy: Path, chosen: str) -> Path:
    """Return the folder of the plugin in a copy, which may be a marketplace of several."""
    file = copy / _MARKETPLACE
    if not file.is_file() or (not chosen and (copy / "plugin.json").is_file()):
        return copy
    rows = read_object(file).get("plugins")
    names = {
        one["name"]: one.get("source")
        for one in (rows if isinstance(rows, list) else [])
        if isinstance(one, dict) and isinstance(one.get("name"), str)
    }
    if not chosen and len(names) == 1:
        chosen = next(iter(names))
    path = names.get(chosen)
    if not isinstance(path, str):
        there = ", ".join(names) or "none"
        raise ConfigurationError(
            f"this is a marketplace: choose a plugin in it with #NAME. There are: {there}"
        )
    found = (copy / path).resolve()
    if not found.is_relative_to(copy.resolve()) or not found.is_dir():
        raise ConfigurationError(f"{path} of the marketplace is not a folder in it")
    return found
