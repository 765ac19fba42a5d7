"""`gong auth`: save and remove API keys, and show where each key comes from.

A key is typed without echo or read from standard input; it is never an argument and never
printed, except for its last four characters.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tape.cli.out import (
    as_json,
    format_examples,
    format_table,
    print_json,
    print_lines,
    print_warning,
)
from tape.clock import format_timestamp, read_clock
from tape.errors import NotFound

from .. import config
from ..credentials import Credentials
from ..errors import ConfigurationError
from ..llm.maker import is_valid_key
from ..llm.presets import load_presets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..llm.presets import Preset

provider_argument = click.argument("name", metavar="PROVIDER")


@click.group(
    epilog=format_examples(
        "gong auth login anthropic",
        "gong auth login openai < key.txt",
        "gong auth status",
        "gong auth logout openai",
    )
)
def auth() -> None:
    """Save API keys in the system keyring, or in a file that only you can read."""


@auth.command()
@provider_argument
def login(name: str) -> None:
    """Save the key of a provider; it is prompted for, or read from standard input."""
    preset = _find_preset(name)
    if preset.later:
        raise ConfigurationError(preset.unserved)
    key = _read_typed_key(preset)
    if not is_valid_key(key):
        raise ConfigurationError("not a key: it is empty or contains spaces; copy it again")
    place = _open_credentials().save(preset.key_name, key, format_timestamp(read_clock()))
    print_lines([f"the key for {preset.key_name} is saved in {place}"])
    for variable in preset.keys:
        if os.environ.get(variable, "").strip():
            print_warning(f"{variable} is set and takes precedence over the saved key", "gong")
            return


@auth.command()
@provider_argument
def logout(name: str) -> None:
    """Remove the saved key of a provider."""
    presets = _load_presets()
    name = presets[name].key_name if name in presets else name
    if not _open_credentials().remove(name):
        raise NotFound(f"no key for {name} is saved; gong auth status lists all keys")
    print_lines([f"the key for {name} is removed"])


@auth.command()
@as_json
def status(as_json: bool) -> None:
    """Show which providers have a key, and where it comes from."""
    rows = _list_keys()
    if as_json:
        print_json(
            [
                {"provider": name, "source": source, "ending": ending}
                for name, source, ending in rows
            ]
        )
    elif rows:
        print_lines(
            format_table(
                [("PROVIDER", "KEY", "FROM"), *((name, end, at) for name, at, end in rows)]
            )
        )
    else:
        print_lines(
            ["no keys: save one with gong auth login PROVIDER, such as gong auth login anthropic"]
        )


def _list_keys() -> list[tuple[str, str, str]]:
    """Return provider, source and last characters of every key."""
    credentials, presets = _open_credentials(), _load_presets()
    found = [
        *((name, credentials.find(one.key_name, one.keys)) for name, one in presets.items()),
        *(
            (name, credentials.find(name, ()))
            for name in credentials.list_saved()
            if name not in presets
        ),
    ]
    return [(name, key.source, key.ending) for name, key in found if key is not None]


def _read_typed_key(preset: Preset) -> str:
    if sys.stdin.isatty():
        label = preset.label or preset.name
        return str(click.prompt(f"Key for {label}", hide_input=True, err=True)).strip()
    return sys.stdin.readline().strip()


def _find_preset(name: str) -> Preset:
    presets = _load_presets()
    if name not in presets:
        raise NotFound(f"no provider {name!r}: choose one of {', '.join(presets)}")
    return presets[name]


def _load_presets() -> Mapping[str, Preset]:
    return load_presets(config.load_settings(os.environ, {}).providers)


def _open_credentials() -> Credentials:
    return Credentials(config.locate_config_file(os.environ).parent, os.environ)
