"""The prices of hosts, by host and model, in the form of genai-prices' JSON (version 2).

    [{"id": "aws", "models": [{"id": …, "match": {"contains": …}, "prices": {"input_mtok": 3, …}}]}]

`data/prices.json` comes with the program; a file that `gong models refresh` wrote goes over it
until a newer program comes. A host's models are decoded when one of them is needed.
What a rule does not say is not guessed: a model that no rule of a host matches has no price there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

import msgspec
from msgspec import Meta, Raw, Struct

from .models import CATALOGUE_DATE
from .prices import LongPrice, Price

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class PriceStep(Struct, frozen=True):
    """Another price for prompts of more than `start` tokens."""

    start: Count
    price: Amount


class SteppedAmount(Struct, frozen=True):
    """A price that depends on the length of the prompt."""

    base: Amount
    tiers: tuple[PriceStep, ...] = ()

    def choose(self, prompt: int) -> float:
        """Return the price for a prompt of this length."""
        steps = [step for step in self.tiers if prompt > step.start]
        return max(steps, key=lambda step: step.start).price if steps else self.base


Rate = Amount | SteppedAmount


class Rates(Struct, frozen=True, omit_defaults=True):
    """USD per million tokens, or per thousand searches; other kinds of prices are left out."""

    input_mtok: Rate | None = None
    output_mtok: Rate | None = None
    cache_read_mtok: Rate | None = None
    cache_write_mtok: Rate | None = None
    cache_write_1h_mtok: Rate | None = None
    web_searches_kcount: Rate | None = None
    storage_searches_kcount: Rate | None = None

    def overlay(self, above: Rates) -> Rates:
        """Return these with the known ones of `above` over them."""
        values = {name: getattr(above, name) for name in self.__struct_fields__}
        known = {name: value for name, value in values.items() if value is not None}
        return msgspec.structs.replace(self, **known)

    def list_steps(self) -> tuple[int, ...]:
        """Return the prompt lengths above which something costs more, in order."""
        stepped = (getattr(self, name) for name in self.__struct_fields__)
        starts = {
            step.start for rate in stepped if isinstance(rate, SteppedAmount) for step in rate.tiers
        }
        return tuple(sorted(starts))

    def choose_price(self, prompt: int = 0) -> Price | None:
        """Return the price of a call with a prompt of this length; None without any price."""
        if self.input_mtok is None and self.output_mtok is None:
            return None

        def choose(rate: Rate | None) -> float | None:
            return rate.choose(prompt) if isinstance(rate, SteppedAmount) else rate

        prompt_rate = choose(self.input_mtok) or 0.0
        write, hour = choose(self.cache_write_mtok), choose(self.cache_write_1h_mtok)
        write_rate = prompt_rate if write is None else write
        return Price(
            input=prompt_rate,
            output=choose(self.output_mtok) or 0.0,
            cache_read=choose(self.cache_read_mtok),
            cache_write=write,
            cache_write_hour=write_rate if hour is None else hour,
            web_search=choose(self.web_searches_kcount),
            file_search=choose(self.storage_searches_kcount),
        )


class Period(Struct, frozen=True, omit_defaults=True):
    """When a price holds: from a day on, or at some hours of each day. Times are UTC."""

    start_date: date | None = None
    start_time: time | None = None
    end_time: time | None = None

    def holds(self, at: datetime) -> bool:
        """Return whether a moment is in the period."""
        at = at.astimezone(UTC)
        if self.start_date is not None and at.date() < self.start_date:
            return False
        if self.start_time is None or self.end_time is None:
            return True
        begin, end, now = _to_utc(self.start_time), _to_utc(self.end_time), at.time()
        return begin <= now < end if begin <= end else now >= begin or now < end


def _to_utc(clock: time) -> time:
    if clock.tzinfo is None:
        return clock
    return datetime.combine(date(1970, 1, 2), clock).astimezone(UTC).time()


class TimedRates(Struct, frozen=True, omit_defaults=True):
    """Rates that hold for a time; of several the last that holds counts."""

    prices: Rates
    constraint: Period | None = None


class ServiceRates(Struct, frozen=True, omit_defaults=True):
    """Rates of calls with another service; those that are not given are the usual ones."""

    when: dict[str, str]
    prices: Rates
    constraint: Period | None = None


class NameRule(Struct, frozen=True, omit_defaults=True, rename={"any_of": "or", "all_of": "and"}):
    """Which names of a model a row is for: exactly one of the fields is given."""

    equals: str | None = None
    starts_with: str | None = None
    ends_with: str | None = None
    contains: str | None = None
    regex: str | None = None
    any_of: tuple[NameRule, ...] | None = None
    all_of: tuple[NameRule, ...] | None = None

    def matches(self, name: str) -> bool:
        """Return whether a name in small letters is one of the model's."""
        if self.any_of is not None:
            return any(rule.matches(name) for rule in self.any_of)
        if self.all_of is not None:
            return all(rule.matches(name) for rule in self.all_of)
        if self.regex is not None:
            return re.search(self.regex, name) is not None
        tests: tuple[tuple[str | None, Callable[[str], bool]], ...] = (
            (self.equals, name.__eq__),
            (self.starts_with, name.startswith),
            (self.ends_with, name.endswith),
            (self.contains, name.__contains__),
        )
        return any(test(text.lower()) for text, test in tests if text is not None)

    def list_patterns(self) -> Iterator[str]:
        """Yield the regular expressions in it."""
        if self.regex is not None:
            yield self.regex
        for rule in (*(self.any_of or ()), *(self.all_of or ())):
            yield from rule.list_patterns()


_SERVICES = {
    "batch": {"processing": "batch"},
    "fast": {"speed": "fast", "service_tier": "fast"},
}
"""The services that the lists name in words of their own; others are a `service_tier`."""


class ListedModel(Struct, frozen=True, omit_defaults=True):
    """One model at one host."""

    id: str
    match: NameRule
    prices: Rates | tuple[TimedRates, ...] = ()
    context_window: Count | None = None
    price_variants: tuple[ServiceRates, ...] | None = None

    def choose_rates(self, at: datetime, service: str | None = None) -> Rates:
        """Return what holds at a moment for a service, such as `flex`; None is the usual one."""
        usual = self._choose_usual(at)
        if not service:
            return usual
        context = _SERVICES.get(service, {"service_tier": service}).items()
        chosen = Rates()
        for variant in self.price_variants or ():
            is_active = variant.constraint is None or variant.constraint.holds(at)
            if is_active and variant.when and variant.when.items() <= context:
                chosen = variant.prices.overlay(chosen)
        return usual.overlay(chosen)

    def list_rates(self) -> Iterator[Rates]:
        """Yield all rates of the model, of any time and service."""
        if isinstance(self.prices, Rates):
            yield self.prices
        else:
            yield from (timed.prices for timed in self.prices)
        yield from (variant.prices for variant in self.price_variants or ())

    def _choose_usual(self, at: datetime) -> Rates:
        if isinstance(self.prices, Rates):
            return self.prices
        for timed in reversed(self.prices):
            if timed.constraint is None or timed.constraint.holds(at):
                return timed.prices
        return self.prices[0].prices if self.prices else Rates()


class HostList(Struct, frozen=True, omit_defaults=True):
    """The models of one host as JSON, and the hosts whose prices it charges for others."""

    id: str
    models: Raw
    fallback_model_providers: tuple[str, ...] | None = None


class ListedPrice(NamedTuple):
    """What a host charges for a call, or None; and what is known of long prompts."""

    price: Price | None
    long: LongPrice | None = None


@dataclass(frozen=True)
class PriceLists:
    """The lists of all hosts, by their names there; what is not in one is taken from `floor`."""

    hosts: dict[str, HostList]
    floor: PriceLists | None = None
    _decoded: dict[str, tuple[ListedModel, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the lists in a file's JSON; raises msgspec.DecodeError."""
        hosts = msgspec.json.decode(data, type=tuple[HostList, ...])
        return cls({host.id: host for host in hosts})

    def list_models(self, host: str) -> tuple[ListedModel, ...]:
        """Return the models of a host, none of an unknown one; raises msgspec.DecodeError."""
        if host not in self._decoded:
            known = self.hosts.get(host)
            self._decoded[host] = (
                msgspec.json.decode(known.models, type=tuple[ListedModel, ...]) if known else ()
            )
        return self._decoded[host]

    def list_all(self, host: str) -> tuple[ListedModel, ...]:
        """Return the models of a host, and those of the floor that are not among them."""
        rows = self.list_models(host)
        names = {row.id for row in rows}
        below = self.floor.list_all(host) if self.floor is not None else ()
        return (*rows, *(row for row in below if row.id not in names))

    def find_model(self, host: str, model: str) -> ListedModel | None:
        """Return the row of a model at a host, or at those whose prices it charges."""
        name, known = model.lower(), self.hosts.get(host)
        others = (known.fallback_model_providers or ()) if known else ()
        try:
            rows = (row for owner in (host, *others) for row in self.list_models(owner))
            match = next((row for row in rows if row.match.matches(name)), None)
        except msgspec.DecodeError:  # a refreshed file that was changed since
            match = None
        if match is None and self.floor is not None:
            return self.floor.find_model(host, model)
        return match


def choose_listed_price(
    row: ListedModel, at: datetime, service: str | None = None, prompt: int = 0
) -> ListedPrice:
    """Return the price for a prompt of this length, and that for the next longer ones."""
    rates = row.choose_rates(at, service)
    price = rates.choose_price(prompt)
    above = next((start for start in rates.list_steps() if start > prompt), None)
    longer = None if above is None else rates.choose_price(above + 1)
    if price is None or longer is None or above is None:
        return ListedPrice(price)
    return ListedPrice(price, LongPrice(**msgspec.structs.asdict(longer), above=above))


SHIPPED = Path(__file__).parent / "data" / "prices.json"
REFRESHED = "prices.json"
"""The file in the cache folder that `gong models refresh` writes."""


def load_price_lists(cache: Path | None) -> PriceLists:
    """Return the lists that came with the program, with newer ones in `cache` over them.

    A file there that is older than the program, or damaged, does not count.
    """
    shipped = PriceLists.parse(SHIPPED.read_bytes())
    newer = None if cache is None else read_refreshed(cache)
    return PriceLists(newer.hosts, shipped) if newer else shipped


class RefreshedLists(Struct, frozen=True):
    """The file that a refresh wrote: for which data of the program, and the newer lists."""

    over: str
    """The `CATALOGUE_DATE` of the program that wrote it: one with newer data reads it no more."""
    hosts: tuple[HostList, ...]


def read_refreshed(cache: Path) -> PriceLists | None:
    """Return the lists of the last refresh; None if there are none that count."""
    try:
        refreshed = msgspec.json.decode((cache / REFRESHED).read_bytes(), type=RefreshedLists)
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None
    if refreshed.over != CATALOGUE_DATE:
        return None
    return PriceLists({host.id: host for host in refreshed.hosts})
