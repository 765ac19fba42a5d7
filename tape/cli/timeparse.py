"""Times as typed on a command line → times as stored on a tape; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..clock import SECONDS, format_timestamp, is_showing_local_times
from ..errors import UsageError

TIME_FORMS = "2h, 3d, 2026-11-21, or 2026-11-21T20:31"
"""How a help page describes a time."""

_AGO = r"([0-9]{1,6})([smhdwy])\Z"
_ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?\Z"


def parse_moment(text: str, now: int) -> str:
    """Return the tape time of a text: UTC with microseconds, so that texts compare in order.

    `text` is an age before `now` (microseconds since 1970) such as 90s, 30m, 2h, 3d, 1w, 1y, or an
    ISO date or time; a date alone is its first moment. Without an offset it is local time where
    times are shown so (`tape.clock.show_times`), else UTC. Raises UsageError for anything else.
    """
    ago = re.match(_AGO, text)
    if ago:
        return format_timestamp(max(now - int(ago[1]) * SECONDS[ago[2]] * 1_000_000, 0))
    try:
        time = datetime.fromisoformat(text) if re.match(_ISO, text) else None
        if time is not None:
            if time.tzinfo is None and not is_showing_local_times():
                time = time.replace(tzinfo=UTC)
            time = time.astimezone(UTC)
            return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except (ValueError, OverflowError):  # a day or an hour that does not exist
        pass
    raise UsageError(f"{text!r} is not a valid time: write {TIME_FORMS}")
