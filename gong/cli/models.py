"""`gong models`: the catalogue of models, and the details of one. No network."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tape.cli.out import as_json, format_examples, format_table, print_json, print_lines
from tape.errors import NotFound

from .. import config
from ..credentials import Credentials
from ..llm.catalogue import CATALOGUE_DATE, ModelInfo
from ..llm.maker import is_configured
from ..llm.names import ModelNames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..llm.catalogue import Price
    from ..llm.presets import Preset

_THOUSAND, _MILLION = 1_000, 1_000_000
_ABILITIES = ("tools", "vision", "reasoning")


@click.group(
    invoke_without_command=True,
    epilog=format_examples(
        "gong models --provider anthropic", "gong models --json", "gong models show sonnet"
    ),
)
@click.option("--provider", metavar="P", help="Only the models of one provider.")
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
    found = names.catalogue.list_models(provider)
    if as_json:
        print_json([_encode_model(names, model) for model in found])
        return
    if found:
        print_lines(
            format_table(
                [_MODEL_HEADINGS, *(_render_model_row(model) for model in found)], right=(1, 2, 3)
            )
        )
        print_lines(
            ["", f"Prices in USD per million tokens, as of {CATALOGUE_DATE}; – means unknown."]
        )
    print_lines(_describe_providers(names, provider))


@models.command()
@click.argument("name", metavar="ID")
@as_json
def show(name: str, as_json: bool) -> None:
    """Show the details of a model: its id, an alias, or any name that -m accepts."""
    names = _load_names()
    full = names.resolve_name(name)
    model = names.find_info(full) or ModelInfo(id=full)
    if as_json:
        print_json(_encode_model(names, model))
    else:
        print_lines(format_table(_list_facts(names, model)))


_MODEL_HEADINGS = ("MODEL", "WINDOW", "INPUT", "OUTPUT", "CAN", "ALIASES")


def _load_names() -> ModelNames:
    return ModelNames.from_settings(config.load_settings(os.environ, {}))


def _render_model_row(model: ModelInfo) -> Sequence[str]:
    return (
        model.id,
        _format_token_count(model.context_window),
        _format_dollars(model.price.input if model.price else None),
        _format_dollars(model.price.output if model.price else None),
        " ".join(_list_abilities(model)),
        " ".join(model.aliases),
    )


def _list_facts(names: ModelNames, model: ModelInfo) -> list[Sequence[str]]:
    preset = names.presets.get(model.provider)
    rows = [
        ("model", model.id),
        ("name", model.name or "–"),
        ("provider", preset.label or preset.name if preset else model.provider),
        ("aliases", " ".join(model.aliases) or "–"),
        ("window", _format_token_count(model.context_window)),
        ("max output", _format_token_count(model.max_output)),
        ("can", " ".join(_list_abilities(model)) or "–"),
        ("price", _format_price(model.price)),
    ]
    if model.long:
        rows.append((f"above {_format_token_count(model.long.above)}", _format_price(model.long)))
    return [*rows, ("key", _describe_key(preset) if preset else "none needed")]


def _encode_model(names: ModelNames, model: ModelInfo) -> dict[str, Any]:
    """Return every field for programs, null if unknown."""
    preset = names.presets.get(model.provider)
    row: dict[str, Any] = msgspec.to_builtins(model)
    return {
        **row,
        "provider": model.provider,
        "key": _is_provider_ready(preset) if preset else True,
    }


def _describe_providers(names: ModelNames, provider: str | None) -> list[str]:
    """Return a line of the providers that are ready, and one of those that need a key."""
    presets = [one for one in names.presets.values() if provider in {None, one.name}]
    ready = [one.name for one in presets if _is_provider_ready(one)]
    wanting = [one.name for one in presets if not _is_provider_ready(one) and not one.later]
    lines = [f"Ready: {', '.join(ready)}"] if ready else []
    if wanting:
        lines.append(f"Need a key (gong auth login NAME): {', '.join(wanting)}")
    return lines


def _describe_key(preset: Preset) -> str:
    found = _load_credentials().find(preset.key_name, preset.keys)
    if found is not None:
        return f"{found.ending} from {found.source}"
    return (
        "none needed"
        if _is_provider_ready(preset)
        else f"missing: gong auth login {preset.key_name}"
    )


def _is_provider_ready(preset: Preset) -> bool:
    has_key = _load_credentials().has_key(preset.key_name, preset.keys)
    return not preset.later and (preset.local or is_configured(preset, os.environ, has_key=has_key))


def _load_credentials() -> Credentials:
    return Credentials(config.locate_config_file(os.environ).parent, os.environ)


def _list_abilities(model: ModelInfo) -> list[str]:
    return [ability for ability in _ABILITIES if getattr(model, ability)]


def _format_price(price: Price | None) -> str:
    if price is None:
        return "–"
    cached = (("cache read", price.cache_read), ("cache write", price.cache_write))
    parts = [f"input {_format_dollars(price.input)}", f"output {_format_dollars(price.output)}"]
    parts += [f"{name} {_format_dollars(value)}" for name, value in cached if value is not None]
    return f"{', '.join(parts)} per million tokens"


def _format_dollars(amount: float | None) -> str:
    return "–" if amount is None else f"${amount:.10f}".rstrip("0").rstrip(".")


def _format_token_count(count: int | None) -> str:
    if count is None:
        return "–"
    if count >= _MILLION:
        return f"{count / _MILLION:.2f}".rstrip("0").rstrip(".") + " M"
    return f"{count / _THOUSAND:.0f} k" if count >= _THOUSAND else str(count)
