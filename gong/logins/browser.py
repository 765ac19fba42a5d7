"""A login in a browser of this machine: the code flow with PKCE (RFC 7636, RFC 8252)."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from .callback import LOGIN_SECONDS, serve_callback
from .tokens import parse_tokens, post_to_authority

if TYPE_CHECKING:
    from collections.abc import Callable

    from .settings import LoginSettings
    from .tokens import LoginTokens


async def run_browser_login(
    provider: str,
    settings: LoginSettings,
    show_address: Callable[[str], None],
    seconds: float = LOGIN_SECONDS,
) -> LoginTokens:
    """Have a person log in, and return the tokens.

    `show_address` is called with what to open. Raises AuthenticationError, NetworkError.
    """
    state, verifier = token_urlsafe(32), token_urlsafe(48)
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    async with serve_callback(state, settings.port) as callback:
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": callback.redirect,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **({"scope": " ".join(settings.scopes)} if settings.scopes else {}),
            **settings.parameters,
        }
        separator = "&" if "?" in settings.authorize_url else "?"
        show_address(f"{settings.authorize_url}{separator}{urlencode(query)}")
        parameters = await callback.wait(seconds)
        fields = {
            "grant_type": "authorization_code",
            "code": parameters.code,
            "redirect_uri": callback.redirect,
            "code_verifier": verifier,
        }
        values = await asyncio.to_thread(
            post_to_authority, provider, settings.token_url, settings, fields
        )
    return parse_tokens(provider, values)
