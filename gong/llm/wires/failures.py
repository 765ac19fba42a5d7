"""What a provider says went wrong, as errors of gong, the same on every wire; pure.

Hosts give an error many shapes; they are read alike, alone or in a stream:

| JSON | read as |
|---|---|
| "text" | the message |
| [error, …], {"error": {…}} | what is inside |
| {"base_resp": {"status_msg", "status_code"}} | message and code |
| {"message"/"error"/"detail", "code"/"type"/"status", "details", "metadata"} | one by one |

The Gemini API uses the same words for a limit per minute and for a used-up quota; only the first
says how long to wait. No text contains the key.
"""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from functools import partial
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from tape.formats.wire import decode_json, encode_json

from ...errors import (
    AnswerTooLarge,
    AuthenticationError,
    ContentFiltered,
    ContextLengthExceeded,
    InvalidRequest,
    MalformedHistory,
    ModelError,
    NetworkError,
    QuotaExceeded,
    RateLimited,
    RedirectRefused,
    RequestTimeout,
    ServerError,
    StreamError,
)
from ..partial_json import parse_partial_json
from ..provider_errors import build_provider_error, remove_keys, shorten_text
from .json_values import WireObject, format_size_limit, read_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..models import Preset


_UNAVAILABLE_STATUSES = frozenset({502, 503, 504, 529})
"""Those of a provider that does not serve now; it may well do so later."""
_FAULTS_OF_REQUESTS = (ContextLengthExceeded, ContentFiltered, InvalidRequest, MalformedHistory)
"""Errors that no other key, address or model is the answer to."""
_STATUS_OF_CODE = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "UNAUTHENTICATED": 401,
    "billing_error": 402,
    "permission_error": 403,
    "PERMISSION_DENIED": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "NOT_FOUND": 404,
    "DEADLINE_EXCEEDED": 408,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "RESOURCE_EXHAUSTED": 429,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "INTERNAL": 500,
    "service_unavailable": 503,
    "UNAVAILABLE": 503,
    "validationException": 400,
    "accessDeniedException": 403,
    "resourceNotFoundException": 404,
    "throttlingException": 429,
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "serviceUnavailableException": 503,
    "modelTimeoutException": 504,
    "timeout_error": 504,
    "overloaded": 529,
    "overloaded_error": 529,
    "server_is_overloaded": 529,
}
"""Words for an error → the HTTP status it would have had."""
_STATUSES = range(400, 600)
_NOT_FOUND = 404
_AWS_ERROR = "x-amzn-errortype"
_NUMBER = re.compile(r"[0-9]{1,18}")
"""A code: Python refuses to read thousands of digits."""
_MAX_CHARS = 200
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_PER_DAY = "PerDay"


class ErrorBody(NamedTuple):
    """A parsed error; the message may be empty."""

    message: str = ""
    code: str | None = None
    status: int | None = None
    """The HTTP status, or the equivalent one; None if unknown."""
    wait: float | None = None
    """Seconds to wait according to the text."""
    per_day: bool = False
    """Whether a daily quota is used up."""


def parse_error_body(error: Any) -> ErrorBody:
    """Return the error in a JSON value or plain text."""
    match error:
        case str():
            return ErrorBody(error)
        case [first, *_]:
            return parse_error_body(first)
        case {"error": {**inner}}:
            return parse_error_body(inner)
        case {"base_resp": {"status_msg": str(message), "status_code": int(code)}}:
            return parse_error_body({"message": message, "code": code})
        case dict():
            return _parse_fields(error)
    return ErrorBody()


def parse_retry_after(header: str | None) -> float | None:
    """Return a Retry-After, a number or a date, in seconds; None when there is none to be read."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            return compute_wait(parsedate_to_datetime(header).timestamp())
        except ValueError:
            return None
    return seconds if isfinite(seconds) and seconds >= 0 else None


def compute_wait(moment: float) -> float:
    """Return the seconds until a moment since 1970; 0 for one in the past."""
    return max(0.0, moment - time.time())


def _parse_fields(fields: WireObject) -> ErrorBody:
    names = [fields.get(name) for name in ("code", "type", "status")]
    words = (name for name in names if isinstance(name, str) and name and not name.isdecimal())
    code = next(words, None)
    number = str(fields.get("code"))
    if code is None and _NUMBER.fullmatch(number) and int(number) not in _STATUSES:
        code = number  # a host's own, no HTTP status
    details_value = fields.get("details")
    details = (
        [detail for detail in details_value if isinstance(detail, dict)]
        if isinstance(details_value, list)
        else []
    )
    delays = (detail.get("retryDelay") for detail in details if detail.get("@type") == _RETRY_INFO)
    delay = next((delay for delay in delays if isinstance(delay, str)), None)
    return ErrorBody(
        _find_message(fields) or code or "",
        code,
        _find_status(fields),
        parse_retry_after(delay.removesuffix("s")) if delay else None,
        any(_PER_DAY in str(detail.get("violations")) for detail in details),
    )


def _find_message(fields: WireObject) -> str:
    """Return the words for people; of an object without a place for them, all of it."""
    known = [fields[name] for name in ("message", "error", "detail") if name in fields]
    if not known:
        return encode_json(fields).decode() if fields else ""
    known_text = next(filter(None, known), "")
    message = known_text if isinstance(known_text, str) else encode_json(known_text).decode()
    upstream = read_object(fields.get("metadata")).get("raw")  # the error that a router received
    if isinstance(upstream, dict):
        upstream = parse_error_body(upstream).message
    return f"{message}: {upstream}" if isinstance(upstream, str) and upstream else message


def _find_status(fields: WireObject) -> int | None:
    for name in ("code", "status_code", "status"):
        number = fields.get(name)
        if isinstance(number, str) and _NUMBER.fullmatch(number):
            number = int(number)
        if isinstance(number, int) and number in _STATUSES:
            return number
    names = (str(fields.get(name)) for name in ("code", "type", "status"))
    return next((_STATUS_OF_CODE[name] for name in names if name in _STATUS_OF_CODE), None)


class ProviderFailures(NamedTuple):
    """Makes the errors of one provider."""

    provider: str
    key: str
    endpoint: str
    key_name: str = ""
    """The provider under whose name keys are saved."""
    find_source: Callable[[], str] | None = None
    """Says where the key is from: a variable, or what keeps it; None where that is not known."""
    model: str = ""
    """The model that is asked; empty where that is not known."""
    preset: Preset | None = None
    """Where the provider is, for what is likely to be wrong."""
    path: str = ""
    """The path of the call below the endpoint, with its query."""

    def __repr__(self) -> str:
        return f"Failures({self.provider!r})"

    def parse_refusal(
        self, status: int, body: str, headers: Mapping[str, str], *, is_cut: bool = False
    ) -> ModelError:
        """Return the error that an HTTP status and its body tell of.

        With `is_cut` the body is only the beginning of one that is too long to be read.
        """
        if is_cut:
            state, value = parse_partial_json(body)
            body_fields = parse_error_body(body.strip() if state == "error" else value)
            note = f"(only {format_size_limit(len(body.encode()))} of its error were read)"
            body_fields = body_fields._replace(
                message=f"{shorten_text(body_fields.message, _MAX_CHARS)} {note}"
            )
        else:
            body_fields = parse_error_body(_decode_body(body))
        # AWS names an error beside its body: ValidationException:http://…
        if body_fields.code is None and (name := headers.get(_AWS_ERROR, "").partition(":")[0]):
            body_fields = body_fields._replace(code=name)
        milliseconds = parse_retry_after(headers.get("retry-after-ms"))
        wait = parse_retry_after(headers.get("retry-after"))
        return self._build_error(
            body_fields,
            status,
            wait if milliseconds is None else milliseconds / 1000,
            _measure_clock(headers.get("date")),
        )

    def build_redirect_error(
        self, status: int, source: str, location: str, path: str
    ) -> RedirectRefused:
        """Return the error for an answer that sends on what was sent to `source`.

        `path` is the end of that address, which no base_url holds.
        """
        try:
            parts = urlsplit(urljoin(source, location))
            host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
            # without user, query and fragment, which may be secret
            address = urlunsplit((parts.scheme, host, parts.path, "", ""))
            target = shorten_text("".join(filter(str.isprintable, address)), _MAX_CHARS)
        except ValueError:
            target = "an invalid address"
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

        It has no HTTP status, so the equivalent one is derived from its code; an unknown error
        counts as a transport failure, which may be retried.
        """
        fields = parse_error_body(error)
        typed_error = self._build_error(fields, fields.status, None)
        # nothing says that the request is to blame
        if fields.status is None and type(typed_error) is InvalidRequest:
            return StreamError(str(typed_error), provider=self.provider, code=fields.code)
        return typed_error

    def build_no_answer_error(self, body: bytes) -> ModelError:
        """Return the error for a whole `body`, or its beginning, in which there is no event."""
        if not body.strip():
            return self.build_stream_error("sent no answer")
        decoded = _decode_body(body.decode("utf-8", "replace"))
        if isinstance(decoded, dict | list):
            return self.parse_error(decoded)
        return self.build_stream_error(
            f"sent no answer but {shorten_text(str(decoded), _MAX_CHARS)}"
        )

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

    def _advise(
        self,
        status: int | None,
        wait: float | None,
        words: str,
        clock_gap: float | None,
        kind: type[ModelError],
    ) -> str:
        """Return what a person can do about an error; empty where its own words have to do."""
        if status is None:
            return ""
        source = self.find_source() if self.find_source is not None else ""
        fix = self._find_fix(status, words, clock_gap, source, kind)
        if kind in _FAULTS_OF_REQUESTS and not fix:
            return ""
        target = self._describe_target(status)
        if fix and kind is AuthenticationError and source:
            return f"; the key from {source} was refused for {target}: {fix}"
        if kind is AuthenticationError and source and self.key_name:
            unset = f" and unset {source}" if source.isupper() else ""
            return (
                f"; the key from {source} was refused for {target}: check it, or save another with "
                f"gong auth login {self.key_name}{unset}"
            )
        advice = ""
        if kind is RateLimited:
            advice = f"; wait {f'{ceil(wait)} s' if wait else 'a moment'}, then try again"
        elif kind is ServerError and status in _UNAVAILABLE_STATUSES:
            when = f"in {ceil(wait)} s" if wait else "later"
            advice = f"; it is down or overloaded: try again {when}"
        elif kind is ServerError:
            advice = "; try again, or switch to another provider or model (-m, /model)"
        key = f" with the key from {source}" if source else ""
        return f"{advice}; asked for {target}{key}{f': {fix}' if fix else ''}"

    def _find_fix(
        self,
        status: int,
        words: str,
        clock_gap: float | None,
        source: str,
        kind: type[ModelError],
    ) -> str:
        """Return what is likely to be wrong; "" where a limit, or nothing that is known."""
        preset = self.preset
        if preset is None or kind in {RateLimited, QuotaExceeded, ContextLengthExceeded}:
            return ""
        from .likely_fixes import RefusedCall, find_fix  # reads a table

        call = RefusedCall(
            *(status, words, preset.name, preset.api, self.endpoint, self.model),
            preset.get_deployment(self.model),
            *(preset.region or preset.location, preset.project),
            preset.query.get("api-version", ""),
            *(source, clock_gap),
        )
        return find_fix(call)

    def _describe_target(self, status: int) -> str:
        """Return the model, and the address that was asked for it."""
        preset, model = self.preset, self.model
        # of a wrong address every part counts
        path = self.path.partition("?")[0].lstrip("/") if status == _NOT_FOUND else ""
        address = f"{self.endpoint}/{path}" if path else self.endpoint
        if preset is not None and model:
            deployment = preset.get_deployment(model)
            notes = [f"deployment {deployment}"] if deployment != model else []
            place = preset.region or preset.location
            notes += [f"in {place}"] if place and place not in address else []
            model += f" ({', '.join(notes)})" if notes else ""
        return f"{model} at {address}" if model else address

    def _build_error(
        self,
        fields: ErrorBody,
        status: int | None,
        wait: float | None,
        clock_gap: float | None = None,
    ) -> ModelError:
        wait = fields.wait if wait is None else wait
        words = f"{fields.message} {fields.code or ''}"
        advise = partial(self._advise, status, wait, words, clock_gap)
        error = build_provider_error(
            *(self.provider, status, fields.message),
            code=fields.code,
            retry_after=wait,
            key=self.key,
            advise=advise,
        )
        # a limit per minute in the words of a used-up quota
        if type(error) is QuotaExceeded and fields.wait is not None and not fields.per_day:
            return RateLimited(
                str(error).removesuffix(error.advice),
                provider=self.provider,
                status=status,
                code=fields.code,
                retry_after=wait,
                advice=advise(RateLimited),
            )
        return error


def _measure_clock(date: str | None) -> float | None:
    """Return how many seconds a host's clock is ahead of this machine's; None if not known."""
    try:
        return parsedate_to_datetime(date).timestamp() - time.time() if date else None
    except ValueError:
        return None


def _decode_body(text: str) -> Any:
    """Return the JSON of a body, or the text of another one, such as a proxy's page."""
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return text.strip()
