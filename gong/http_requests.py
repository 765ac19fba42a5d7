"""Small requests beside the model calls, one at a time: forms to authorities, lists from servers.

They go by urllib, so that proxies and certificates are those of the environment. No redirect is
followed, and of an answer no more is read than `limit` bytes.
"""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tape.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS = 30.0
_MAX_BYTES = 1 << 20


class RequestFailed(Exception):
    """There was no answer, or it was too long; the text says why."""


class SmallAnswer(NamedTuple):
    """What came: a status, and a body that was read to its end."""

    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any) -> None:
        """Return None: the redirect itself is the answer."""


def post_form(url: str, fields: Mapping[str, str], seconds: float = _SECONDS) -> SmallAnswer:
    """Post a form and return the answer of any status; raises RequestFailed."""
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    return send_request(url, headers, urlencode(fields).encode(), seconds=seconds)


def send_request(
    url: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    seconds: float = _SECONDS,
    limit: int = _MAX_BYTES,
) -> SmallAnswer:
    """Get an address, or post a body there, and return the answer of any status.

    Raises RequestFailed.
    """
    request = Request(  # noqa: S310 (callers give http addresses only)
        url, data=body, headers={"user-agent": f"gong/{__version__}", **headers}
    )
    opener = build_opener(_NoRedirects)
    try:
        try:
            response = opener.open(request, timeout=seconds)
        except HTTPError as error:
            response = error
        with response:
            data = response.read(limit + 1)
            status = response.status
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise RequestFailed(str(reason) or type(error).__name__) from None
    if len(data) > limit:
        raise RequestFailed(f"the answer is longer than {limit >> 20} MiB")
    return SmallAnswer(status, data)
