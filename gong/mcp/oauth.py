"""Tokens for servers that ask for a login: kept with the keys, fetched by `gong mcp login`.

In a session tokens are used and refreshed; nobody is sent to a browser there. A login opens a port
on the loopback address, shows the address of the authority, and waits until the browser comes back:

    gong mcp login ─▶ authority in the browser ─▶ http://127.0.0.1:PORT/callback?code=… ─▶ tokens
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from msgspec import Struct
from msgspec.structs import replace
from pydantic import AnyUrl

from tape.clock import format_timestamp, read_clock

from ..credentials import Credentials
from ..errors import AuthenticationError
from ..logins.callback import LOGIN_SECONDS, serve_callback
from .connection import ServerConnection
from .transports import locate_log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ..logins.callback import CallbackServer
    from .servers import ServerConfig


class _SavedLogin(Struct, frozen=True, omit_defaults=True):
    """What is kept of a login: JSON of the SDK's tokens and client, and for which address."""

    url: str
    tokens: str = ""
    client: str = ""


class TokenStore:
    """The tokens of one server among the saved credentials; the SDK's `TokenStorage`."""

    def __init__(self, server: ServerConfig, environ: Mapping[str, str]) -> None:
        self._server, self._key = server, f"mcp:{server.name}"
        self._credentials = Credentials.from_environ(environ)

    def read(self) -> _SavedLogin:
        """Return what is kept; of another address than the server's nothing is used."""
        text = self._credentials.key(self._key, ())
        empty = _SavedLogin(self._server.url)
        if not text:
            return empty
        try:
            login = msgspec.json.decode(text, type=_SavedLogin)
        except msgspec.DecodeError:
            return empty
        return login if login.url == self._server.url else empty

    def _write(self, login: _SavedLogin) -> None:
        now = format_timestamp(read_clock())
        self._credentials.save(self._key, msgspec.json.encode(login).decode(), now)

    def forget(self) -> bool:
        """Remove what is kept; False where there was nothing."""
        return self._credentials.remove(self._key)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens; None before a login."""
        text = self.read().tokens
        return OAuthToken.model_validate_json(text) if text else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep new tokens."""
        self._write(replace(self.read(), tokens=tokens.model_dump_json()))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client that is registered, or that the server's entry names."""
        if text := self.read().client:
            return OAuthClientInformationFull.model_validate_json(text)
        own = self._server.oauth
        if not own.client_id:
            return None
        return OAuthClientInformationFull(
            client_id=own.client_id,
            client_secret=own.client_secret or None,
            token_endpoint_auth_method="client_secret_basic" if own.client_secret else "none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the client that was registered."""
        self._write(replace(self.read(), client=client_info.model_dump_json()))


def build_auth(server: ServerConfig, environ: Mapping[str, str]) -> OAuthClientProvider | None:
    """Return the authentication of a session: saved tokens, refreshed; None before a login.

    Without one a server that wants it fails, and its error says what to run.
    """
    store = TokenStore(server, environ)
    if not store.read().tokens:
        return None

    async def refuse(_address: str) -> None:
        raise AuthenticationError(f"its login has expired: gong mcp login {server.name}")

    async def never() -> AuthorizationCodeResult:
        raise AuthenticationError(f"it needs a login: gong mcp login {server.name}")

    return build_provider(server, store, "http://127.0.0.1/callback", refuse, never)


def build_provider(
    server: ServerConfig,
    store: TokenStore,
    redirect: str,
    send_away: Callable[[str], Awaitable[None]],
    wait_for_code: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    """Return the SDK's authentication with our name, tokens and way to the browser."""
    metadata = OAuthClientMetadata(
        client_name="gong",
        redirect_uris=[AnyUrl(redirect)],
        scope=server.oauth.scope or None,
    )
    return OAuthClientProvider(server.url, metadata, store, send_away, wait_for_code)


async def receive_code(callback: CallbackServer) -> AuthorizationCodeResult:
    """Return what a browser brought back, as the SDK has it, which checks the state."""
    code, state, issuer = await callback.wait()
    return AuthorizationCodeResult(code=code, state=state, iss=issuer)


async def fetch_tokens(
    server: ServerConfig, environ: Mapping[str, str], show_address: Callable[[str], None]
) -> int:
    """Log in at a server: get its tokens, and keep them; return how many tools it has then.

    `show_address` is called with what to open in a browser. Raises AuthenticationError, and what
    the SDK raises where the server or its authority refuses.
    """
    store = TokenStore(server, environ)
    store.forget()
    async with serve_callback() as callback:

        async def send_away(address: str) -> None:
            show_address(address)

        receive = partial(receive_code, callback)
        auth = build_provider(server, store, callback.redirect, send_away, receive)
        connection = ServerConnection(
            replace(server, startup_seconds=LOGIN_SECONDS),
            folder=".",
            variables={},
            log=locate_log(server.name, environ),
            auth=auth,
        )
        try:
            await connection.ensure()
            return len(connection.tools)
        finally:
            await connection.close()
