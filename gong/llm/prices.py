"""What tokens cost: the prices of one model, and the cost of a call by them. Pure.

A price that is not known is None and never 0. The price of a call depends on the length of its
prompt, on the service that it was given and on when it was made; `Price` is what is left when all
three are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tape.model.entries import Usage

_MILLION, _THOUSAND = 1_000_000, 1_000
_HOUR_FACTOR = 2
"""A prompt that is cached for an hour costs twice its input, where no price for it is known."""


class Price(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """USD per million tokens; without a cache price, cached tokens cost as much as input."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_hour: float | None = None
    """Of what is cached for an hour; None is twice the input."""
    web_search: float | None = None
    """USD per thousand searches of the web by the provider."""
    file_search: float | None = None
    """USD per thousand searches of stored files by the provider."""

    def compute_cost(self, usage: Usage) -> float:
        """Return the cost of `usage` in USD."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        hourly = self.cache_write_hour
        hour = min(usage.cache_write_hour or 0, usage.cache_write or 0)
        dollars = (
            usage.input * self.input
            + usage.output * self.output
            + (usage.cache_read or 0) * read
            + ((usage.cache_write or 0) - hour) * write
            + hour * (self.input * _HOUR_FACTOR if hourly is None else hourly)
        )
        return dollars / _MILLION + self._compute_searches(usage.server_tools or {}) / _THOUSAND

    def _compute_searches(self, counts: Mapping[str, int]) -> float:
        return counts.get("web_search", 0) * (self.web_search or 0) + counts.get(
            "file_search", 0
        ) * (self.file_search or 0)


class LongPrice(Price, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The price of a call whose prompt has more than `above` tokens, cached ones included."""

    above: int


FREE_PRICE = Price(input=0, output=0)
"""The price of a model that runs on one's own machine."""


def count_prompt(usage: Usage) -> int:
    """Return the tokens of a prompt, cached ones included."""
    return usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)
