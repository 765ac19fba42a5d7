"""What providers say of their limits in the headers of an answer."""

from datetime import UTC, datetime, timedelta

import pytest

from gong.llm.types import Allowance, RateLimit
from gong.llm.wires.rate_limits import parse_rate_limit

OPENAI = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "6m0.5s",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-tokens": "120ms",
}


def test_durations_and_counts_are_read():
    assert parse_rate_limit(OPENAI) == RateLimit(
        Allowance(60, 59, 360.5), Allowance(150_000, 149_984, 0.12)
    )


def test_dates_become_seconds_from_now():
    soon = (datetime.now(UTC) + timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = parse_rate_limit(
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": soon,
            "anthropic-ratelimit-tokens-remaining": "8000",
        }
    )
    assert found.requests.reset == pytest.approx(90, abs=60)
    assert (found.requests.limit, found.requests.remaining) == (50, 0)
    assert found.tokens == Allowance(remaining=8000)


def test_a_router_tells_of_requests_without_saying_so():
    now = datetime.now(UTC).timestamp() * 1000
    told = {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "1", "x-ratelimit-reset": f"{now}"}
    assert parse_rate_limit(told) == RateLimit(Allowance(20, 1, 0.0), None)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/event-stream"},
        {"x-ratelimit-limit-requests": "many", "x-ratelimit-reset-requests": "soon"},
        {"x-ratelimit-limit-requests": ""},
    ],
)
def test_what_says_nothing_is_none(headers):
    assert parse_rate_limit(headers) is None
