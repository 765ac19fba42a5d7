"""The model catalogue: context windows, abilities, prices, read from `data/models.toml`.

A model that is not in the catalogue can be used all the same; its cost is unknown, which is None
and never 0. A row of the user's `[models."provider/id"]` overrides the built-in one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
from msgspec import Struct

from tape.entries import Cost, Usage

from ..errors import ConfigurationError
from .presets import overlay_row

if TYPE_CHECKING:
    from collections.abc import Mapping

Ability = Literal["tools", "vision", "reasoning"]

CATALOGUE_DATE = "2026-11-22"
"""The date of the built-in data."""
_MILLION = 1_000_000
_CLOUD_PREFIX = re.compile(
    r"^(?:(?:us|us-gov|eu|apac|au|ca|jp|global)\.)?[a-z][a-z0-9-]*\.(?=[a-z])"
)
"""What Bedrock puts before an id: where it runs, and its maker."""
_EDITION_SUFFIX = re.compile(
    r"(?:-v\d+(?::\d+)?|[-@]20\d{6}|-20\d\d-\d\d-\d\d|[-@]latest|@default)$"
)
"""Which edition of a model it is."""
_DOT_IN_NUMBER = re.compile(r"(?<=\d)\.(?=\d)")


class Price(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """USD per million tokens; without a cache price, cached tokens cost as much as input."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def compute_cost(self, usage: Usage) -> float:
        """Return the cost of `usage` in USD."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        dollars = (
            usage.input * self.input
            + usage.output * self.output
            + (usage.cache_read or 0) * read
            + (usage.cache_write or 0) * write
        )
        return dollars / _MILLION


class LongPrice(Price, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The price of a call whose prompt has more than `above` tokens, cached ones included."""

    above: int


FREE_PRICE = Price(input=0, output=0)
"""The price of a model that runs on one's own machine."""


class ModelInfo(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model; `id` is provider/model, None means it is not known."""

    id: str
    name: str = ""
    """The name for people."""
    aliases: tuple[str, ...] = ()
    """Short names that mean this model."""
    context_window: int | None = None
    """Tokens of prompt and answer together."""
    max_output: int | None = None
    """Maximum tokens of one answer."""
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    price: Price | None = None
    long: LongPrice | None = None

    @property
    def provider(self) -> str:
        """What stands before the first slash."""
        return self.id.partition("/")[0]

    @property
    def model(self) -> str:
        """The provider's own id."""
        return self.id.partition("/")[2]

    def can(self, ability: Ability) -> bool:
        """Return whether the model is known to have an ability."""
        return bool(getattr(self, ability))


def cost(usage: Usage, model: ModelInfo | None) -> Cost | None:
    """Return the cost of one call in USD, None if price or usage is unknown."""
    if model is None or model.price is None or usage == Usage():
        return None
    prompt = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)
    is_long = model.long is not None and prompt > model.long.above
    price = model.long if model.long is not None and is_long else model.price
    return Cost("USD", price.compute_cost(usage))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Models by id, newest first for each provider."""

    models: Mapping[str, ModelInfo]

    @classmethod
    def from_rows(cls, rows: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the shipped models with the user's `rows` over them.

        Raises ConfigurationError that names the row and what is wrong with it.
        """
        shipped = _load_shipped_models()
        own = {
            name: _parse_model(name, overlay_row(shipped.get(name), row))
            for name, row in rows.items()
        }
        return cls(shipped | own)

    def find_info(self, name: str) -> ModelInfo | None:
        """Return the first model of this `provider/id`, this alias, or this id alone."""
        models = self.models.values()
        return (
            self.models.get(name)
            or next((model for model in models if name in model.aliases), None)
            or next((model for model in models if name == model.model), None)
        )

    def find_same_model(self, name: str) -> ModelInfo | None:
        """Return the first model that `provider/id` is too, told by its id: the provider's first.

        Dates, `latest`, a router's prefixes and a cloud's regions and versions are no part of it.
        """
        provider, wanted = name.partition("/")[0], normalize_model_id(name)
        same = [model for model in self.models.values() if normalize_model_id(model.id) == wanted]
        own = (model for model in same if model.provider == provider)
        return next(own, same[0] if same else None)

    def list_models(self, provider: str | None = None) -> tuple[ModelInfo, ...]:
        """Return all models, or those of one provider."""
        models = self.models.values()
        return tuple(model for model in models if provider in {None, model.provider})

    def find_latest(self, provider: str, ability: Ability | None = None) -> ModelInfo | None:
        """Return the provider's first model with the ability asked for."""
        models = self.list_models(provider)
        return next((model for model in models if ability is None or model.can(ability)), None)


def normalize_model_id(name: str) -> str:
    """Return what is the same in all names of one model: claude-sonnet-4-5, gpt-4o.

    A word of a router after a colon, such as `:free`, makes it a model of its own.
    """
    model = _CLOUD_PREFIX.sub("", name.lower().rpartition("/")[2])
    while (shorter := _EDITION_SUFFIX.sub("", model)) != model:
        model = shorter
    return _DOT_IN_NUMBER.sub("-", model)


def _parse_model(name: str, row: Mapping[str, Any]) -> ModelInfo:
    provider, _, model = name.partition("/")
    if not (provider and model):
        raise ConfigurationError(f"models.{name!r}: write a model as provider/model")
    try:
        return msgspec.convert({**row, "id": name}, ModelInfo)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"models.{name!r}: {error}") from error


@cache
def _load_shipped_models() -> dict[str, ModelInfo]:
    import tomllib  # noqa: PLC0415 (only needed to look up a model)

    rows = tomllib.loads((files(__package__) / "data" / "models.toml").read_text("utf-8"))
    return {name: _parse_model(name, {"tools": True, **row}) for name, row in rows.items()}
