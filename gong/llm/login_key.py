"""The token of a saved login at a provider, which is refreshed when it ends or is refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tape.clock import is_valid_timestamp, parse_timestamp

from ..credentials import Credentials
from ..logins.refresh import get_token
from .keys import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..credentials import SavedLogin
    from .keys import AnyKey
    from .models import Preset

_MICROS = 1_000_000


class LoginKey:
    """The token of the login at one provider, that of all programs of the user."""

    def __init__(self, preset: Preset, environ: Mapping[str, str]) -> None:
        self._provider, self._settings, self._environ = preset.key_name, preset.login, environ

    def describe(self) -> str:
        """Return where the key is from."""
        return f"the login at {self._provider}"

    async def get_key(self) -> Key:
        """Return the token; raises AuthenticationError, NetworkError."""
        return await self._fetch_key("")

    async def replace_key(self, refused: AnyKey) -> Key:
        """Return a newer token than one that the host refused; raises as `get_key` does."""
        return await self._fetch_key(refused.value)

    async def _fetch_key(self, refused: str) -> Key:
        login = await asyncio.to_thread(
            get_token, self._provider, self._settings, self._environ, refused=refused
        )
        return Key(login.oauth_token, self.describe(), _read_end(login))


def has_saved_login(preset: Preset, environ: Mapping[str, str]) -> bool:
    """Return whether a login at a provider is saved."""
    return Credentials.from_environ(environ).has_login(preset.key_name)


def _read_end(login: SavedLogin) -> float | None:
    is_known = is_valid_timestamp(login.expires_at)
    return parse_timestamp(login.expires_at) / _MICROS if is_known else None
