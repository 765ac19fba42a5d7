"""What the headers of an answer say of rate limits.

There are two families of names: `anthropic-ratelimit-KIND-WHAT` with
dates, and `x-ratelimit-WHAT-KIND` with durations such as 6m0s. What cannot be read is as good as
not there.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from ..types import Allowance, RateLimit
from .failures import compute_wait

if TYPE_CHECKING:
    from collections.abc import Mapping


_NAMES = ("anthropic-ratelimit-{kind}-{what}", "x-ratelimit-{what}-{kind}")
_ONLY_REQUESTS = "x-ratelimit-{what}"
_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_STEP = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_DURATION = re.compile(rf"(?:{_STEP.pattern})+")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d+)?")
_A_DATE = 1e9
"""Numbers from here on are seconds since 1970, or milliseconds."""
_IN_MILLISECONDS = 1e11


def parse_rate_limit(headers: Mapping[str, str]) -> RateLimit | None:
    """Return what response headers, names in small letters, say of limits; None for nothing."""
    limits = {name: value for name, value in headers.items() if "ratelimit" in name}
    if not limits:
        return None
    requests = _parse_allowance(limits, "requests") or _parse_headers(limits, _ONLY_REQUESTS, "")
    tokens = _parse_allowance(limits, "tokens")
    return RateLimit(requests, tokens) if requests or tokens else None


def _parse_allowance(headers: Mapping[str, str], kind: str) -> Allowance | None:
    return next(filter(None, (_parse_headers(headers, name, kind) for name in _NAMES)), None)


def _parse_headers(headers: Mapping[str, str], name: str, kind: str) -> Allowance | None:
    limit, remaining, reset = (
        headers.get(name.format(kind=kind, what=what)) for what in ("limit", "remaining", "reset")
    )
    allowance = Allowance(
        _parse_limit_count(limit), _parse_limit_count(remaining), _parse_seconds(reset)
    )
    return None if allowance == Allowance() else allowance


def _parse_limit_count(text: str | None) -> int | None:
    return int(float(text)) if text and _NUMBER.fullmatch(text) else None


def _parse_seconds(text: str | None) -> float | None:
    """Return the seconds until a moment, told as a duration, a number or a date."""
    if not text:
        return None
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _STEP.findall(text))
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number < _A_DATE:
            return number
        return compute_wait(number / 1000 if number >= _IN_MILLISECONDS else number)
    try:
        return compute_wait(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None
