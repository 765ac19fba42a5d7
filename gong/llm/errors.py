"""From what a provider said over HTTP to one class of `gong.errors`: status first, words second.

Pure. Quota words are looked for before the status, because waiting does not bring money back;
a rate limit is never taken for an overflow, whatever its text says.
"""

from __future__ import annotations

import re

from ..errors import (
    AccessDenied,
    AuthenticationError,
    ContentFiltered,
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelNotFound,
    QuotaExceeded,
    RateLimited,
    RequestTimeout,
    ServerError,
)

_LONGEST = 500
_QUOTA = re.compile(
    r"insufficient_quota|billing|credit balance|out of credits?|exceeded your current quota"
    r"|(?:api|monthly|weekly) usage limit|spend(?:ing)? limit",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"prompt (?:is )?too long|request_too_large|context length|context limit|context window"
    r"|too many tokens",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content filter|safety", re.IGNORECASE)
_BY_STATUS: dict[int, type[ModelError]] = {
    401: AuthenticationError,
    402: QuotaExceeded,
    403: AccessDenied,
    404: ModelNotFound,
    408: RequestTimeout,
    413: ContextLengthExceeded,
    429: RateLimited,
}
_MAY_MEAN_QUOTA = frozenset({400, 403, 429})
_MALFORMED = frozenset({400, 422})
_FIRST_SERVER_STATUS = 500


def provider_error(
    provider: str,
    status: int,
    message: str,
    *,
    code: str | None = None,
    retry_after: float | None = None,
) -> ModelError:
    """Return the error for an HTTP `status` and the provider's own `message` and `code`."""
    kind = _kind(status, f"{code} {message}")
    return kind(
        f"{provider} API error ({status}): {_one_line(message)}",
        provider=provider,
        status=status,
        code=code,
        retry_after=retry_after,
    )


def _kind(status: int, words: str) -> type[ModelError]:
    if status in _MAY_MEAN_QUOTA and _QUOTA.search(words):
        return QuotaExceeded
    if status in _MALFORMED:
        return _refusal(words)
    if status >= _FIRST_SERVER_STATUS:
        return ServerError
    return _BY_STATUS.get(status, InvalidRequest)


def _refusal(words: str) -> type[ModelError]:
    if _OVERFLOW.search(words):
        return ContextLengthExceeded
    return ContentFiltered if _FILTER.search(words) else InvalidRequest


def _one_line(message: str) -> str:
    words = " ".join(message.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
