"""What hosts of the OpenAI wires say went wrong → errors of ours: in a body, or in a stream; pure.

No key gets into a text. An error told in a stream has no HTTP status, so the one it would have had
is read from its code; what nothing is known of is taken for a failure on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tape.formats.wire import decoded

from ...errors import InvalidRequest, ModelError, NetworkError, RequestTimeout, StreamError
from ..errors import provider_error, without_keys
from .channel import retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .openai_values import WireObject

_STATUS_OF_CODE = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "service_unavailable": 503,
    "overloaded": 529,
    "overloaded_error": 529,
    "server_is_overloaded": 529,
}
_STATUSES = range(400, 600)


class Errors(NamedTuple):
    """Makes the errors of one provider; its key stands in none of them."""

    provider: str
    key: str
    endpoint: str

    def refused(self, status: int, body: str, headers: Mapping[str, str]) -> ModelError:
        """Return the error that an HTTP answer tells of."""
        message, code = _said(_json(body))
        return provider_error(
            self.provider,
            status,
            message,
            code=code,
            retry_after=_seconds(headers),
            key=self.key,
        )

    def told(self, error: Any) -> ModelError:
        """Return the error that an event of a stream tells of."""
        message, code = _said(error)
        status = _status(error)
        found = provider_error(
            self.provider, status, message or code or "", code=code, key=self.key
        )
        if status is None and type(found) is InvalidRequest:
            return StreamError(str(found), provider=self.provider, code=code)
        return found

    def nonsense(self, what: str) -> StreamError:
        """Return the error for an event that cannot be understood."""
        text = without_keys(what, self.key)
        return StreamError(f"{self.provider} sent a malformed {text}", provider=self.provider)

    def stopped(self) -> StreamError:
        """Return the error for a stream that ended before its answer did."""
        return StreamError(
            f"{self.provider} stopped in the middle of its answer", provider=self.provider
        )

    def late(self, what: str, seconds: float) -> RequestTimeout:
        """Return the error for something that took too long."""
        return RequestTimeout(
            f"{self.provider} did not {what} within {seconds:g} s", provider=self.provider
        )

    def unreachable(self, error: Exception) -> NetworkError:
        """Return the error for a connection that could not be made or used."""
        reason = without_keys(str(error.__cause__ or error), self.key)
        return NetworkError(f"cannot reach {self.endpoint}: {reason}", provider=self.provider)

    def broken(self, error: Exception) -> StreamError:
        """Return the error for a connection that broke in an answer."""
        reason = without_keys(str(error), self.key) or type(error).__name__
        return StreamError(
            f"{self.provider} broke off its answer: {reason}", provider=self.provider
        )


def _json(text: str) -> Any:
    """Return what a body says as JSON, or the text of one that is none, such as a proxy's page."""
    try:
        return decoded(text)
    except (ValueError, RecursionError):
        return text


def _said(error: Any) -> tuple[str, str | None]:
    """Return message and code of an error in any of the shapes hosts give it."""
    match error:
        case str():
            return error, None
        case [first, *_]:
            return _said(first)
        case {"error": {**inner}}:
            return _said(inner)
        case dict() as fields:
            message = fields.get("message") or fields.get("error") or fields.get("detail") or ""
            whole = f"{message}: {raw}" if (raw := _upstream(fields)) else str(message)
            names = (fields.get("code"), fields.get("type"))
            return whole, next((name for name in names if _is_word(name)), None)
    return "", None


def _upstream(fields: WireObject) -> str:
    """Return what a router was told by the provider behind it."""
    metadata = fields.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) else ""


def _is_word(name: Any) -> bool:
    return isinstance(name, str) and bool(name) and not name.isdecimal()


def _status(error: Any) -> int | None:
    """Return the HTTP status an error would have had; None when nothing says so."""
    if not isinstance(error, dict):
        return None
    for name in ("code", "status_code", "status"):
        number = error.get(name)
        if isinstance(number, str) and number.isdecimal():
            number = int(number)
        if isinstance(number, int) and number in _STATUSES:
            return number
    names = (str(error.get("code")), str(error.get("type")))
    return next((_STATUS_OF_CODE[name] for name in names if name in _STATUS_OF_CODE), None)


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long to wait, in seconds; None when there is nothing that can be read."""
    milliseconds = retry_after(headers.get("retry-after-ms"))
    return retry_after(headers.get("retry-after")) if milliseconds is None else milliseconds / 1000
