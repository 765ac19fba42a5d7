import pytest

from gong import errors
from gong.llm.errors import provider_error


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (429, "Rate limit reached: too many tokens", errors.RateLimited),
        (429, "You exceeded your current quota, check your billing", errors.QuotaExceeded),
        (408, "slow", errors.RequestTimeout),
        (418, "teapot", errors.InvalidRequest),
        (422, "blocked by the content filter", errors.ContentFiltered),
        (400, "maximum context length is 8 tokens", errors.ContextLengthExceeded),
        (599, "?", errors.ServerError),
    ],
)
def test_quota_words_go_before_the_status_and_the_status_before_other_words(status, message, kind):
    assert type(provider_error("p", status, message)) is kind


def test_the_text_names_provider_and_status_and_facts_are_attributes():
    error = provider_error("groq", 429, "slow\n down", code="limit", retry_after=3.0)
    assert str(error) == "groq API error (429): slow down"
    assert (error.provider, error.status, error.code, error.retry_after, error.retryable) == (
        "groq",
        429,
        "limit",
        3.0,
        True,
    )


def test_a_long_page_is_cut():
    assert len(str(provider_error("p", 500, "x" * 9_000))) < 600
