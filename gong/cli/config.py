"""`gong config`: show the settings and where they come from, and change the user's config.toml."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.text import to_single_line

from ..config import (
    PROJECT_FILE,
    list_choices,
    list_settings,
    parse_settings,
    read_project_settings,
    read_settings_file,
)
from ..config_file import read_document, write_document
from ..errors import ConfigurationError
from ..private_files import locate_config_file
from ..project import locate_folder
from ..trust import read_project, trust_part
from .options import complete_setting, load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARIABLES = {
    "model": "GONG_MODEL",
    "permissions.mode": "GONG_PERMISSION",
    "sandbox": "GONG_SANDBOX",
}
"""Setting → the variable of the environment that overrides it."""


class ListedSetting(Struct, frozen=True):
    """A setting, its value, and where that comes from."""

    key: str
    value: Any
    source: str
    """default, environment, or the path of a file."""
    choices: tuple[Any, ...] = ()
    """The words that it may have; empty where it takes other values."""


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong config list",
        "gong config get compaction.keep",
        "gong config set model offline/rules",
        "gong config set permissions.mode accept_edits",
    ),
)
def config() -> None:
    """Show the settings, and change those of your config.toml or of a project."""


@config.command()
@click.argument("key", shell_complete=complete_setting)
@as_json
def get(key: str, *, as_json: bool) -> None:
    """Print the value of a setting, whether it is set or a default.

    Text is printed as it is, everything else as JSON; nothing where there is no value.
    """
    value: Any = msgspec.to_builtins(load_settings())
    for name in _split_key(key):
        value = value.get(name) if isinstance(value, dict) else None
    if as_json:
        print_json(value)
    elif value is not None:
        print_lines([_format_value(value)])


@config.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument("key", shell_complete=complete_setting)
@click.argument("value", shell_complete=complete_setting)
@click.option("--project", "of_project", is_flag=True, help="In .gong/config.toml of the project.")
def set_(key: str, value: str, *, of_project: bool) -> None:
    """Set KEY in your config.toml; comments and order stay.

    VALUE is TOML, such as 3, true or '["read", "bash"]', else text. A wrong one is refused and
    nothing is written. With --project the file is that of the project; one that is there already
    has to be trusted (gong trust), and what is written then is trusted, too.
    """
    file = _find_project_file() if of_project else locate_config_file(os.environ)
    path = _split_key(key)
    candidates: list[Any] = [value]
    with suppress(tomllib.TOMLDecodeError):
        candidates.insert(0, tomllib.loads(f"value = {value}")["value"])
    refused: ConfigurationError | None = None
    for candidate in candidates:
        document = read_document(file)
        _set_value(document, path, candidate)
        try:
            parse_settings(file, document.as_string().encode())
        except ConfigurationError as error:
            refused = refused or error
            continue
        write_document(file, document)
        if of_project:
            trust_part(locate_folder(), PROJECT_FILE, os.environ)
        print_lines([f"{file}: {key} = {_format_value(candidate)}"])
        return
    raise ConfigurationError(f"nothing was written: {refused}")


def _find_project_file() -> Path:
    """Return the file of the project's settings, for changes; raises ConfigurationError."""
    folder = locate_folder()
    project = read_project(folder, os.environ)
    file = project.root / PROJECT_FILE
    home = os.environ.get("HOME")
    if home and str(project.root) == os.path.realpath(home):
        raise ConfigurationError("the home folder is not a project: leave out --project")
    if not Path(os.path.realpath(file)).is_relative_to(project.root):
        raise ConfigurationError(f"{file} is a link that leaves the project: nothing was written")
    if any(part.path == PROJECT_FILE and part.state != "trusted" for part in project.parts):
        raise ConfigurationError(f"{file} is not trusted: read it, then run gong trust --yes")
    return file


@config.command()
def path() -> None:
    """Print the path of your config.toml, which need not exist."""
    print_lines([str(locate_config_file(os.environ))])


@config.command(name="list")
@as_json
def list_(*, as_json: bool) -> None:
    """List all settings with their values and where they come from.

    A source is default, environment, or the path of a file: your config.toml, or the one of the
    project where it is trusted. --json prints [{key, value, source, choices}]; choices are the
    words that a setting may have, and empty where it takes other values.
    """
    settings = [*_list_sources()]
    if as_json:
        print_json(settings)
        return
    rows = [
        (setting.key, to_single_line(_format_value(setting.value)), setting.source)
        for setting in settings
    ]
    print_lines(format_table(rows, headings=("SETTING", "VALUE", "FROM"), optional=("FROM",)))


def _list_sources() -> Iterator[ListedSetting]:
    """Yield each setting with its source; later layers win."""
    file = locate_config_file(os.environ)
    layers = [(str(file), {*_flatten_table(_parse_table(read_settings_file(file)))})]
    if project := read_project_settings(locate_folder(), os.environ):
        layers.append((str(project[0]), {*_flatten_table(_parse_table(project[1]))} - {"hooks"}))
    layers.append(
        ("environment", {key for key, variable in _VARIABLES.items() if os.environ.get(variable)})
    )
    for key, value in _flatten_table(msgspec.to_builtins(load_settings())).items():
        source = "default"
        for name, keys in layers:
            source = name if key in keys else source
        yield ListedSetting(key, value, source, list_choices(tuple(key.split("."))))


def _parse_table(data: bytes) -> dict[str, Any]:
    return tomllib.loads(data.decode())


def _flatten_table(table: dict[str, Any], above: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return dotted key → value; a table whose keys are not fixed is one value."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        here = (*above, name)
        if isinstance(value, dict) and list_settings(here):
            flat |= _flatten_table(value, here)
        else:
            flat[".".join(here)] = value
    return flat


def _split_key(key: str) -> tuple[str, ...]:
    """Return the names in a dotted key, as TOML writes it; raises ConfigurationError.

    A name that is none of the settings is refused with the nearest one.
    """
    try:
        at: Any = tomllib.loads(f"{key} = 0")
        names: tuple[str, ...] = ()
        while isinstance(at, dict):
            ((name, at),) = at.items()
            names = (*names, name)
    except (tomllib.TOMLDecodeError, ValueError):
        names = tuple(key.split("."))
    for depth, name in enumerate(names):
        known = list_settings(names[:depth])
        if known and name not in known:
            near = get_close_matches(name, known, n=1)
            whole = ".".join((*names[:depth], near[0])) if near else ""
            meant = f": did you mean {whole}?" if near else ": `gong config list` shows all"
            raise ConfigurationError(f"unknown setting {key}{meant}")
    return names


def _set_value(document: Any, path: tuple[str, ...], value: Any) -> None:
    import tomlkit  # only to change the file

    table = document
    for name in path[:-1]:
        if name not in table:
            table[name] = tomlkit.table()
        table = table[name]
        if not isinstance(table, dict):
            raise ConfigurationError(f"nothing was written: {name} is not a table")
    table[path[-1]] = value


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
