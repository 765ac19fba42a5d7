"""`gong models`: the catalogue: models with their windows, abilities and prices. No network."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.errors import NotFound

from ..credentials import Credentials
from ..llm.cloud_logins import describe_login
from ..llm.model_names import ModelNames
from ..llm.models import CATALOGUE_DATE, ModelInfo
from ..llm.provider_factory import is_configured
from .options import complete_provider, load_settings

if TYPE_CHECKING:
    from ..llm.models import Preset
    from ..llm.prices import Price

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
