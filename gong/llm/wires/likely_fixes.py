"""What is likely to be wrong where a host refuses a call: the rows of `data/fixes.toml`; pure.

A clock that is wrong goes before them: signatures and tokens hold for minutes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ..models import load_tables

_MAX_GAP = 240.0
"""Seconds that a clock may be wrong without harm; AWS takes five minutes."""
_ABOUT_TIME = r"signature|expired|not yet|skew|clock|\bnbf\b|\biat\b"
_AREAS = {"us-gov": "us-gov", "us": "us", "eu": "eu", "ap": "apac", "ca": "us", "sa": "us"}
"""The beginning of a region → what its inference profiles begin with."""


class _Fix(Struct, frozen=True, forbid_unknown_fields=True):
    """A row: what it fits, and what to do."""

    statuses: tuple[int, ...]
    fix: str
    at: str = ""
    not_at: str = ""
    api: str = ""
    words: str = ""
    key: str = ""


class RefusedCall(NamedTuple):
    """What is known of a call that was refused."""

    status: int
    words: str
    """What the host says, and its code."""
    provider: str
    api: str
    endpoint: str
    model: str
    deployment: str
    place: str = ""
    """A region or location; "" without one."""
    project: str = ""
    version: str = ""
    key_source: str = ""
    clock_gap: float | None = None
    """Seconds that the host's clock is ahead of this machine's; None if that is not known."""


def find_fix(call: RefusedCall) -> str:
    """Return what to do about a refusal; "" if no row fits."""
    if call.status in {401, 403} and (text := _judge_clock(call)):
        return text
    where = f"{call.provider} {call.endpoint}"
    for row in _load_fixes():
        patterns = ((row.at, where), (row.words, call.words), (row.key, call.key_source))
        if (
            call.status in row.statuses
            and call.api.startswith(row.api)
            and all(re.search(pattern, text, re.IGNORECASE) for pattern, text in patterns)
            and not (row.not_at and re.search(row.not_at, where, re.IGNORECASE))
        ):
            return row.fix.format(
                **call._asdict()
                | {
                    "place": call.place or "the region",
                    "project": call.project or "PROJECT",
                    "profile": call.key_source.removeprefix("profile ").partition(" ")[0],
                    "prefixed": _add_area(call.deployment, call.place),
                }
            )
    return ""


def _judge_clock(call: RefusedCall) -> str:
    if call.clock_gap is None or abs(call.clock_gap) < _MAX_GAP:
        return ""
    if not re.search(_ABOUT_TIME, call.words, re.IGNORECASE):
        return ""
    minutes = round(abs(call.clock_gap) / 60)
    side = "behind" if call.clock_gap > 0 else "ahead of"
    return f"the clock of this machine is {minutes} min {side} the host's: set it"


def _add_area(model: str, region: str) -> str:
    """Return the inference profile of a model for a region: us.anthropic.claude-x."""
    if re.match(r"(?:us|us-gov|eu|apac|au|ca|jp|global)\.|arn:", model):
        return model
    areas = (area for start, area in _AREAS.items() if region.startswith(f"{start}-"))
    return f"{next(areas, 'global')}.{model}"


@cache
def _load_fixes() -> tuple[_Fix, ...]:
    return msgspec.convert(load_tables("fixes")["fixes"], tuple[_Fix, ...])
