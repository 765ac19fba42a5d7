"""Failures of a provider as errors of gong, the same on every wire; pure. No text has its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from tape.formats.wire import decode_json

from ...errors import (
    AnswerTooLarge,
    InvalidRequest,
    ModelError,
    NetworkError,
    QuotaExceeded,
    RateLimited,
    RedirectRefused,
    RequestTimeout,
    StreamError,
)
from ..errors import build_provider_error, remove_keys
from ..partial_json import parse_partial_json
from .error_body import parse_error_body, parse_retry_after
from .json_values import format_size_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .error_body import ErrorBody


class ProviderFailures(NamedTuple):
    """Makes the errors of one provider."""

    provider: str
    key: str
    endpoint: str

    def __repr__(self) -> str:
        return f"Failures({self.provider!r})"

    def parse_refusal(
        self, status: int, body: str, headers: Mapping[str, str], *, is_cut: bool = False
    ) -> ModelError:
        """Return the error that an HTTP status and its body tell of.

        With `is_cut` the body is only the beginning of one that is too long to be read.
        """
        found = parse_error_body(_decode_cut_body(body) if is_cut else _decode_body(body))
        if is_cut:
            note = f"(only {format_size_limit(len(body.encode()))} of its error were read)"
            found = found._replace(message=f"{_shorten_text(found.message)} {note}")
        return self._build_error(found, status, _parse_wait(headers))

    def build_redirect_error(
        self, status: int, asked: str, location: str, path: str
    ) -> RedirectRefused:
        """Return the error for an answer that sends on what was sent to `asked`.

        `path` is the end of that address, which no base_url holds.
        """
        target = _format_address(asked, location)
        base = target.removesuffix(path.partition("?")[0].lstrip("/")).rstrip("/")
        text = remove_keys(
            f"{self.endpoint} redirects to {target} ({status}); the key and the conversation were "
            f"not sent there: if that address is right, set base_url of providers.{self.provider} "
            f"to {base}",
            self.key,
        )
        return RedirectRefused(text, provider=self.provider, status=status)

    def build_size_error(self, what: str) -> AnswerTooLarge:
        """Return the error for an answer above a limit; `what` follows the name in the text."""
        return AnswerTooLarge(f"{self.provider} {what}", provider=self.provider)

    def parse_error(self, error: Any) -> ModelError:
        """Return the error that JSON in the place of an answer tells of, in a stream or alone.

        It has no HTTP status, so the one it would have had is read from its code; what nothing is
        known of is taken for a failure on the way, which may be tried again.
        """
        found = parse_error_body(error)
        made = self._build_error(found, found.status, None)
        if found.status is None and type(made) is InvalidRequest:
            return StreamError(str(made), provider=self.provider, code=found.code)
        return made

    def build_no_answer_error(self, body: bytes) -> ModelError:
        """Return the error for a whole `body`, or its beginning, in which there is no event."""
        if not body.strip():
            return self.build_stream_error("sent no answer")
        given = _decode_body(body.decode("utf-8", "replace"))
        if isinstance(given, dict | list):
            return self.parse_error(given)
        return self.build_stream_error(f"sent no answer but {_shorten_text(str(given))}")

    def build_stream_error(self, what: str) -> StreamError:
        """Return the error for a malformed answer; `what` follows the name in the text."""
        text = remove_keys(what, self.key)
        return StreamError(f"{self.provider} {text}", provider=self.provider)

    def build_stopped_error(self) -> StreamError:
        """Return the error for a stream that ended before its answer did."""
        return self.build_stream_error("stopped in the middle of its answer")

    def build_timeout(self, what: str, seconds: float) -> RequestTimeout:
        """Return the error for a timeout: the provider did not do `what` in time."""
        text = f"{self.provider} did not {what} within {seconds:g} s"
        return RequestTimeout(text, provider=self.provider)

    def build_network_error(self, reason: str) -> NetworkError:
        """Return the error for a connection that could not be made or used."""
        text = f"cannot reach {self.endpoint}: {remove_keys(reason, self.key)}"
        return NetworkError(text, provider=self.provider)

    def build_broken_error(self, error: Exception) -> StreamError:
        """Return the error for a connection that broke in an answer."""
        return self.build_stream_error(f"broke off its answer: {error or type(error).__name__}")

    def _build_error(self, found: ErrorBody, status: int | None, wait: float | None) -> ModelError:
        wait = found.wait if wait is None else wait
        made = build_provider_error(
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


def _decode_body(text: str) -> Any:
    """Return what a body says as JSON, or the text of one that is none, such as a proxy's page."""
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return text.strip()


def _decode_cut_body(text: str) -> Any:
    state, value = parse_partial_json(text)
    return text.strip() if state == "error" else value


def _format_address(base: str, location: str) -> str:
    """Return the address that a Location means, in one line and without what may be secret."""
    try:
        parts = urlsplit(urljoin(base, location))
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "an invalid address"
    shown = urlunsplit((parts.scheme, host, parts.path, "", ""))
    return _shorten_text("".join(one for one in shown if one.isprintable()))


def _shorten_text(text: str, longest: int = 200) -> str:
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[:longest]}…"


def _parse_wait(headers: Mapping[str, str]) -> float | None:
    """Return how long to wait, in seconds; None when there is nothing that can be read."""
    milliseconds = parse_retry_after(headers.get("retry-after-ms"))
    return (
        parse_retry_after(headers.get("retry-after"))
        if milliseconds is None
        else milliseconds / 1000
    )
