"""`gong auth`: save, show and remove API keys, and log in and out by OAuth 2.

A key is typed without echo or read from standard input; it is never an argument and never
printed, except for its last four characters. Only logins use the network.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.clock import format_age, format_timestamp, read_clock, render_time
from tape.errors import NotFound
from tape.text import to_single_line

from ..credentials import Credentials, SavedLogin
from ..errors import ConfigurationError, ModelError
from ..llm.cloud_logins import describe_login
from ..llm.models import load_presets
from ..llm.provider_factory import is_valid_key
from .options import complete_provider, load_settings, print_warning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..llm.models import Preset
    from ..logins.settings import LoginFlow, LoginSettings
    from ..repl.draw.picker_rows import PickerRow


provider_argument = click.argument("name", metavar="PROVIDER", shell_complete=complete_provider)


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong auth login",
        "gong auth login openai < key.txt",
        "gong auth list",
        "gong auth status",
        "gong auth logout openai",
    ),
)
def auth() -> None:
    """Save API keys and logins in the system keyring, or in a file that only you can read."""


@auth.command()
@click.argument("name", metavar="[PROVIDER]", default="", shell_complete=complete_provider)
@click.option("--browser", "flow", flag_value="browser", help="Log in with a browser here.")
@click.option(
    "--device", "flow", flag_value="device", help="Log in by a code that is typed on any device."
)
@click.option("--key", "flow", flag_value="key", help="Save a key, where a login is set up too.")
def login(name: str, flow: Literal["browser", "device", "key"] | None) -> None:
    """Save the key of a provider, which is prompted for or read from standard input, or log in.

    Without a PROVIDER all of them are listed, to choose one from. One whose table in config.toml
    has `login` is logged in at: see docs/models.md.
    """
    presets = _load_presets()
    if not name:
        name = _choose_provider(presets)
    if name not in presets:
        raise NotFound(f"no provider {name!r}: choose one of {', '.join(presets)}")
    preset = presets[name]
    preset = presets.get(preset.key_name, preset)
    if preset.later:
        raise ConfigurationError(preset.unserved)
    if preset.program:
        raise ConfigurationError(
            f"{name} needs no key here: {preset.program} has a login of its own; run "
            f"{preset.program} and log in there"
        )
    if flow == "key" or (flow is None and preset.login is None):
        place = _save_key(preset)
        print_lines([f"the key for {preset.key_name} is saved in {place}"])
    elif preset.login is None:
        raise ConfigurationError(
            f"{name} has no login: set client_id and addresses in [providers.{name}.login] of "
            "config.toml (docs/models.md), or save a key"
        )
    else:
        _run_login(preset.key_name, preset.login, flow)
    for variable in preset.keys:
        if os.environ.get(variable, "").strip():
            print_warning(f"{variable} is set and takes precedence over what is saved")
            return


def _save_key(preset: Preset) -> str:
    if sys.stdin.isatty():
        label = preset.label or preset.name
        key = str(click.prompt(f"Key for {label}", hide_input=True, err=True)).strip()
    else:
        key = sys.stdin.readline().strip()
    if not is_valid_key(key):
        raise ConfigurationError("not a key: it is empty or contains spaces; copy it again")
    now = format_timestamp(read_clock())
    return Credentials.from_environ(os.environ).save(preset.key_name, key, now)


def _run_login(name: str, settings: LoginSettings, flow: LoginFlow | None) -> None:
    """Log in at a provider and save the tokens; the terminal shows where a person has to go."""
    from ..logins.refresh import save_tokens

    if settings.choose_flow(flow, name) == "device":
        from ..logins.device import fetch_device_code, wait_for_tokens

        device = fetch_device_code(name, settings)
        _show_address(
            f"open this address on any device, and type {device.user_code} there:",
            device.address,
            device.whole_address,
        )
        tokens = wait_for_tokens(name, settings, device)
    else:
        import asyncio

        from ..logins.browser import run_browser_login

        show = partial(_show_address, "open this address in a browser of this machine:")
        tokens = asyncio.run(run_browser_login(name, settings, show))
    saved, place = save_tokens(name, tokens, Credentials.from_environ(os.environ))
    ends = _format_time_left(saved)
    again = " and is refreshed" if saved.refresh_token else ""
    print_lines(
        [f"logged in at {name}: saved in {place}" + (f"; it expires {ends}{again}" if ends else "")]
    )


def _show_address(text: str, address: str, whole: str = "") -> None:
    """Show where to log in, and open it where a person has a browser here."""
    click.echo(f"{to_single_line(text)} {to_single_line(address)}", err=True)
    if sys.stdin.isatty() and sys.stderr.isatty() and _has_desktop():
        click.launch(whole or address)


def _has_desktop() -> bool:
    names = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in names)


def _find_providers(
    presets: Mapping[str, Preset], names: Sequence[str], credentials: Credentials, words: str
) -> list[PickerRow]:
    """Return the providers whose name, label or number is typed, with the source of their key."""
    from ..repl.draw.picker_rows import PickerRow

    rows = []
    for number, name in enumerate(names, 1):
        preset = presets[name]
        label = preset.label or name
        if words == str(number) or words.lower() in f"{name} {label}".lower():
            key = credentials.find(preset.key_name, preset.keys)
            source = "" if key is None else f"a key from {key.source}"
            rows.append(PickerRow(name, f"{number:>2}  {name} – {label}", source))
    return rows


def _choose_provider(presets: Mapping[str, Preset]) -> str:
    """Return the provider that is chosen on the terminal, by arrows, its number or its name."""
    names = [
        name
        for name, preset in presets.items()
        if (preset.keys or preset.login) and not preset.later
    ]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"name a provider: {', '.join(names)}")
    import asyncio

    from tape.cli.streams import use_bare_streams

    from ..repl.draw.picker import Picker, choose_command

    credentials = Credentials.from_environ(os.environ)
    with use_bare_streams():
        picker = Picker(
            "Provider",
            partial(_find_providers, presets, names, credentials),
            {"enter": ("saves its key", "{}")},
        )
        chosen = asyncio.run(choose_command(picker)).command
    if not chosen:
        raise click.Abort
    return chosen


@auth.command()
@provider_argument
def logout(name: str) -> None:
    """Remove the saved key or login of a provider; a login is withdrawn there, too."""
    if not name.strip():
        raise click.UsageError("name a provider; gong auth list names those with a key or login")
    presets = _load_presets()
    name = presets[name].key_name if name in presets else name
    credentials = Credentials.from_environ(os.environ)
    has_login = credentials.has_login(name)
    saved = credentials.find_login(name) if has_login else None
    settings = presets[name].login if name in presets else None
    if not credentials.remove(name):
        raise NotFound(f"no key for {name} is saved; gong auth status lists all keys")
    if not has_login:
        print_lines([f"the key for {name} is removed"])
    elif saved is None or settings is None or not settings.revoke_url:
        print_lines([f"the login at {name} is forgotten; it has no address to withdraw it at"])
    else:
        from ..logins.refresh import revoke_login

        try:
            revoke_login(name, settings, saved)
        except ModelError as error:
            print_warning(f"the login at {name} is forgotten here and not withdrawn: {error}")
        else:
            print_lines([f"the login at {name} is withdrawn and forgotten"])


@auth.command("list")
@as_json
def list_saved(as_json: bool) -> None:
    """List the keys and logins that are saved, with the time that is left to each."""
    records = Credentials.from_environ(os.environ).list_records()
    if as_json:
        print_json(
            [
                {
                    "provider": record.provider,
                    "type": record.type,
                    "expires_at": record.expires_at or None,
                    "updated_at": record.updated_at or None,
                }
                for record in records
            ]
        )
    elif records:
        cells = [
            (
                record.provider,
                "login" if record.type == "oauth" else "key",
                render_time(record.updated_at) if record.updated_at else "–",
                _format_time_left(SavedLogin("", "", record.expires_at)) or "–",
            )
            for record in records
        ]
        headings = ("PROVIDER", "TYPE", "SAVED", "EXPIRES")
        print_lines(format_table(cells, headings=headings, optional=("SAVED",)))
    else:
        print_lines(["nothing is saved: gong auth login PROVIDER saves a key or a login"])


@auth.command()
@as_json
def status(as_json: bool) -> None:
    """Show which providers have a key or a login, where it comes from, and when it expires."""
    credentials, presets = Credentials.from_environ(os.environ), _load_presets()
    variables = {name: (preset.key_name, preset.keys) for name, preset in presets.items()}
    saved = {name: (name, ()) for name in credentials.list_saved() if name not in presets}
    keys = {name: credentials.find(*where) for name, where in (variables | saved).items()}
    rows = [(name, key.source, key.ending, key.login) for name, key in keys.items() if key]
    for name, preset in presets.items():
        if keys[name] is None and (source := describe_login(preset, os.environ)):
            rows.append((name, source, "–", None))
    if as_json:
        print_json([_encode_key(*row) for row in rows])
    elif rows:
        columns = 4 if any(login for *_, login in rows) else 3
        cells = [
            (name, ending, source, _format_time_left(login) if login else "")
            for name, source, ending, login in rows
        ]
        print_lines(
            format_table(
                [cell[:columns] for cell in cells],
                headings=("PROVIDER", "KEY", "FROM", "EXPIRES")[:columns],
                optional=("FROM",),
            )
        )
    else:
        print_lines(
            ["no keys: save one with gong auth login PROVIDER, such as gong auth login anthropic"]
        )


def _encode_key(name: str, source: str, ending: str, login: SavedLogin | None) -> dict[str, Any]:
    facts = {"type": "oauth", "expires_at": login.expires_at or None} if login else {}
    return {"provider": name, "source": source, "ending": ending, **facts}


def _format_time_left(saved: SavedLogin) -> str:
    """Return when a login expires: `in 58m`, `has expired`; "" if that is not known."""
    from ..logins.refresh import measure_time_left

    left = measure_time_left(saved, time.time())
    if left == float("inf"):
        return ""
    return f"in {format_age(int(left * 1_000_000))}" if left > 0 else "has expired"


def _load_presets() -> Mapping[str, Preset]:
    return load_presets(load_settings().providers, os.environ)
