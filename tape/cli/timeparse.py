"""Times as typed on a command line → times as stored on a tape; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ..clock import SECONDS, format_timestamp, is_showing_local_times
from ..errors import UsageError

TIME_FORMS = "2h, 3d, yesterday, 2026-11-21, or 2026-11-21T20:31"
"""How a help page describes a time."""

_AGO = r"([0-9]{1,6})([smhdwy])\Z"
_WORDS_AGO = r"(?i)([0-9]{1,6}|an?)[ .](second|minute|hour|day|week|month|year)s?([ .]ago)?\Z"
_DAYS_AGO = {"today": 0, "yesterday": 1}
_MONTH_DAYS = 30
_ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?\Z"


def parse_moment(text: str, now: int) -> str:
    """Return the tape time of a text: UTC with microseconds, so that texts compare in order.

    `text` is an age before `now` (microseconds since 1970) such as 90s, 30m, 2h, 3d, 1w, 1y, or an
    ISO date or time; a date alone, `today` and `yesterday` are the first moment of that day.
    Ages may be written as git takes them: `2 days ago`, 2.weeks, `a month ago`, which is 30 days;
    `now` is `now`. Without an offset it is local time where times are shown so
    (`tape.clock.show_times`), else UTC. Raises UsageError for anything else.
    """
    seconds = _parse_age(text)
    if seconds is not None:
        return format_timestamp(max(now - seconds * 1_000_000, 0))
    try:
        time = _parse_day(text.lower(), now)
        if time is None and re.match(_ISO, text):
            time = datetime.fromisoformat(text)
        if time is not None:
            if time.tzinfo is None and not is_showing_local_times():
                time = time.replace(tzinfo=UTC)
            time = time.astimezone(UTC)
            return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except (ValueError, OverflowError):  # a day or an hour that does not exist
        pass
    raise UsageError(f"{text!r} is not a valid time: write {TIME_FORMS}")


def _parse_age(text: str) -> int | None:
    """Return the seconds of an age; None for what is none."""
    if text.lower() == "now":
        return 0
    if ago := re.match(_AGO, text):
        return int(ago[1]) * SECONDS[ago[2]]
    if ago := re.match(_WORDS_AGO, text):
        unit = ago[2].lower()
        count = int(ago[1]) if ago[1].isdecimal() else 1
        seconds = SECONDS["d"] * _MONTH_DAYS if unit == "month" else SECONDS[unit[0]]
        return count * seconds
    return None


def _parse_day(text: str, now: int) -> datetime | None:
    """Return the first moment of `today` or `yesterday`, without an offset; None for another."""
    if text not in _DAYS_AGO:
        return None
    zone = None if is_showing_local_times() else UTC
    day = datetime.fromtimestamp(now / 1_000_000, zone).date() - timedelta(days=_DAYS_AGO[text])
    return datetime.combine(day, datetime.min.time())
