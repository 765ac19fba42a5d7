"""What a host says went wrong, read from any of the shapes hosts give it: pure.

The Gemini API tells of a limit per minute and of a quota that is used up in the same words; how
long to wait stands only with the first.
"""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, NamedTuple

from tape.formats.wire import encode_json

from .json_values import WireObject, read_object

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
    "timeout_error": 504,
    "overloaded": 529,
    "overloaded_error": 529,
    "server_is_overloaded": 529,
}
"""Words for an error → the HTTP status it would have had."""
_STATUSES = range(400, 600)
_NUMBER = re.compile(r"[0-9]{1,18}")
"""A code: Python refuses to read thousands of digits."""
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_PER_DAY = "PerDay"


class ErrorBody(NamedTuple):
    """What is known of an error; an empty message where there is none."""

    message: str = ""
    code: str | None = None
    status: int | None = None
    """The HTTP status it has or would have had; None when nothing says so."""
    wait: float | None = None
    """How long the text itself asks to wait, in seconds."""
    per_day: bool = False
    """It is a day's quota that is used up."""


def parse_error_body(error: Any) -> ErrorBody:
    """Return what a JSON value, or a text that is none, says of an error."""
    match error:
        case str():
            return ErrorBody(error)
        case [first, *_]:
            return parse_error_body(first)
        case {"error": {**inner}}:
            return parse_error_body(inner)
        case {"base_resp": {"status_msg": str(message), "status_code": int(code)}}:
            return parse_error_body({"message": message, "code": code})
        case dict() as fields:
            return _parse_fields(fields)
    return ErrorBody()


def parse_retry_after(header: str | None) -> float | None:
    """Return a Retry-After, a number or a date, in seconds; None when there is none to be read."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        return _compute_wait_until_date(header)
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _parse_fields(fields: WireObject) -> ErrorBody:
    names = [fields.get(name) for name in ("code", "type", "status")]
    code = next((name for name in names if _is_word(name)), None) or _find_number(fields)
    details = _list_details(fields)
    return ErrorBody(
        _find_message(fields) or code or "",
        code,
        _find_status(fields),
        _find_delay(details),
        any(_PER_DAY in str(detail.get("violations")) for detail in details),
    )


def _find_message(fields: WireObject) -> str:
    """Return the words for people; of an object without a place for them, all of it."""
    known = [fields[name] for name in ("message", "error", "detail") if name in fields]
    if not known:
        return encode_json(fields).decode() if fields else ""
    told = next(filter(None, known), "")
    message = told if isinstance(told, str) else encode_json(told).decode()
    upstream = read_object(fields.get("metadata")).get("raw")  # what a router itself was told
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


def _find_number(fields: WireObject) -> str | None:
    """Return a code that is a host's own number; None for an HTTP status."""
    number = str(fields.get("code"))
    return number if _NUMBER.fullmatch(number) and int(number) not in _STATUSES else None


def _is_word(name: Any) -> bool:
    return isinstance(name, str) and bool(name) and not name.isdecimal()


def _find_delay(details: list[WireObject]) -> float | None:
    for detail in details:
        delay = detail.get("retryDelay")
        if detail.get("@type") == _RETRY_INFO and isinstance(delay, str):
            return parse_retry_after(delay.removesuffix("s"))
    return None


def _list_details(fields: WireObject) -> list[WireObject]:
    details = fields.get("details")
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _compute_wait_until_date(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return None
