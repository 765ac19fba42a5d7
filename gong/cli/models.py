"""`gong models`: the catalogue: models with their context windows, abilities and prices.

Only `refresh` asks a host elsewhere; the models of a server on this machine are those it says.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace

from tape.cli.output import NamingGroup, as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.errors import NotFound

from ..credentials import Credentials
from ..errors import ConfigurationError, NetworkError
from ..llm.addresses import find_endpoint
from ..llm.cloud_logins import describe_login
from ..llm.model_names import ModelNames
from ..llm.models import CATALOGUE_DATE, ModelInfo
from ..llm.provider_factory import is_configured
from ..private_files import locate_cache_folder
from .options import complete_provider, load_settings, print_warning

if TYPE_CHECKING:
    from ..llm.models import Preset
    from ..llm.price_refresh import PriceChange
    from ..llm.prices import Price

_THOUSAND, _MILLION = 1_000, 1_000_000
_ABILITIES = ("tools", "vision", "reasoning")


@click.group(
    cls=NamingGroup,
    invoke_without_command=True,
    epilog=format_examples(
        "gong models --provider anthropic",
        "gong models --json",
        "gong models show sonnet",
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
    if provider is not None and names.presets[provider].local:
        models += _list_served(names, names.presets[provider], {model.id for model in models})
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
    preset = names.presets.get(model.provider)
    if preset is not None and preset.local and model.context_window is None:
        from ..llm.local_models import find_served_window

        window = find_served_window(preset, model.model, os.environ)
        model = replace(model, context_window=window)
    if as_json:
        print_json(_encode_model(names, model))
        return
    key = "none needed"
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


@models.command()
@click.option(
    "--from",
    "source",
    metavar="FILE|URL",
    default="",
    help="Read this instead: version 2 of genai-prices' data.",
)
@as_json
def refresh(source: str, as_json: bool) -> None:
    """Fetch newer prices, show what they change, and keep them; never done unasked.

    They count until a version of gong with newer ones is installed. A file that is cut or in
    another form changes nothing; a price that cannot be is named, and the known one stays.

    --json prints {file, changed, refused}; a change is {host, model, before, after}.
    """
    from ..llm.price_lists import load_price_lists
    from ..llm.price_refresh import PRICES_URL, check_lists, list_changes, save_lists

    names, cache = _load_names(), locate_cache_folder(os.environ)
    data = _read_source(source or PRICES_URL)
    hosts = {preset.price_list or name for name, preset in names.presets.items()}
    known = load_price_lists(None)
    before = load_price_lists(cache)
    lists = check_lists(data, known, hosts)
    changes = list_changes(lists, before)
    try:
        file = save_lists(lists, cache)
    except OSError as error:
        raise ConfigurationError(f"{cache} cannot be written: {error.strerror}") from error
    for text in lists.refused:
        print_warning(f"left out: {text}")
    if as_json:
        changed = [msgspec.to_builtins(change._asdict()) for change in changes]
        print_json({"file": str(file), "changed": changed, "refused": lists.refused})
        return
    rows = sorted(map(_describe_change, changes))
    print_lines([*format_table(rows), f"the prices of {len(lists.hosts)} hosts are in {file}"])


def _read_source(source: str) -> bytes:
    """Return the bytes of a file or an address; raises ConfigurationError, NetworkError.

    The query of an address, which may be a secret, is in no error.
    """
    from ..http_requests import RequestFailed, send_request
    from ..llm.price_refresh import MAX_FILE_BYTES

    if not source.startswith(("http://", "https://")):
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{source} cannot be read: {error.strerror}") from error
    address = source.partition("?")[0].partition("#")[0]
    if "@" in address.split("/")[2]:
        raise ConfigurationError("the address of --from contains a user name: leave it out")
    try:
        answer = send_request(source, {}, limit=MAX_FILE_BYTES)
    except RequestFailed as error:
        raise NetworkError(f"cannot read {address}: {error}") from None
    if answer.status != _OK:
        raise NetworkError(f"{address} answers with status {answer.status}")
    return answer.body


def _describe_change(change: PriceChange) -> tuple[str, str, str]:
    name = f"{change.host}/{change.model}"
    before = None if change.before is None else change.before.choose_price()
    after = None if change.after is None else change.after.choose_price()
    if after is None:
        return ("gone", name, "the known price stays")
    if before is None:
        return ("new", name, _format_price(after))
    fields = ("input", "output", "cache_read", "cache_write", "web_search", "file_search")
    parts = [
        f"{field.replace('_', ' ')} {_format_dollars(old)} → {_format_dollars(new)}"
        for field in fields
        if (old := getattr(before, field)) != (new := getattr(after, field))
    ]
    return ("changed", name, ", ".join(parts) or "long prompts, times or services")


def _list_served(names: ModelNames, preset: Preset, known: set[str]) -> list[ModelInfo]:
    """Return the models that a server on this machine has, beside those that are known."""
    from ..llm.local_models import get_local_key, list_local_models

    endpoint = find_endpoint(preset, os.environ)
    served = list_local_models(endpoint, get_local_key(preset, os.environ))
    if served is None:
        print_warning(f"no server answers at {endpoint}")
        return []
    models = ((names.find_info(f"{preset.name}/{model.id}"), model.window) for model in served)
    return [
        replace(info, context_window=info.context_window or window)
        for info, window in models
        if info is not None and info.id not in known
    ]


_OK = 200
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
    hour = None if price.cache_write is None else price.cache_write_hour
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
