"""Every request passes here: who may not ask is refused, and every answer gets its headers.

    GET /?token=TOKEN    the printed address: sets a cookie for this port, and leads to the page
    cookie, or `Authorization: Bearer TOKEN`                             is let through

A request that would change something is refused, unless the server may write: then it has to come
from a page of this server, or from a program with the token.

Where a proxy logs people in (`viewers`), its header is asked for instead, and no token counts.

Invariant: nothing of a store is read for a request that is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse

from .access import (
    READ_ONLY,
    WRONG_NAME,
    WRONG_TOKEN,
    find_foreign_name,
    find_foreign_page,
    is_token,
    read_bearer,
)
from .templating import build_policy, render_page
from .viewers import Viewer, current_viewer

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .access import Refusal
    from .viewers import ProxyLogin

_READING = frozenset({"GET", "HEAD"})
_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Gate:
    """The outermost part of the application."""

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        names: frozenset[str],
        port: int,
        login: ProxyLogin | None = None,
        *,
        may_write: bool = False,
    ) -> None:
        self._app, self._token, self._names, self._login = app, token, names, login
        self._may_write = may_write
        self._cookie = f"tape_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("content-security-policy", build_policy())
            await send(message)

        request = Request(scope)
        answer = self._find_answer(request)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _find_answer(self, request: Request) -> Response | None:
        """Return the answer to a request that goes no further; None for one that does."""
        headers = request.headers
        if refusal := (
            find_foreign_name(headers, self._names)
            or self._find_foreign_page(headers)
            or self._find_wrong_change(request)
        ):
            return _build_refusal(refusal)
        if self._login is not None:
            viewer = self._login.find_viewer(request.client.host if request.client else "", headers)
            if not isinstance(viewer, Viewer):
                return _build_refusal(viewer)
            current_viewer.set(viewer)
            return None
        current_viewer.set(Viewer("", None))
        token = request.query_params.get("token")
        if token is not None and request.method == "GET":
            if not is_token(token, self._token):
                return _build_refusal(WRONG_TOKEN)
            return self._admit_browser(request)
        secret = read_bearer(headers) or request.cookies.get(self._cookie, "")
        return None if is_token(secret, self._token) else _build_refusal(WRONG_TOKEN)

    def _find_foreign_page(self, headers: Headers) -> Refusal | None:
        return None if self._is_program(headers) else find_foreign_page(headers)

    def _find_wrong_change(self, request: Request) -> Refusal | None:
        if request.method in _READING:
            return None
        if not self._may_write:
            return READ_ONLY
        # A browser says where each change comes from, and that was compared already.
        is_said = self._is_program(request.headers) or request.headers.get("origin")
        return None if is_said else WRONG_NAME

    def _is_program(self, headers: Headers) -> bool:
        return self._login is None and bool(read_bearer(headers))

    def _admit_browser(self, request: Request) -> Response:
        """Set the cookie, and lead to the same page without the token."""
        rest = [(k, v) for k, v in parse_qsl(request.url.query) if k != "token"]
        # A path of two slashes at its beginning would name another host.
        path = "/" + request.scope["raw_path"].decode("ascii", "replace").lstrip("/\\")
        answer = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax")
        return answer


def _build_refusal(refusal: Refusal) -> Response:
    return render_page("refused.html", refusal._asdict(), refusal.status)
