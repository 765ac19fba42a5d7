"""Time as it stands on a tape: UTC with microseconds, as text and as a number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from time import time_ns

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}
"""Seconds of each unit of an age."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """Return microseconds since 1970: the clock every writer uses unless it is given another."""
    return time_ns() // 1000


def stamp(micros: int) -> str:
    """Return microseconds since 1970 as the text that stands on a tape."""
    seconds, rest = divmod(micros, 1_000_000)
    return f"{_second(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    time = _EPOCH + timedelta(seconds=seconds)
    return time.replace(tzinfo=None).isoformat(timespec="seconds")


def micros(time: str) -> int:
    """Return a tape's time text as microseconds since 1970."""
    return (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1)


def moment(time: str) -> str:
    """Return a time of a tape as people read it, in UTC, to the second."""
    return f"{time[:10]} {time[11:19]}"
