"""What calls cost that have no cost in their record, by the prices of today."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from tape.clock import parse_timestamp

from .options import load_settings

if TYPE_CHECKING:
    from tape.model.entries import Cost, Usage

    from ..llm.model_names import ModelNames


class CallPrices:
    """Gives the cost of a call; the catalogue is loaded with the first call without one."""

    @cached_property
    def _names(self) -> ModelNames:
        from ..llm.model_names import ModelNames  # only where a call has no cost

        return ModelNames.from_settings(load_settings(), os.environ)

    def __call__(self, provider: str, model: str, usage: Usage, time: str) -> Cost | None:
        """Return what a call cost at its time; None if that is not known."""
        at = datetime.fromtimestamp(parse_timestamp(time) / 1_000_000, UTC)
        return self._names.compute_cost(provider, model, usage, at)
