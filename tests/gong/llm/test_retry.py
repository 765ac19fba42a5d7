import pytest

from gong.llm.retry import RetryPolicy


@pytest.mark.parametrize(
    ("attempt", "random", "seconds"),
    [(0, 0.0, 0.5), (0, 0.5, 1.0), (1, 0.5, 2.0), (1, 0.0, 1.0), (2, 0.5, None)],
)
def test_waits_double_with_half_jitter_until_the_tries_are_used_up(attempt, random, seconds):
    assert RetryPolicy().compute_delay(attempt, None, random) == seconds


def test_a_wait_never_grows_beyond_the_longest_before_jitter():
    assert RetryPolicy(max_retries=20).compute_delay(10, None, 0.5) == 60.0


@pytest.mark.parametrize(("asked", "seconds"), [(0.0, 0.0), (7.0, 7.0), (60.0, 60.0), (61.0, None)])
def test_what_the_server_asks_for_is_used_as_it_is_or_not_waited_for(asked, seconds):
    assert RetryPolicy().compute_delay(0, asked, 0.9) == seconds


def test_no_retries_turns_it_off():
    assert RetryPolicy(max_retries=0).compute_delay(0, 1.0, 0.5) is None
