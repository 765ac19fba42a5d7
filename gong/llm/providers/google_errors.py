"""What the Gemini API says went wrong → errors of ours: in a body, or in a stream; pure.

The API tells of a limit per minute and of a quota that is used up in the same words; how long to
wait stands only with the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tape.formats.wire import decoded

from ...errors import ModelError, QuotaExceeded, RateLimited
from .channel import retry_after

if TYPE_CHECKING:
    from httpx2 import Response

    from .channel import Channel

WireObject = dict[str, Any]

_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_FIRST_ERROR = 400
_PER_DAY = "PerDay"


def refused(channel: Channel, response: Response) -> ModelError:
    """Return the error for a response, read whole, that is no answer."""
    wait = retry_after(response.headers.get("retry-after"))
    try:
        body = decoded(response.content)
    except (ValueError, RecursionError):
        return channel.told(response.status_code, response.text.strip(), retry_after=wait)
    return told(channel, body, response.status_code, wait)


def told(
    channel: Channel, body: Any, status: int | None = None, wait: float | None = None
) -> ModelError:
    """Return the error that a JSON body or an event tells of; `wait` is in seconds.

    An event has no HTTP status of its own: the one it would have had stands in it.
    """
    error = _error(body)
    message, code = error.get("message"), error.get("status")
    if status is None and isinstance(inner := error.get("code"), int) and inner >= _FIRST_ERROR:
        status = inner
    text = message if isinstance(message, str) else _whole(body)
    wait = _delay(error) if wait is None else wait
    found = channel.told(status, text, code if isinstance(code, str) else None, wait)
    if type(found) is QuotaExceeded and _delay(error) is not None and not _is_per_day(error):
        return RateLimited(
            str(found), provider=found.provider, status=status, code=found.code, retry_after=wait
        )
    return found


def _error(body: Any) -> WireObject:
    """Return the object that says what is wrong; without `alt=sse` it comes in a list."""
    if isinstance(body, list) and body:
        return _error(body[0])
    if not isinstance(body, dict):
        return {}
    error = body.get("error", body)
    return error if isinstance(error, dict) else {"message": error}


def _whole(body: Any) -> str:
    return msgspec.json.encode(body).decode() if body else ""


def _delay(error: WireObject) -> float | None:
    """Return how long the API asks to wait, in seconds; None when it does not say."""
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if detail.get("@type") == _RETRY_INFO and isinstance(delay, str):
            return retry_after(delay.removesuffix("s"))
    return None


def _is_per_day(error: WireObject) -> bool:
    return any(_PER_DAY in str(detail.get("violations")) for detail in _details(error))


def _details(error: WireObject) -> list[WireObject]:
    details = error.get("details")
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []
