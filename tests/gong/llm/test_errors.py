import json
from pathlib import Path

import pytest

from gong import errors
from gong.llm.provider_errors import build_provider_error, is_silent_overflow, remove_keys
from tape.model.entries import Usage

CORPUS = Path(__file__).parents[4] / "shared/corpus/overflow"


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
    assert type(build_provider_error("p", status, message)) is kind


def test_the_text_names_provider_and_status_and_facts_are_attributes():
    error = build_provider_error("groq", 429, "slow\n down", code="limit", retry_after=3.0)
    assert str(error) == "groq API error (429): slow down"
    assert (error.provider, error.status, error.code, error.retry_after, error.retryable) == (
        "groq",
        429,
        "limit",
        3.0,
        True,
    )


def test_a_long_page_is_cut():
    assert len(str(build_provider_error("p", 500, "x" * 9_000))) < 600


WAIT = [
    "Too many tokens, please wait before trying again.",
    "Too many tokens, please wait",
    "too many tokens: retry after 20 seconds",
    "Throttling error: Too many tokens, please wait before trying again.",
    "Too many requests, please slow down",
    "Rate limit reached for model x on tokens per min (TPM): Limit 30000, Requested 31000",
    "Too large for x on tokens per minute (TPM): please reduce the length of the messages",
    "You have exceeded the concurrency limit; try again in 5 s",
]


@pytest.mark.parametrize("status", [None, 400, 413, 422, 429])
@pytest.mark.parametrize("message", WAIT)
def test_words_that_ask_to_wait_go_before_those_of_an_overflow(status, message):
    """M148: whatever the status, a limit in time is tried again and never compacted for."""
    error = build_provider_error("p", status, message)
    assert (type(error), error.retryable, error.exit_code) == (errors.RateLimited, True, 75)


OVERFLOW = [
    (400, "prompt is too long: 213462 tokens > 200000 maximum"),
    (413, "request_too_large: Request exceeds the maximum size"),
    (400, "Input is too long for requested model."),
    (400, "Your input exceeds the context window of this model"),
    (400, "This model's maximum context length is 8192 tokens. However, you sent 9000."),
    (400, "The prompt exceeds the model's maximum context length of 4096"),
    (
        400,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
    ),
    (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
    (400, "Please reduce the length of the messages or completion."),
    (400, "Input length 300000 exceeds the maximum allowed input length of 131,072 tokens."),
    (400, "The input (300,000 tokens) is longer than the model's context length (262,144 tokens)."),
    (400, "prompt token count of 130000 exceeds the limit of 128000"),
    (400, "the request exceeds the available context size, try increasing it"),
    (400, "tokens to keep from the initial prompt is greater than the context length"),
    (400, "invalid params, context window exceeds limit (2013)"),
    (400, "Invalid request: Your request exceeded model token limit: 262144"),
    (400, "Prompt is too large for model with 131072 maximum context length"),
    (400, "prompt has 70,000 tokens, but the configured context size is 65,536 tokens"),
    (400, "prompt too long; exceeded max context length by 12 tokens"),
    (400, "Range of input length should be [1, 98304]"),
    (400, "You requested 4096 output tokens and your prompt contains 130000 input tokens"),
    (400, "too many tokens: total tokens exceeds the model's max of 128000"),
    (400, "context_length_exceeded"),
    (400, "token limit exceeded"),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    (400, "tokens in request more than max tokens allowed"),
    (422, '{"code": 1261, "message": "Prompt exceeds max length"}'),
    (None, "model_context_window_exceeded"),
    (400, ""),
    (413, ""),
    (400, "400 status code (no body)"),
]


@pytest.mark.parametrize(("status", "message"), OVERFLOW)
def test_what_providers_say_of_a_prompt_that_does_not_fit(status, message):
    """M148: the patterns of every provider, and bodies that say nothing."""
    assert type(build_provider_error("p", status, message)) is errors.ContextLengthExceeded


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (429, "Too many tokens, please wait before trying again.", errors.RateLimited),
        (400, "Throttling error: Too many tokens, please wait.", errors.RateLimited),
        (None, "Rate limit reached: too many tokens per minute", errors.RateLimited),
        (503, "Service unavailable: prompt is too long to queue", errors.ServerError),
        (None, "Overloaded", errors.ServerError),
        (500, "prompt is too long", errors.ServerError),
        (529, "Overloaded", errors.ServerError),
        (429, "", errors.RateLimited),
        (422, "", errors.InvalidRequest),
        (400, "messages.1.content.0: must start with a thinking block", errors.MalformedHistory),
    ],
)
def test_a_limit_that_passes_is_never_an_overflow(status, message, kind):
    """M148: 429 never compacts, and the order of thinking is no overflow either."""
    assert type(build_provider_error("p", status, message)) is kind


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "`tool_use` ids were found without `tool_result` blocks immediately after: x"),
        (400, "unexpected `tool_use_id` found in `tool_result` blocks: x"),
        (400, "An assistant message with 'tool_calls' must be followed by tool messages"),
        (400, "messages with role 'tool' must be a response to a preceeding message"),
        (400, "No tool output found for function call call_1."),
        (400, "No tool call found for function call output with call_id call_1."),
        (400, "Invalid `signature` in `thinking` block"),
        (400, "Function call is missing a thought_signature in functionCall parts."),
        (400, "roles must alternate between user and assistant"),
        (400, "Expected last role User or Tool but got unexpected role assistant"),
        (400, "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
        (422, "Please ensure that function call turn comes immediately after a user turn"),
    ],
)
def test_a_history_out_of_order_has_an_error_of_its_own(status, message):
    """M148: to be mended and sent once more, never compacted."""
    error = build_provider_error("p", status, message)
    assert type(error) is errors.MalformedHistory
    assert not error.retryable


@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "Your credit balance is too low", None, errors.QuotaExceeded),
        (403, "monthly usage limit reached", None, errors.QuotaExceeded),
        (429, "You have no quota", "insufficient_quota", errors.QuotaExceeded),
        (402, "", None, errors.QuotaExceeded),
        (401, "no", None, errors.AuthenticationError),
        (400, "API key not valid. Please pass a valid API key.", None, errors.AuthenticationError),
        (403, "not for you", None, errors.AccessDenied),
        (404, "no", None, errors.ModelNotFound),
        (400, "The model `x` does not exist", None, errors.ModelNotFound),
        (400, "stopped by our content policy", None, errors.ContentFiltered),
        (400, "temperature: must be at most 1", None, errors.InvalidRequest),
    ],
)
def test_other_refusals(status, message, code, kind):
    """M150, M207: a wrong key and an empty purse are neither tried again nor compacted."""
    error = build_provider_error("p", status, message, code=code)
    assert type(error) is kind
    assert not error.retryable


@pytest.mark.parametrize(
    ("stop", "usage", "window", "found"),
    [
        ("stop", Usage(210_000, 5, total=210_005), 200_000, True),
        ("stop", Usage(10_000, 5, cache_read=195_000, total=205_005), 200_000, True),
        ("stop", Usage(200_000, 5, total=200_005), 200_000, False),
        ("length", Usage(198_000, 0, total=198_000), 200_000, True),
        ("length", Usage(198_000, 1, total=198_001), 200_000, False),
        ("length", Usage(197_999, 0, total=197_999), 200_000, False),
        ("stop", Usage(10**9, 5, total=10**9 + 5), None, False),
    ],
)
def test_a_silent_overflow_shows_in_the_usage(stop, usage, window, found):
    """M148: more prompt than window where its provider cuts, or a full one that left no room."""
    assert is_silent_overflow(stop, usage, window, cuts_prompts=True) is found
    kept = found and stop == "length"
    assert is_silent_overflow(stop, usage, window, cuts_prompts=False) is kept


KEYS = [
    "sk-ant-api03-abcdefgh1234567890",
    "sk-proj-ABCdef_123-456789",
    "gsk_abcdefgh12345678",
    "xai-abcdefgh12345678",
    "AIzaSyA-abcdefgh12345678",
    "hf_abcdefgh12345678",
]


@pytest.mark.parametrize("key", KEYS)
def test_nothing_that_looks_like_a_key_gets_into_an_error(key):
    """M184: keys never in errors."""
    error = build_provider_error("p", 401, f"Incorrect API key provided: {key}. See docs")
    assert key not in str(error)
    assert "See docs" in str(error)
    assert key not in remove_keys(f"Authorization: Bearer {key}")


def test_the_key_in_use_is_removed_in_any_form():
    """M184."""
    assert str(build_provider_error("p", 401, "no such key: hunter2", key="hunter2")) == (
        "p API error (401): no such key: …"
    )
    assert remove_keys("plain words stay, sk- too", "") == "plain words stay, sk- too"


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus here")
def test_recorded_errors_of_many_providers():
    """M148."""
    wrong = []
    for line in (CORPUS / "messages.jsonl").read_text("utf-8").split("\n"):
        if line and (case := json.loads(line)):
            error = build_provider_error(case["provider"] or "p", case["status"], case["message"])
            if isinstance(error, errors.ContextLengthExceeded) != case["is_overflow"]:
                wrong.append((case["id"], type(error).__name__))
    assert wrong == []
