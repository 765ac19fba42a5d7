"""Time as it stands on a tape: UTC with microseconds, as text and as a number."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from time import time_ns

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}
"""Seconds of each unit of an age."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHAPE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z", re.ASCII)
_LAST_YEAR = "9999"
"""The first year of which no time is taken: entries that follow need a later one."""
_END = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def now() -> int:
    """Return microseconds since 1970: the clock every writer uses unless it is given another."""
    return time_ns() // 1000


def after(parent: int, clock: int) -> int:
    """Return when an entry is written whose parent is of this time: always later than that.

    All are microseconds since 1970. Raises Damaged behind the last microsecond of the year 9999.
    """
    later = max(clock, parent + 1)
    if later > _END:
        from .errors import Damaged  # noqa: PLC0415 (a list of tapes needs none)

        raise Damaged(
            f"nothing can follow the entry of {stamp(parent)}: no time is later; go on from an "
            "earlier one, as `tape fork` does"
        )
    return later


def stamp(micros: int) -> str:
    """Return microseconds since 1970 as the text that stands on a tape."""
    seconds, rest = divmod(micros, 1_000_000)
    return f"{_second(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    time = _EPOCH + timedelta(seconds=seconds)
    return time.replace(tzinfo=None).isoformat(timespec="seconds")


def micros(time: str) -> int:
    """Return a tape's time text as microseconds since 1970.

    What other programs wrote may be no moment at all: hour 25 or the 31st of February is the
    moment that many hours or days lead to, and text of another shape is 0. The moment is never
    before the time as text, so that what is written after it stays in order.
    """
    try:
        return (datetime.fromisoformat(time) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError):  # TypeError: a time without its zone
        return _led_to(time)


def _led_to(time: str) -> int:
    if not _SHAPE.fullmatch(time):
        return 0
    year, month, day, hour, minute, second = map(int, re.split("[-T:.]", time)[:6])
    years, months = divmod(max(month, 1) - 1, 12)
    with suppress(ValueError, OverflowError):
        first = datetime(max(year, 1) + years, months + 1, 1, tzinfo=UTC)
        rest = timedelta(max(day, 1) - 1, second, int(time[20:26]), 0, minute, hour)
        return (first + rest - _EPOCH) // timedelta(microseconds=1)
    return _END


def is_moment(time: str) -> bool:
    """Tell whether a tape's time text is a moment of the calendar, before the year 9999."""
    return _MOMENT.fullmatch(time) is not None and _is_day(time[:10])


@lru_cache(maxsize=8)
def _is_day(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return day < _LAST_YEAR


def moment(time: str) -> str:
    """Return a time of a tape as people read it, in UTC, to the second."""
    return f"{time[:10]} {time[11:19]}"
