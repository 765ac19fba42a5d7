"""`gong auth`: save, show and remove API keys; `gong models`: the catalogue. No network.

A key is typed without echo or read from standard input; it is never an argument and never
printed, except for its last four characters.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.clock import format_timestamp, read_clock
from tape.errors import NotFound

from ..credentials import Credentials
from ..errors import ConfigurationError
from ..llm.cloud_logins import describe_login
from ..llm.model_names import ModelNames
from ..llm.models import CATALOGUE_DATE, ModelInfo, load_presets
from ..llm.provider_factory import is_configured, is_valid_key
from .options import complete_provider, load_settings, print_warning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..llm.models import Preset
    from ..llm.prices import Price
    from ..repl.draw.picker_rows import PickerRow


provider_argument = click.argument("name", metavar="PROVIDER", shell_complete=complete_provider)


@click.group(
    cls=NamingGroup,
    epilog=format_examples(
        "gong auth login",
        "gong auth login openai < key.txt",
        "gong auth status",
        "gong auth logout openai",
    ),
)
def auth() -> None:
    """Save API keys in the system keyring, or in a file that only you can read."""


@auth.command()
@click.argument("name", metavar="[PROVIDER]", default="", shell_complete=complete_provider)
def login(name: str) -> None:
    """Save the key of a provider; it is prompted for, or read from standard input.

    Without a PROVIDER all of them are listed, to choose one from.
    """
    presets = _load_presets()
    if not name:
        name = _choose_provider(presets)
    if name not in presets:
        raise NotFound(f"no provider {name!r}: choose one of {', '.join(presets)}")
    preset = presets[name]
    if preset.later:
        raise ConfigurationError(preset.unserved)
    if sys.stdin.isatty():
        label = preset.label or preset.name
        key = str(click.prompt(f"Key for {label}", hide_input=True, err=True)).strip()
    else:
        key = sys.stdin.readline().strip()
    if not is_valid_key(key):
        raise ConfigurationError("not a key: it is empty or contains spaces; copy it again")
    place = Credentials.from_environ(os.environ).save(
        preset.key_name, key, format_timestamp(read_clock())
    )
    print_lines([f"the key for {preset.key_name} is saved in {place}"])
    for variable in preset.keys:
        if os.environ.get(variable, "").strip():
            print_warning(f"{variable} is set and takes precedence over the saved key")
            return


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
    names = [name for name, preset in presets.items() if preset.keys and not preset.later]
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
    """Remove the saved key of a provider."""
    presets = _load_presets()
    name = presets[name].key_name if name in presets else name
    if not Credentials.from_environ(os.environ).remove(name):
        raise NotFound(f"no key for {name} is saved; gong auth status lists all keys")
    print_lines([f"the key for {name} is removed"])


@auth.command()
@as_json
def status(as_json: bool) -> None:
    """Show which providers have a key, and where it comes from."""
    credentials, presets = Credentials.from_environ(os.environ), _load_presets()
    variables = {name: (preset.key_name, preset.keys) for name, preset in presets.items()}
    saved = {name: (name, ()) for name in credentials.list_saved() if name not in presets}
    keys = {name: credentials.find(*where) for name, where in (variables | saved).items()}
    rows = [(name, key.source, key.ending) for name, key in keys.items() if key is not None]
    for name, preset in presets.items():
        login = describe_login(preset, os.environ)
        if login and keys[name] is None:
            rows.append((name, login, "–"))
    if as_json:
        print_json(
            [
                {"provider": name, "source": source, "ending": ending}
                for name, source, ending in rows
            ]
        )
    elif rows:
        cells = [(name, ending, source) for name, source, ending in rows]
        headings = ("PROVIDER", "KEY", "FROM")
        print_lines(format_table(cells, headings=headings, optional=("FROM",)))
    else:
        print_lines(
            ["no keys: save one with gong auth login PROVIDER, such as gong auth login anthropic"]
        )


def _load_presets() -> Mapping[str, Preset]:
    return load_presets(load_settings().providers, os.environ)


_THOUSAND, _MILLION = 1_000, 1_000_000
_ABILITIES = ("tools", "vision", "reasoning")


@click.group(
    cls=NamingGroup,
    invoke_without_command=True,
    epilog=format_examples(
        "gong models --provider anthropic", "gong models --json", "gong models show sonnet"
    ),
)
@click.option(
    "--provider",
    metavar="P",
    shell_complete=complete_provider,
    help="Only the models of one provider.",
)
@as_json
@click.pass_context
def models(ctx: click.Context, provider: str | None, as_json: bool) -> None:
    """List the catalogue's models with context windows and prices; other ids work as well."""
    if ctx.invoked_subcommand is not None:
        return
    names = _load_names()
    if provider is not None and provider not in names.presets:
        known = ", ".join(names.presets)
        raise NotFound(f"no provider {provider!r}: choose one of {known}")
    models = [
        names.find_priced(model.id) or model for model in names.catalogue.list_models(provider)
    ]
    if as_json:
        print_json([_encode_model(names, model) for model in models])
        return
    if models:
        rows = [
            (
                model.id,
                _format_token_count(model.context_window),
                _format_dollars(model.price.input if model.price else None),
                _format_dollars(model.price.output if model.price else None),
                " ".join(_list_abilities(model)),
                " ".join(model.aliases),
            )
            for model in models
        ]
        optional = ("ALIASES", "CAN", "OUTPUT", "INPUT")
        print_lines(format_table(rows, (1, 2, 3), headings=_MODEL_HEADINGS, optional=optional))
        print_lines(
            ["", f"Prices in USD per million tokens, as of {CATALOGUE_DATE}; – means unknown."]
        )
    presets = [preset for preset in names.presets.values() if provider in {None, preset.name}]
    ready = [preset.name for preset in presets if _is_provider_ready(preset)]
    wanting = [
        preset.name for preset in presets if not _is_provider_ready(preset) and not preset.later
    ]
    lines = [f"Ready: {', '.join(ready)}"] if ready else []
    if wanting:
        lines.append(f"Need a key (gong auth login NAME): {', '.join(wanting)}")
    print_lines(lines)


@models.command()
@click.argument("name", metavar="ID")
@as_json
def show(name: str, as_json: bool) -> None:
    """Show the details of a model: its id, an alias, or any name that -m accepts."""
    names = _load_names()
    full = names.resolve_name(name)
    model = names.find_priced(full) or ModelInfo(id=full)
    if as_json:
        print_json(_encode_model(names, model))
        return
    preset, key = names.presets.get(model.provider), "none needed"
    if preset is not None:
        saved = Credentials.from_environ(os.environ).find(preset.key_name, preset.keys)
        if saved is not None:
            key = f"{saved.ending} from {saved.source}"
        elif login := describe_login(preset, os.environ):
            key = f"from {login}"
        elif not _is_provider_ready(preset):
            key = f"missing: gong auth login {preset.key_name}"
    facts = {
        "model": model.id,
        "name": model.name or "–",
        "provider": preset.label or preset.name if preset else model.provider,
        "aliases": " ".join(model.aliases) or "–",
        "window": _format_token_count(model.context_window),
        "max output": _format_token_count(model.max_output),
        "can": " ".join(_list_abilities(model)) or "–",
        "price": _format_price(model.price),
    }
    if model.long:
        facts[f"above {_format_token_count(model.long.above)}"] = _format_price(model.long)
    if searches := _format_searches(model.price):
        facts["searches"] = searches
    print_lines(format_table([*facts.items(), ("key", key)]))


_MODEL_HEADINGS = ("MODEL", "WINDOW", "INPUT", "OUTPUT", "CAN", "ALIASES")


def _load_names() -> ModelNames:
    return ModelNames.from_settings(load_settings(), os.environ)


def _encode_model(names: ModelNames, model: ModelInfo) -> dict[str, Any]:
    """Return every field for programs, null if unknown."""
    preset = names.presets.get(model.provider)
    row: dict[str, Any] = msgspec.to_builtins(model)
    return {
        **row,
        "provider": model.provider,
        "key": _is_provider_ready(preset) if preset else True,
    }


def _is_provider_ready(preset: Preset) -> bool:
    has_key = Credentials.from_environ(os.environ).has_key(preset.key_name, preset.keys)
    return not preset.later and (preset.local or is_configured(preset, os.environ, has_key=has_key))


def _list_abilities(model: ModelInfo) -> list[str]:
    return [ability for ability in _ABILITIES if getattr(model, ability)]


def _format_price(price: Price | None) -> str:
    if price is None:
        return "–"
    hour = price.cache_write_hour
    cached = (
        ("cache read", price.cache_read),
        ("cache write", price.cache_write),
        ("kept an hour", None if price.cache_write == hour else hour),
    )
    parts = [f"input {_format_dollars(price.input)}", f"output {_format_dollars(price.output)}"]
    parts += [f"{name} {_format_dollars(value)}" for name, value in cached if value is not None]
    return f"{', '.join(parts)} per million tokens"


def _format_searches(price: Price | None) -> str:
    searches = (("web", price.web_search), ("file", price.file_search)) if price else ()
    parts = [f"{name} {_format_dollars(value)}" for name, value in searches if value]
    return f"{', '.join(parts)} per thousand" if parts else ""


def _format_dollars(amount: float | None) -> str:
    return "–" if amount is None else f"${amount:.10f}".rstrip("0").rstrip(".")


def _format_token_count(count: int | None) -> str:
    if count is None:
        return "–"
    if count >= _MILLION:
        return f"{count / _MILLION:.2f}".rstrip("0").rstrip(".") + " M"
    return f"{count / _THOUSAND:.0f} k" if count >= _THOUSAND else str(count)
