"""Maps a provider's error to a class of `gong.errors`, and finds unreported overflows. Pure.

The first row that fits counts:

| status | text | error |
|---|---|---|
| 400, 403, 429, none | quota or billing | QuotaExceeded: waiting does not help |
| 429, or with a throttled text | | RateLimited: never an overflow, whatever its text says |
| 500 and above | | ServerError |
| any but 400, 422, none | | by status |
| 400, 422, none | as in `_BY_WORDS` | by text, else InvalidRequest |

No text contains a key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from ..errors import (
    AccessDenied,
    AuthenticationError,
    ContentFiltered,
    ContextLengthExceeded,
    InvalidRequest,
    MalformedHistory,
    ModelError,
    ModelNotFound,
    QuotaExceeded,
    RateLimited,
    RequestTimeout,
    ServerError,
)
from .prices import count_prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tape.model.entries import Usage


_MAX_MESSAGE = 500
_KEYS = (
    r"\b(?:sk|rk|pk|gsk|xai|csk|fw|tgp|gh[opsu])[-_][\w.*-]{8,}|\bhf_\w{8,}|\bAIza[\w-]{8,}"
    r"|\b(?:bearer|x-api-key:|api[ _-]?key[=:])\s*[\w.~+/*-]{8,}"
)


def _join_patterns(*patterns: str) -> str:
    """Return a pattern that any of these matches; compiled with the first error, not at start."""
    return "|".join(patterns)


def _is_said(pattern: str, words: str) -> bool:
    return re.search(pattern, words, re.IGNORECASE) is not None


_QUOTA = _join_patterns(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|billing|credit balance|out of credits?",
    r"exceeded your current quota|(?:api|monthly|weekly) usage limit|spend(?:ing)? limit",
    r"payment required",
)
_THROTTLED = _join_patterns(
    r"^throttling error:|rate.?limit(?!s? documentation)|too many requests|throttl(?:ed|ing)",
    r"(?:tokens|requests) (?:per|a|/) ?(?:second|min(?:ute)?|hour|day)|\b[tr]p[mdh]\b|^429\b",
    # Bedrock's "Too many tokens, please wait before trying again." has the words of an overflow.
    r"please (?:wait|slow down|retry|try again (?:in|later|shortly|soon))",
    r"(?:wait|retry|try again) (?:in|after|for) (?:about )?\d|before (?:trying|retrying)",
    r"(?:try|retry)(?:ing)? again (?:later|shortly|in a)|slow down|resource[_ ]exhausted",
    r"concurrency limit|too many concurrent",
)
_UNAVAILABLE = _join_patterns(
    r"^service unavailable:|overloaded|at capacity|temporarily unavailable|internal server error",
)
_OVERFLOW = _join_patterns(
    r"prompt (?:is )?too long|request_too_large|input is too long for requested model",
    r"exceeds the context window",
    r"exceeds (?:the )?(?:model'?s )?maximum context length|maximum context length (?:is|of) \d+",
    r"input token count.*exceeds the maximum|maximum prompt length is \d+",
    r"reduce the length of the (?:messages|prompt)",
    r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens",
    r"(?:input|prompt) (?:\([\d,]+ tokens\) )?is longer than the model'?s context length",
    r"(?:prompt )?token count of [\d,]+ exceeds the limit of [\d,]+",
    r"exceeds the available context size|greater than the context length",
    r"context window exceeds limit|exceeded model token limit|context too long",
    r"too large for model with \d+ maximum context length",
    r"prompt has [\d,]+ tokens, but the configured context size is",
    r"model_context(?:_window)?_exceeded|code\W+1261\b|exceeded (?:max )?context length",
    r"range of input length should be|requested \d+ output tokens.*prompt contains",
    r"total (?:number of )?tokens exceeds the model'?s max|context[_ ]length[_ ]exceeded",
    r"too many tokens|token limit exceeded|exceed(?:s|ed)? (?:the )?context limit",
    r"tokens in request more than max tokens allowed",
    r"^4(?:00|13)(?: status code)? \(no body\)$",
)
_MALFORMED = _join_patterns(
    r"tool_use.*without.*tool_result|unexpected.*tool_(?:use|call)_?id",
    r"tool_?calls?\W* must be followed by tool|role \W?tool\W? must (?:be a response|follow)",
    r"no tool (?:call|output) found for function call|tool_call_id.*(?:not found|did not have)",
    r"tool_result.*(?:corresponding|previous|without)|roles must alternate|unexpected role",
    r"function call turn comes immediately after|number of function response parts",
    r"invalid.{0,20}signature|thought_?signature|must start with a thinking block",
    r"expected .{0,40}thinking.{0,40}but found|final block.*cannot be .?thinking",
    r"without its required (?:following|preceding) item|not the same number of function calls",
    r"blocks in the latest assistant message cannot be modified",
    r"after the tool role",
)
_FILTER = _join_patterns(r"content[ _]?(?:filter|policy)|safety|responsible.?ai")
_REFUSED_KEY = _join_patterns(
    r"unauthorized|(?:invalid|incorrect|wrong).{0,12}(?:api )?key|api key not valid"
)
_UNKNOWN_MODEL = _join_patterns(
    r"model.{0,80}(?:not found|does not exist|not exist)|model_not_found"
)
_BY_STATUS: dict[int, type[ModelError]] = {
    401: AuthenticationError,
    402: QuotaExceeded,
    403: AccessDenied,
    404: ModelNotFound,
    408: RequestTimeout,
    413: ContextLengthExceeded,
    429: RateLimited,
}
_BY_WORDS: tuple[tuple[str, type[ModelError]], ...] = (
    (_OVERFLOW, ContextLengthExceeded),
    (_MALFORMED, MalformedHistory),
    (_REFUSED_KEY, AuthenticationError),
    (_UNKNOWN_MODEL, ModelNotFound),
    (_FILTER, ContentFiltered),
)
_MAY_MEAN_QUOTA = frozenset({400, 403, 429, None})
_SAYS_LITTLE = frozenset({400, 422})
_FIRST_SERVER_STATUS = 500


def build_provider_error(
    provider: str,
    status: int | None,
    message: str,
    *,
    code: str | None = None,
    retry_after: float | None = None,
    key: str = "",
    advise: Callable[[type[ModelError]], str] = lambda _: "",
) -> ModelError:
    """Return the error for an HTTP `status` and the provider's own `message` and `code`.

    `status` is None for an error inside a stream; an empty message means that there was no body.
    `key` is cut out of the text; what `advise` says of the class of error follows it.
    """
    kind = _classify_error(status, f"{message} code {code}" if code else message)
    status_note = f" ({status})" if status is not None else ""
    reason = shorten_text(remove_keys(message, key), _MAX_MESSAGE) or "no reason given"
    return kind(
        f"{provider} API error{status_note}: {reason}",
        provider=provider,
        status=status,
        code=remove_keys(code, key) if code else None,
        retry_after=retry_after,
        advice=advise(kind),
    )


def shorten_text(text: str, limit: int) -> str:
    """Return a text on one line, cut after `limit` characters."""
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[:limit]}…"


def remove_keys(text: str, *keys: str) -> str:
    """Return `text` without these keys and without everything that looks like a key.

    A key is found verbatim, and as it is encoded in addresses and in JSON.
    """
    for key in filter(None, keys):
        for form in (key, quote(key, safe=""), key.replace("/", r"\/")):
            text = text.replace(form, "…")
    return re.sub(_KEYS, "…", text, flags=re.IGNORECASE)


def _classify_error(status: int | None, words: str) -> type[ModelError]:
    if status in _MAY_MEAN_QUOTA and _is_said(_QUOTA, words):
        return QuotaExceeded
    if status == 429 or (status in {None, 400, 413, 422, 503} and _is_said(_THROTTLED, words)):  # noqa: PLR2004 (HTTP)
        return RateLimited
    if status is not None and status >= _FIRST_SERVER_STATUS:
        return ServerError
    if status is not None and status not in _SAYS_LITTLE:
        return _BY_STATUS.get(status, InvalidRequest)
    if status == 400 and not words.strip():  # noqa: PLR2004 (HTTP)
        return ContextLengthExceeded  # Cerebras and Mistral give no reason
    otherwise = ServerError if status is None and _is_said(_UNAVAILABLE, words) else InvalidRequest
    return next((kind for pattern, kind in _BY_WORDS if _is_said(pattern, words)), otherwise)


_WINDOW_WORDS = (
    r"n_ctx: ([\d,]+)",
    r"> ([\d,]+)",
    r"exceeds the limit of ([\d,]+)",
    r"exceeds the maximum number of tokens allowed \(?([\d,]+)",
    r"with ([\d,]+) maximum context length",
    r"maximum (?:context |prompt |input |allowed input )?length(?: is| of) ([\d,]+)",
    r"context (?:length|size|window)(?: is| of)?\W{0,2}([\d,]+)",
)
_MIN_WINDOW = 1_000


def find_window_in_error(text: str) -> int | None:
    """Return the size of a context window in tokens that an overflow's message names, else None.

    prompt is too long: 210000 tokens > 200000 maximum         200,000
    This model's maximum context length is 8192 tokens. …        8,192
    context limit: 188240 + 21333 > 200000                     200,000
    """
    for pattern in _WINDOW_WORDS:
        match = re.search(pattern, text, re.IGNORECASE)
        size = int(match[1].replace(",", "") or 0) if match else 0
        if size >= _MIN_WINDOW:
            return size
    return None


_NEARLY_FULL = 0.99


def is_silent_overflow(
    stop_reason: str, usage: Usage, window: int | None, *, cuts_prompts: bool
) -> bool:
    """Return whether an answer that looks complete was made from a prompt that did not fit.

    Such a prompt fills the context window and left no room for an answer, or it is larger and its
    provider is known to cut such prompts. Otherwise the context window is larger than we know, and
    the answer is whole.
    """
    if window is None:
        return False
    prompt = count_prompt(usage)
    starved = stop_reason == "length" and usage.output == 0
    is_cut = cuts_prompts and prompt > window
    return is_cut or (starved and prompt >= _NEARLY_FULL * window)
