"""Failures of one provider as errors of ours, alike on every wire; pure. Its key is in no text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tape.formats.wire import decoded

from ...errors import (
    InvalidRequest,
    ModelError,
    NetworkError,
    QuotaExceeded,
    RateLimited,
    RequestTimeout,
    StreamError,
)
from ..errors import provider_error, without_keys
from .said import retry_after, said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .said import Said


class Failures(NamedTuple):
    """Makes the errors of one provider."""

    provider: str
    key: str
    endpoint: str

    def __repr__(self) -> str:
        return f"Failures({self.provider!r})"

    def refused(self, status: int, body: str, headers: Mapping[str, str]) -> ModelError:
        """Return the error that an HTTP status and its body tell of."""
        return self._told(said(_json(body)), status, _seconds(headers))

    def told(self, error: Any) -> ModelError:
        """Return the error that JSON in the place of an answer tells of, in a stream or alone.

        It has no HTTP status, so the one it would have had is read from its code; what nothing is
        known of is taken for a failure on the way, which may be tried again.
        """
        found = said(error)
        made = self._told(found, found.status, None)
        if found.status is None and type(made) is InvalidRequest:
            return StreamError(str(made), provider=self.provider, code=found.code)
        return made

    def unanswered(self, body: bytes) -> ModelError:
        """Return the error for a whole `body`, or its beginning, in which there is no event."""
        if not body.strip():
            return self.wrong("sent no answer")
        given = _json(body.decode("utf-8", "replace"))
        if isinstance(given, dict | list):
            return self.told(given)
        return self.wrong(f"sent no answer but {_beginning(str(given))}")

    def wrong(self, what: str) -> StreamError:
        """Return the error for an answer that makes no sense; `what` it did goes on from a name."""
        text = without_keys(what, self.key)
        return StreamError(f"{self.provider} {text}", provider=self.provider)

    def stopped(self) -> StreamError:
        """Return the error for a stream that ended before its answer did."""
        return self.wrong("stopped in the middle of its answer")

    def late(self, what: str, seconds: float) -> RequestTimeout:
        """Return the error for something the provider did not do in time."""
        text = f"{self.provider} did not {what} within {seconds:g} s"
        return RequestTimeout(text, provider=self.provider)

    def unreachable(self, reason: str) -> NetworkError:
        """Return the error for a connection that could not be made or used."""
        text = f"cannot reach {self.endpoint}: {without_keys(reason, self.key)}"
        return NetworkError(text, provider=self.provider)

    def broken(self, error: Exception) -> StreamError:
        """Return the error for a connection that broke in an answer."""
        return self.wrong(f"broke off its answer: {error or type(error).__name__}")

    def _told(self, found: Said, status: int | None, wait: float | None) -> ModelError:
        wait = found.wait if wait is None else wait
        made = provider_error(
            *(self.provider, status, found.message),
            code=found.code,
            retry_after=wait,
            key=self.key,
        )
        if type(made) is QuotaExceeded and found.wait is not None and not found.per_day:
            return RateLimited(
                str(made), provider=self.provider, status=status, code=found.code, retry_after=wait
            )
        return made


def _json(text: str) -> Any:
    """Return what a body says as JSON, or the text of one that is none, such as a proxy's page."""
    try:
        return decoded(text)
    except (ValueError, RecursionError):
        return text.strip()


def _beginning(text: str, longest: int = 200) -> str:
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[:longest]}…"


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long to wait, in seconds; None when there is nothing that can be read."""
    milliseconds = retry_after(headers.get("retry-after-ms"))
    return retry_after(headers.get("retry-after")) if milliseconds is None else milliseconds / 1000
