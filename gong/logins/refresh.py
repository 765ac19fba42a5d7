"""Logins that are saved: their token while it holds, else a new one, got once for all processes.

Who needs a new token waits for the lock of that login, and then reads what is saved: another
process may have refreshed it meanwhile. An authority may take each refresh token only once.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tape.clock import format_timestamp, is_valid_timestamp, parse_timestamp, read_clock

from ..credentials import Credentials, SavedLogin
from ..errors import AuthenticationError, NetworkError
from ..private_files import locate_state_folder
from .tokens import TokenRefused, parse_tokens, post_to_authority

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .settings import LoginSettings
    from .tokens import LoginTokens

_EARLY = 60.0
"""Seconds before its end that a token is replaced."""
_MICROS = 1_000_000


def get_token(
    provider: str,
    settings: LoginSettings | None,
    environ: Mapping[str, str],
    *,
    refused: str = "",
) -> SavedLogin:
    """Return the saved login with a token that holds; it may wait for an authority.

    `refused` is a token that its host did not take, which counts as expired. Raises
    AuthenticationError where a person has to log in again, NetworkError where nobody answers.
    """
    credentials = Credentials.from_environ(environ)
    login = _read_login(provider, credentials)
    if _is_usable(login, refused):
        return login
    with _hold_lock(provider, environ):
        login = _read_login(provider, credentials)
        if _is_usable(login, refused):
            return login
        if settings is None or not login.refresh_token:
            why = "was refused" if refused else "has expired"
            raise _build_login_error(provider, why)
        try:
            tokens = _fetch_new_tokens(provider, settings, login)
        except NetworkError:
            # it holds for a moment still
            if login.oauth_token != refused and measure_time_left(login, time.time()) > 0:
                return login
            raise
        return save_tokens(provider, tokens, credentials, login.refresh_token)[0]


def save_tokens(
    provider: str, tokens: LoginTokens, credentials: Credentials, refresh_token: str = ""
) -> tuple[SavedLogin, str]:
    """Save the tokens of a login and return it, and where it is.

    `refresh_token` is the one from before, which stays where an authority gave no other.
    """
    now = read_clock()
    expires = (
        "" if tokens.seconds is None else format_timestamp(now + int(tokens.seconds * _MICROS))
    )
    login = SavedLogin(tokens.access, tokens.refresh or refresh_token, expires)
    return login, credentials.save_login(provider, login, format_timestamp(now))


def revoke_login(provider: str, settings: LoginSettings, login: SavedLogin) -> None:
    """Have the authority forget a login (RFC 7009); raises AuthenticationError, NetworkError."""
    refresh = login.refresh_token
    kind = "refresh_token" if refresh else "access_token"
    fields = {"token": refresh or login.oauth_token, "token_type_hint": kind}
    post_to_authority(provider, settings.revoke_url, settings, fields)


def measure_time_left(login: SavedLogin, now: float) -> float:
    """Return the seconds until a token expires, negative after it; infinity if unknown."""
    if not is_valid_timestamp(login.expires_at):
        return float("inf")
    return parse_timestamp(login.expires_at) / _MICROS - now


def _is_usable(login: SavedLogin, refused: str) -> bool:
    return login.oauth_token != refused and measure_time_left(login, time.time()) > _EARLY


def _read_login(provider: str, credentials: Credentials) -> SavedLogin:
    login = credentials.find_login(provider)
    if login is None:
        raise _build_login_error(provider, "is not complete")
    return login


def _fetch_new_tokens(provider: str, settings: LoginSettings, login: SavedLogin) -> LoginTokens:
    fields = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
    try:
        return parse_tokens(
            provider, post_to_authority(provider, settings.token_url, settings, fields)
        )
    except TokenRefused as error:
        raise _build_login_error(provider, f"cannot be refreshed ({error})") from None


def _build_login_error(provider: str, why: str) -> AuthenticationError:
    return AuthenticationError(
        f"the login at {provider} {why}: gong auth login {provider}", provider=provider
    )


@contextmanager
def _hold_lock(provider: str, environ: Mapping[str, str]) -> Iterator[None]:
    """Hold the lock of a login against other processes and threads, and wait for it.

    Where no lock can be had, as in a folder that cannot be written, it goes without.
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "_", provider)
    folder = locate_state_folder(environ) / "logins"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
