"""Times as people write them."""

from __future__ import annotations

import pytest

from tape.cli.timeparse import parse_moment
from tape.clock import parse_timestamp
from tape.errors import UsageError

NOW = parse_timestamp("2026-11-21T20:31:05.123456Z")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0s", "2026-11-21T20:31:05.123456Z"),
        ("90s", "2026-11-21T20:29:35.123456Z"),
        ("30m", "2026-11-21T20:01:05.123456Z"),
        ("2h", "2026-11-21T18:31:05.123456Z"),
        ("3d", "2026-11-18T20:31:05.123456Z"),
        ("1w", "2026-11-14T20:31:05.123456Z"),
        ("2 days ago", "2026-11-19T20:31:05.123456Z"),
        ("2.weeks", "2026-11-07T20:31:05.123456Z"),
        ("an hour ago", "2026-11-21T19:31:05.123456Z"),
        ("1 month ago", "2026-10-22T20:31:05.123456Z"),
        ("now", "2026-11-21T20:31:05.123456Z"),
        ("today", "2026-11-21T00:00:00.000000Z"),
        ("Yesterday", "2026-11-20T00:00:00.000000Z"),
        ("999999y", "1970-01-01T00:00:00.000000Z"),
        ("2026-11-01", "2026-11-01T00:00:00.000000Z"),
        ("2026-11-01T10:05", "2026-11-01T10:05:00.000000Z"),
        ("2026-11-01 10:05:06.5", "2026-11-01T10:05:06.500000Z"),
        ("2026-11-01T10:05:06Z", "2026-11-01T10:05:06.000000Z"),
        ("2026-11-01T01:00+02:00", "2026-10-31T23:00:00.000000Z"),
    ],
)
def test_a_time_may_be_written_as_on_a_tape(text, moment):
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "3", "d", "-3d", "3 d", "2026", "2026-13-01", "2026-02-30"),
        *("days ago", "2 fortnights ago", "tomorrow", "2 daysago"),
        *("2026-11-01T25:00", "2026-W01-1", "9999-12-31T23:59-10:00", "1234567d", "2026-11-01\n"),
    ],
)
def test_what_is_no_time_is_refused_with_the_forms(text):
    with pytest.raises(UsageError, match="is not a valid time: write 2h, 3d, yesterday, 2026"):
        parse_moment(text, NOW)
