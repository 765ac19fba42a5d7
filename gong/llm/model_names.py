"""Resolves model names: exact, by alias, by the catalogue, by a family's name, in this order.

Only names that people type are resolved (`-m`, `/model`, `gong models`); the client never guesses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.model.entries import NO_JSON, Usage

from ..errors import ConfigurationError, UnknownModel
from ..private_files import locate_cache_folder
from .models import (
    Catalogue,
    ModelInfo,
    cost,
    find_limits,
    load_presets,
    normalize_model_id,
    strip_model_id,
)
from .prices import FREE_PRICE, count_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tape.model.entries import Cost

    from ..config import Settings
    from .models import Ability, Preset, ProfileName
    from .price_lists import ListedModel, PriceLists

Feature = Literal["tools", "thinking", "vision", "streaming", "objects"]
"""What a model may be able to do: objects are answers that follow a schema."""
BUILT_IN_PROVIDERS = ("offline", "scripted")
"""Providers without a preset: they are built in and free."""
PROGRAMS_MODEL = "default"
"""The name of the model that a program of others chooses itself."""
_PASSED_ON = ("anthropic", "openai", "google", "xai")
"""Makers for whose price clouds and routers sell their models."""
_OWN_PRICE = r":[a-z]+$|gpt-oss"
"""Names that each host has a price of its own for: a word of a router, and open weights."""
_KNOWN_NAMES = "anthropic/MODEL, offline/rules, scripted/FILE.json"


class _Offer(NamedTuple):
    """Where the price of a model may be: in one of these rows, first one first, else in `info`."""

    info: ModelInfo | None
    rows: tuple[ListedModel, ...]


@dataclass(frozen=True)
class ModelNames:
    """The providers, models and aliases of a user."""

    presets: Mapping[str, Preset]
    models: Mapping[str, Mapping[str, Any]]
    """The user's rows for models."""
    aliases: Mapping[str, str]
    """The user's aliases, which override the catalogue's."""
    cache: Path | None = None
    """The folder where newer prices may be; None for those that come with the program."""

    @classmethod
    def from_settings(cls, settings: Settings, environ: Mapping[str, str] | None = None) -> Self:
        """Return the built-in names with the user's over them; raises ConfigurationError."""
        presets = load_presets(settings.providers, environ)
        cache = None if environ is None else locate_cache_folder(environ)
        return cls(presets, settings.models, settings.aliases, cache)

    @cached_property
    def catalogue(self) -> Catalogue:
        """All models, read on first use."""
        return Catalogue.from_rows(self.models)

    def resolve_name(self, name: str) -> str:
        """Return `provider/model` for a name that was typed.

        Raises UnknownModel with near ones, ConfigurationError for a provider that is not served.
        """
        lower = {alias.lower(): full for alias, full in self.aliases.items()}
        name = self.aliases.get(name) or lower.get(name.lower(), name)
        provider, slash, model = name.partition("/")
        preset = self.presets.get(provider)
        if preset is not None and preset.later:
            raise ConfigurationError(preset.unserved)
        if preset is not None and preset.program and not model:
            return f"{provider}/{PROGRAMS_MODEL}"
        if slash and model and (provider in self.presets or provider in BUILT_IN_PROVIDERS):
            return name
        if info := self.catalogue.find_info(name):
            return info.id
        if name and not slash and preset is None:
            for owner in self.presets.values():
                if owner.has_family(name):
                    return f"{owner.name}/{name}"
        raise self.build_unknown_error(name)

    def find_info(self, name: str) -> ModelInfo | None:
        """Return the catalogue's facts about `provider/model`; a local one is free.

        Facts about the same model under another name or at another host count as well, except
        its price, unless both are billed together.
        """
        provider = name.partition("/")[0]
        info = self.catalogue.models.get(name)
        preset = self.presets.get(provider)
        if provider not in BUILT_IN_PROVIDERS and not (preset and preset.local):
            return _add_limits(name, info or self._find_same_model(name))
        if info is None:
            return ModelInfo(id=name, price=FREE_PRICE)
        return info if info.price else replace(info, price=FREE_PRICE)

    @cached_property
    def price_lists(self) -> PriceLists:
        """What hosts charge, read on first use."""
        from .price_lists import load_price_lists  # only where something costs

        return load_price_lists(self.cache)

    def compute_cost(
        self, provider: str, model: str, usage: Usage, at: datetime | None = None
    ) -> Cost | None:
        """Return what a call cost at a moment, or now; None where the price is not known."""
        if usage == Usage():
            return None
        info = self.find_priced(
            f"{provider}/{model}", at, service=usage.service, prompt=count_prompt(usage)
        )
        return cost(usage, info)

    def find_priced(
        self,
        name: str,
        at: datetime | None = None,
        *,
        service: str | None = None,
        prompt: int = 0,
    ) -> ModelInfo | None:
        """Return the facts about a model with the price of a call; the first of these counts.

        1. the user's row  2. the host's list  3. the host's row in the catalogue
        4. the list and the row of its maker, whose price a cloud or a router passes on
        """
        from .price_lists import choose_listed_price  # loaded with the lists

        if name not in self._offers:
            self._offers[name] = self._find_offer(name)
        offer, moment = self._offers[name], at or datetime.now(UTC)
        for row in offer.rows:
            listed = choose_listed_price(row, moment, service, prompt)
            if listed.price is not None:
                info = offer.info or ModelInfo(id=name)
                return replace(info, price=listed.price, long=listed.long)
        return offer.info

    @cached_property
    def _offers(self) -> dict[str, _Offer]:
        """What was found of the prices of models, by their names."""
        return {}

    def _find_offer(self, name: str) -> _Offer:
        info, (provider, _, model) = self.find_info(name), name.partition("/")
        preset = self.presets.get(provider)
        is_free = provider in BUILT_IN_PROVIDERS or (preset is not None and preset.local)
        if is_free or self._has_own_price(name):
            return _Offer(info, ())
        rows = self._list_rows(preset, model, strip_model_id(model)) if preset else ()
        if info is not None and info.price is not None:
            return _Offer(info, rows)
        maker = self._find_maker(model)
        if maker is None:
            return _Offer(info, rows)
        plain_id = strip_model_id(model)
        rows = (*rows, *self._list_rows(maker, plain_id, normalize_model_id(model)))
        row = self.catalogue.find_same_model(f"{maker.name}/{model}")
        if row is not None and row.provider == maker.name:
            info = replace(info or ModelInfo(id=name), price=row.price, long=row.long)
        return _Offer(info, rows)

    def _has_own_price(self, name: str) -> bool:
        """Return whether the user's row of the same model at its provider has a price."""
        own = self.catalogue.models.get(name) or self.catalogue.find_same_model(name)
        return (
            own is not None
            and self._get_paying_provider(own.id) == self._get_paying_provider(name)
            and "price" in self.models.get(own.id, {})
        )

    def _list_rows(self, preset: Preset, *models: str) -> tuple[ListedModel, ...]:
        """Return the rows of a provider's list for these names of one model."""
        host = preset.price_list or preset.name
        rows = (self.price_lists.find_model(host, model) for model in dict.fromkeys(models))
        return tuple(row for row in rows if row is not None)

    def _find_maker(self, model: str) -> Preset | None:
        """Return the maker of a model, where hosts pass its price on."""
        if re.search(_OWN_PRICE, model):
            return None
        makers = (self.presets[name] for name in _PASSED_ON if name in self.presets)
        return next((maker for maker in makers if maker.has_family(model)), None)

    def supports(self, name: str, feature: Feature) -> bool | None:
        """Return whether `provider/model` has a feature; None where that is not known."""
        preset, info = self.presets.get(name.partition("/")[0]), self.find_info(name)
        if feature == "streaming":
            return True
        if preset is not None and preset.program and feature in {"tools", "vision", "objects"}:
            return False
        if feature == "objects":
            return None if preset is None else preset.quirks.json_schema
        if feature == "vision" and preset is not None and not preset.quirks.images:
            return False
        ability: Ability = "reasoning" if feature == "thinking" else feature
        known: bool | None = None if info is None else getattr(info, ability)
        return known

    def get_context_window(self, provider: str, model: str) -> int | None:
        """Return a model's context window in tokens, None if unknown."""
        info = self.find_info(f"{provider}/{model}")
        return info.context_window if info else None

    def sees_images(self, provider: str, model: str) -> bool:
        """Return whether pictures may be sent; True for an unknown model."""
        preset, info = self.presets.get(provider), self.find_info(f"{provider}/{model}")
        takes = preset is None or preset.quirks.images
        return takes and (info is None or info.vision is not False)

    def get_options(self, name: str) -> Raw:
        """Return the options of `provider/model` for the body of requests; NO_JSON without any.

        They are those of its row, or of the same model's at the same provider. Raises
        ConfigurationError where they set what gong sets itself.
        """
        row = self.catalogue.models.get(name) or self.catalogue.find_same_model(name)
        if row is None or row.provider != name.partition("/")[0] or not row.provider_options:
            return NO_JSON
        row.check_options(self.presets)
        return Raw(msgspec.json.encode(row.provider_options))

    def choose_profile(self, name: str) -> ProfileName:
        """Return the profile of `provider/model`: its row's, its family's, its provider's."""
        info, provider = self.find_info(name), name.partition("/")[0]
        if info is not None and info.profile is not None:
            return info.profile
        if provider in BUILT_IN_PROVIDERS:
            return "default"
        for owner in self.presets.values():
            if owner.profile is not None and owner.has_family(name):
                return owner.profile
        preset = self.presets.get(provider)
        return (preset and preset.profile) or "default"

    def build_unknown_error(self, name: str) -> UnknownModel:
        """Return the error for an unknown name, with similar names."""
        provider, slash, model = name.partition("/")
        words = [*self.aliases]
        for info in self.catalogue.models.values():
            words += (info.id, info.model, *info.aliases)
        near = get_close_matches(name, words, n=3, cutoff=0.6)
        if provider in self.presets and not model:
            near = [f"{provider}/{self.presets[provider].default_model or 'MODEL'}"]
        elif slash:
            near += [
                f"{close_match}/{model}"
                for close_match in get_close_matches(provider, self.presets, n=1)
            ]
        hint = f"did you mean {', '.join(near)}? " if near else ""
        return UnknownModel(
            f"unknown model {name!r}: {hint}known are {_KNOWN_NAMES} and what gong models lists; "
            "set one with -m"
        )

    def _find_same_model(self, name: str) -> ModelInfo | None:
        same_model = self.catalogue.find_same_model(name)
        if same_model is None:
            return None
        has_same_payer = self._get_paying_provider(name) == self._get_paying_provider(same_model.id)
        price, long = (same_model.price, same_model.long) if has_same_payer else (None, None)
        return replace(same_model, id=name, aliases=(), price=price, long=long)

    def _get_paying_provider(self, name: str) -> str:
        """Return the provider whose key pays for a model."""
        provider = name.partition("/")[0]
        preset = self.presets.get(provider)
        return preset.key_name if preset else provider


def _add_limits(name: str, info: ModelInfo | None) -> ModelInfo | None:
    """Return the facts about a model with the limits that are known under its name."""
    if info is not None and info.context_window and info.max_output:
        return info
    window, output = find_limits(name)
    if window is None and output is None:
        return info
    info = info or ModelInfo(id=name)
    return replace(
        info,
        context_window=info.context_window or window,
        max_output=info.max_output or output,
    )
