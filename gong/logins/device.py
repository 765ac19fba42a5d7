"""A login by a code that a person types on another device (RFC 8628)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import AuthenticationError, NetworkError
from .tokens import TokenRefused, parse_tokens, post_to_authority, read_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from .settings import LoginSettings
    from .tokens import LoginTokens

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_USUAL_PAUSE, _SLOWER, _MAX_PAUSE = 5.0, 5.0, 60.0
"""Seconds between two questions; how much longer they become; and at most."""
_USUAL_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What a person types, and where."""

    code: str = field(repr=False)
    user_code: str
    address: str
    whole_address: str
    """The address with the code in it; "" if there is none."""
    seconds: float
    pause: float


def fetch_device_code(provider: str, settings: LoginSettings) -> DeviceCode:
    """Return a new code; raises AuthenticationError, NetworkError."""
    scope = {"scope": " ".join(settings.scopes)} if settings.scopes else {}
    values = post_to_authority(
        provider, settings.device_url, settings, {**scope, **settings.parameters}
    )
    texts = {
        name: values.get(name)
        for name in ("device_code", "user_code", "verification_uri", "verification_uri_complete")
    }
    address = texts["verification_uri"] or values.get("verification_url")  # Google's name
    code, user_code = texts["device_code"], texts["user_code"]
    if not all(
        isinstance(text, str) and text and text.isprintable() for text in (code, user_code, address)
    ):
        raise AuthenticationError(
            f"{settings.device_url} sent no code and address to type it at", provider=provider
        )
    whole, pause = texts["verification_uri_complete"], read_seconds(values.get("interval"))
    return DeviceCode(
        str(code),
        str(user_code),
        str(address),
        whole if isinstance(whole, str) and whole.isprintable() else "",
        read_seconds(values.get("expires_in")) or _USUAL_SECONDS,
        min(_USUAL_PAUSE if pause is None else pause, _MAX_PAUSE),
    )


def wait_for_tokens(
    provider: str,
    settings: LoginSettings,
    device: DeviceCode,
    wait: Callable[[float], None] = time.sleep,
) -> LoginTokens:
    """Ask until the person has typed the code, and return the tokens.

    Raises AuthenticationError where the person refuses, or the code expires first.
    """
    pause, end = device.pause, time.monotonic() + device.seconds
    fields = {"grant_type": _GRANT, "device_code": device.code}
    while True:
        wait(pause)
        try:
            values = post_to_authority(provider, settings.token_url, settings, fields)
            return parse_tokens(provider, values)
        except TokenRefused as error:
            match error.code:
                case "authorization_pending":
                    pass
                case "slow_down":
                    pause = min(pause + _SLOWER, _MAX_PAUSE)
                case "expired_token":
                    raise _build_expired_error(provider) from None
                case "access_denied":
                    raise AuthenticationError(
                        f"the login at {provider} was refused there", provider=provider
                    ) from None
                case _:
                    raise
        except NetworkError:
            pause = min(max(pause, 1.0) * 2, _MAX_PAUSE)  # as the RFC wants it
            if time.monotonic() >= end:
                raise
        if time.monotonic() >= end:
            raise _build_expired_error(provider)


def _build_expired_error(provider: str) -> AuthenticationError:
    return AuthenticationError(
        f"the code has expired before it was typed: gong auth login {provider}", provider=provider
    )
