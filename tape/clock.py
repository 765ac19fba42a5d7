"""Time on a tape: UTC with microseconds, as text and as a number."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from time import time_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}
"""Seconds of each unit of an age."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHAPE = r"(?a)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
_MOMENT = r"(?a)\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z"
"""Both are compiled at their first use: a list of tapes needs neither."""
_LAST_YEAR = "9999"
"""The first year that is refused, because later entries need a later time."""
_MICROSECOND = timedelta(microseconds=1)
_END = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def read_clock() -> int:
    """Return microseconds since 1970: the default clock of writers."""
    return time_ns() // 1000


def choose_entry_time(parent: int, clock: int) -> int:
    """Return the time of an entry: the clock's, but always later than its parent's.

    All are microseconds since 1970. Raises Damaged after the last microsecond of 9999.
    """
    later = max(clock, parent + 1)
    if later > _END:
        from .errors import Damaged  # noqa: PLC0415 (a list of tapes needs none)

        raise Damaged(
            f"nothing can follow the entry of {format_timestamp(parent)}: there is no later time; "
            "continue from an earlier one, as `tape fork` does"
        )
    return later


def format_timestamp(micros: int) -> str:
    """Return microseconds since 1970 as a tape's time text."""
    seconds, rest = divmod(micros, 1_000_000)
    return f"{_format_second(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=8)
def _format_second(seconds: int) -> str:
    time = _EPOCH + timedelta(seconds=seconds)
    return time.replace(tzinfo=None).isoformat(timespec="seconds")


def parse_timestamp(time: str) -> int:
    """Return a tape's time text as microseconds since 1970.

    Other programs may have written an invalid time: hour 25 or February 31 counts as that many
    hours or days later, and text of another shape is 0. The result is never before the text's time,
    so that later entries stay in order.
    """
    with suppress(ValueError, TypeError):  # TypeError: a time without a zone
        return (datetime.fromisoformat(time) - _EPOCH) // _MICROSECOND
    if not re.fullmatch(_SHAPE, time):
        return 0
    year, month, day, hour, minute, second = map(int, re.split("[-T:.]", time)[:6])
    years, months = divmod(max(month, 1) - 1, 12)
    with suppress(ValueError, OverflowError):
        first = datetime(max(year, 1) + years, months + 1, 1, tzinfo=UTC)
        rest = timedelta(max(day, 1) - 1, second, int(time[20:26]), 0, minute, hour)
        return (first + rest - _EPOCH) // _MICROSECOND
    return _END


def is_valid_timestamp(time: str) -> bool:
    """Return whether a tape's time text is a valid date and time before the year 9999."""
    return _compile_moment().fullmatch(time) is not None and _is_calendar_day(time[:10])


@cache
def _compile_moment() -> re.Pattern[str]:
    """Return the pattern of times; looking it up in `re` takes twice as long as matching it."""
    return re.compile(_MOMENT)


@lru_cache(maxsize=8)
def _is_calendar_day(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return day < _LAST_YEAR


_local_minutes: ContextVar[dict[str, str | None] | None] = ContextVar(
    "_local_minutes", default=None
)
"""The local time of minutes in UTC that were shown; None where times are shown in UTC."""


@contextmanager
def show_times(*, local: bool) -> Iterator[None]:
    """Let `render_time` give local times in the block, or times in UTC, as it does by default."""
    token = _local_minutes.set({} if local else None)
    try:
        yield
    finally:
        _local_minutes.reset(token)


def is_showing_local_times() -> bool:
    """Return whether times are shown, and read where typed, in local time."""
    return _local_minutes.get() is not None


def render_time(time: str) -> str:
    """Return a tape's time for people as `YYYY-MM-DD HH:MM:SS`: local time inside `show_times`."""
    minutes = _local_minutes.get()
    if minutes is None:
        return shorten_timestamp(time)
    if _compile_moment().fullmatch(time):  # a conversation has many times in one minute
        begin = time[:17]
        if begin not in minutes:
            local = _render_local_time(f"{begin}00.000000Z")
            # Long ago some clocks were not whole minutes from UTC.
            minutes[begin] = local[:-2] if local and local.endswith(":00") else None
        if minute := minutes[begin]:
            return f"{minute}{time[17:19]}"
    return _render_local_time(time) or shorten_timestamp(time)


def _render_local_time(time: str) -> str | None:
    """Return a tape's time in local time; None at the ends of the calendar and for no time."""
    micros = parse_timestamp(time)
    with suppress(OverflowError, ValueError, OSError):
        local = datetime.fromtimestamp(micros // 1_000_000, UTC).astimezone()
        return local.replace(tzinfo=None).isoformat(" ", "seconds") if micros else None
    return None


def format_age(passed: int) -> str:
    """Return an age in microseconds as a number with its largest unit, such as 3d."""
    seconds = max(passed, 0) // 1_000_000
    for unit in ("y", "w", "d", "h", "m"):
        if seconds >= SECONDS[unit]:
            return f"{seconds // SECONDS[unit]}{unit}"
    return f"{seconds}s"


def shorten_timestamp(time: str) -> str:
    """Return a tape's time as `YYYY-MM-DD HH:MM:SS`, in UTC."""
    return f"{time[:10]} {time[11:19]}"
