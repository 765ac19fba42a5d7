"""`gong auth`: keep the keys of providers, forget them, and say where each one comes from.

A key is typed where nobody sees it or read from standard input; it is never an argument and never
printed, but for its last four characters.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tape.cli.out import as_json, document, examples, say, table, warn
from tape.clock import now, stamp
from tape.errors import NotFound

from .. import config
from ..credentials import Credentials
from ..errors import ConfigurationError
from ..llm.maker import is_a_key
from ..llm.presets import merged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..llm.presets import Preset

provider_name = click.argument("name", metavar="PROVIDER")


@click.group(
    epilog=examples(
        "gong auth login anthropic",
        "gong auth login openai < key.txt",
        "gong auth status",
        "gong auth logout openai",
    )
)
def auth() -> None:
    """Keep keys of providers in the system's keyring, or in a file only you can read."""


@auth.command()
@provider_name
def login(name: str) -> None:
    """Keep the key of a provider; it is asked for, or read from standard input."""
    preset = _preset(name)
    if preset.later:
        raise ConfigurationError(preset.unserved)
    key = _typed(preset)
    if not is_a_key(key):
        raise ConfigurationError("that is no key: it is empty or holds blanks; copy it again")
    place = _credentials().save(preset.key_name, key, stamp(now()))
    say([f"the key for {preset.key_name} is kept in {place}"])
    for variable in preset.keys:
        if os.environ.get(variable, "").strip():
            warn(f"{variable} is set and goes before the key kept now", "gong")
            return


@auth.command()
@provider_name
def logout(name: str) -> None:
    """Forget the key of a provider."""
    presets = _presets()
    name = presets[name].key_name if name in presets else name
    if not _credentials().remove(name):
        raise NotFound(f"no key for {name} is kept; gong auth status lists what there is")
    say([f"the key for {name} is forgotten"])


@auth.command()
@as_json
def status(as_json: bool) -> None:
    """Say which providers have a key, and where it comes from."""
    rows = _rows()
    if as_json:
        document(
            [
                {"provider": name, "source": source, "ending": ending}
                for name, source, ending in rows
            ]
        )
    elif rows:
        say(table([("PROVIDER", "KEY", "FROM"), *((name, end, at) for name, at, end in rows)]))
    else:
        say(["no keys: gong auth login PROVIDER keeps one, such as gong auth login anthropic"])


def _rows() -> list[tuple[str, str, str]]:
    """Return provider, source and ending of every key there is."""
    credentials, presets = _credentials(), _presets()
    found = [
        *((name, credentials.find(one.key_name, one.keys)) for name, one in presets.items()),
        *((name, credentials.find(name, ())) for name in credentials.kept() if name not in presets),
    ]
    return [(name, key.source, key.ending) for name, key in found if key is not None]


def _typed(preset: Preset) -> str:
    if sys.stdin.isatty():
        label = preset.label or preset.name
        return str(click.prompt(f"Key for {label}", hide_input=True, err=True)).strip()
    return sys.stdin.readline().strip()


def _preset(name: str) -> Preset:
    presets = _presets()
    if name not in presets:
        raise NotFound(f"no provider {name!r}: there are {', '.join(presets)}")
    return presets[name]


def _presets() -> Mapping[str, Preset]:
    return merged(config.load(os.environ, {}).providers)


def _credentials() -> Credentials:
    return Credentials(config.config_file(os.environ).parent, os.environ)
