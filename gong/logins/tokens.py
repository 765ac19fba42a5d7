"""What an authority answers: tokens, or why there are none. No text contains a token."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import AuthenticationError, NetworkError
from ..http_requests import RequestFailed, post_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..http_requests import SmallAnswer
    from .settings import LoginSettings

_MAX_REASON = 300
_MIN_SECRET = 8
_FIRST_SERVER_STATUS = 500


@dataclass(frozen=True, slots=True)
class LoginTokens:
    """The tokens of a login."""

    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    seconds: float | None = None
    """How long the first one holds from now on; None if that is not known."""
    scope: str = ""


class TokenRefused(AuthenticationError):
    """An authority gave no token; `code` is its own word for why."""


def post_to_authority(
    provider: str, url: str, settings: LoginSettings, fields: Mapping[str, str]
) -> dict[str, Any]:
    """Post fields with the client's id and return the JSON that comes back.

    Raises ConfigurationError for settings that cannot work, TokenRefused for a refusal,
    NetworkError where nobody answers as an authority does.
    """
    settings.check_addresses(provider)
    client = {"client_id": settings.client_id}
    if settings.client_secret:
        client["client_secret"] = settings.client_secret
    try:
        answer = post_form(url, {**client, **fields})
    except RequestFailed as error:
        raise NetworkError(f"cannot reach {url}: {error}", provider=provider) from None
    secrets = (*fields.values(), settings.client_secret)
    return _parse_answer(provider, url, answer, secrets)


def parse_tokens(provider: str, values: Mapping[str, Any]) -> LoginTokens:
    """Return the tokens in an authority's answer; raises AuthenticationError."""
    access, refresh = values.get("access_token"), values.get("refresh_token")
    kind = str(values.get("token_type") or "bearer").lower()
    if not (isinstance(access, str) and _is_token(access)) or kind not in {"bearer", "token"}:
        raise AuthenticationError(
            f"the authority of {provider} sent no bearer token", provider=provider
        )
    return LoginTokens(
        access,
        refresh if isinstance(refresh, str) and _is_token(refresh) else "",
        read_seconds(values.get("expires_in")),
        str(values.get("scope") or ""),
    )


def read_seconds(value: Any) -> float | None:
    """Return a number of seconds, also of one that is written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _is_token(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _parse_answer(
    provider: str, url: str, answer: SmallAnswer, secrets: tuple[str, ...]
) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        values = None
    if isinstance(values, dict) and (code := values.get("error")):
        if isinstance(code, dict):  # not as OAuth says, but seen
            code = code.get("code") or code.get("message")
        text = str(values.get("error_description") or "")
        reason = _clean_text(f"{code}: {text}" if text else str(code), secrets)
        raise TokenRefused(
            f"{url} refused ({answer.status}): {reason}", provider=provider, code=str(code)[:100]
        )
    if isinstance(values, dict) and answer.is_success:
        return values
    # an empty answer is one to a revocation
    if answer.is_success and not answer.body.strip():
        return {}
    if answer.status < _FIRST_SERVER_STATUS and not answer.is_success:
        raise TokenRefused(f"{url} refused with status {answer.status}", provider=provider)
    raise NetworkError(
        f"{url} does not answer as an authority does (status {answer.status})", provider=provider
    )


def _clean_text(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, "…")
    text = re.sub(r"[^\x20-\x7e\u00a0-\ud7ff]+", " ", text)
    return text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]}…"
