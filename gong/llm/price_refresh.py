"""Newer prices from a file in the form of genai-prices' JSON: checked, compared, kept.

A file that is cut, or in a form that this program does not know, is refused as a whole and changes
nothing. A price that is a thousand times another than the known one, or beyond every model's, does
not count, and is named. What is kept goes over the lists that came with the program.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw

from ..errors import ConfigurationError
from ..private_files import write_private_file
from .models import CATALOGUE_DATE
from .price_lists import (
    REFRESHED,
    HostList,
    ListedModel,
    NameRule,
    PriceLists,
    Rates,
    RefreshedLists,
    SteppedAmount,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from .price_lists import Rate

PRICES_URL = (
    "https://raw.githubusercontent.com/pydantic/genai-prices/main/prices/new_data/v2/data.json"
)
MAX_FILE_BYTES = 32 << 20
_MAX_FACTOR = 1_000
"""How many times another price than the known one is no change of price any more."""
_MAX_DOLLARS = 10_000
"""USD per million tokens, or per thousand searches, above those of every model."""
_MAX_WRONG_SHARE = 0.25
_FEW = 10


class PriceChange(NamedTuple):
    """What is new, gone or changed for one model."""

    host: str
    model: str
    before: Rates | None
    after: Rates | None


class CheckedLists(NamedTuple):
    """Lists that may be kept, and the rows that do not count."""

    hosts: tuple[HostList, ...]
    refused: tuple[str, ...]
    """Why each row does not count, with its host and model."""


def check_lists(data: bytes, known: PriceLists, names: Collection[str]) -> CheckedLists:
    """Return the lists of the hosts `names` in a file; raises ConfigurationError.

    `known` are those that came with the program: they stay for every row that is refused.
    """
    lists = _decode_lists(data)
    hosts, refused = list[HostList](), list[str]()
    compared = 0
    for host in lists.hosts.values():
        if host.id not in names:
            continue
        rows = {row.id: row for row in known.list_models(host.id)}
        accepted = list[ListedModel]()
        for row in _decode_models(lists, host.id):
            before = rows.get(row.id)
            compared += before is not None
            if reason := _find_lie(row, before):
                refused.append(f"{host.id}/{row.id}: {reason}")
            elif any(True for rates in row.list_rates() if rates.choose_price()):
                accepted.append(row)
        encoded = Raw(msgspec.json.encode(accepted))
        hosts.append(msgspec.structs.replace(host, models=encoded))
    if not hosts:
        raise ConfigurationError("the file has prices of no host that gong knows")
    if len(refused) > _FEW and len(refused) > compared * _MAX_WRONG_SHARE:
        raise ConfigurationError(
            f"{len(refused)} prices in the file cannot be: {refused[0]}; is it another unit?"
        )
    return CheckedLists(tuple(hosts), tuple(refused))


def save_lists(lists: CheckedLists, cache: Path) -> Path:
    """Keep checked lists in the cache folder and return the file; raises OSError."""
    file = cache / REFRESHED
    write_private_file(file, msgspec.json.encode(RefreshedLists(CATALOGUE_DATE, lists.hosts)))
    return file


def _decode_lists(data: bytes) -> PriceLists:
    try:
        value = msgspec.json.decode(data, type=list[Raw] | dict[str, Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigurationError(
            f"the file cannot be read as JSON, as if it were cut: {error}"
        ) from None
    if isinstance(value, dict):
        raise ConfigurationError(
            "the file is in a newer form than this gong knows, or in another one: it reads version "
            "2 of genai-prices' data, an array of providers"
        )
    try:
        return PriceLists.parse(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigurationError(f"the file is no list of prices: {error}") from None


def _decode_models(lists: PriceLists, host: str) -> tuple[ListedModel, ...]:
    try:
        rows = lists.list_models(host)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigurationError(
            f"the prices of {host} in the file cannot be read: {error}"
        ) from None
    for row in rows:
        if not _is_known_rule(row.match):
            raise ConfigurationError(
                f"{host}/{row.id} in the file has a rule for names that this gong does not know: "
                "it is newer, or damaged"
            )
        for pattern in row.match.list_patterns():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigurationError(
                    f"{host}/{row.id} in the file has a pattern that is none: {error}"
                ) from None
    return rows


def _is_known_rule(rule: NameRule) -> bool:
    count = sum(getattr(rule, name) is not None for name in rule.__struct_fields__)
    parts = (*(rule.any_of or ()), *(rule.all_of or ()))
    return count == 1 and all(_is_known_rule(part) for part in parts)


def _find_lie(row: ListedModel, before: ListedModel | None) -> str:
    """Return why the prices of a row cannot be true; "" if they can."""
    for rates in row.list_rates():
        for name in rates.__struct_fields__:
            for amount in _list_amounts(getattr(rates, name)):
                if amount > _MAX_DOLLARS:
                    return f"{name} is ${amount:,.10g}"
    known, new = (_get_base_rates(each) for each in (before, row))
    for name in new.__struct_fields__ if before is not None else ():
        old_amounts, new_amounts = (_list_amounts(getattr(rates, name)) for rates in (known, new))
        old, amount = next(old_amounts, 0), next(new_amounts, 0)
        if old and amount and not 1 / _MAX_FACTOR < amount / old < _MAX_FACTOR:
            return f"{name} is ${amount:.10g} and was ${old:.10g}"
    return ""


def _get_base_rates(row: ListedModel | None) -> Rates:
    """Return the newest of the usual rates."""
    rates = (
        ()
        if row is None
        else (row.prices,)
        if isinstance(row.prices, Rates)
        else tuple(timed.prices for timed in row.prices)
    )
    return rates[-1] if rates else Rates()


def _list_amounts(rate: Rate | None) -> Iterator[float]:
    if isinstance(rate, SteppedAmount):
        yield rate.base
        yield from (step.price for step in rate.tiers)
    elif rate is not None:
        yield rate


def list_changes(lists: CheckedLists, known: PriceLists) -> list[PriceChange]:
    """Return what lists change of those that are known."""
    return [change for host in lists.hosts for change in _compare_host(host, known)]


def _compare_host(host: HostList, known: PriceLists) -> Iterator[PriceChange]:
    before = {row.id: row for row in known.list_all(host.id)}
    own = {row.id for row in known.list_models(host.id)}
    after = {row.id: row for row in PriceLists({host.id: host}).list_models(host.id)}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if new is None and name not in own:
            continue  # an earlier refresh has said so
        if old is None or new is None or old.prices != new.prices:
            yield PriceChange(
                host.id,
                name,
                None if old is None else _get_base_rates(old),
                None if new is None else _get_base_rates(new),
            )
