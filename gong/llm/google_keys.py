"""Tokens of the user's login at Google, by google-auth (`pip install 'gong[vertex]'`).

It finds the login where Google's own programs leave it: the file that the variable
GOOGLE_APPLICATION_CREDENTIALS names, that of `gcloud auth application-default login`, or the
machine's own identity.
"""

from __future__ import annotations

import asyncio
from datetime import UTC
from typing import TYPE_CHECKING, Any

from ..errors import AuthenticationError
from .cloud_logins import GOOGLE_FILE_VARIABLE, has_google_auth
from .keys import Key, is_same_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .keys import AnyKey

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LOGIN = "gcloud auth application-default login"


class GoogleKeys:
    """The tokens of one login."""

    def __init__(self, provider: str, environ: Mapping[str, str]) -> None:
        self._provider, self._environ = provider, environ
        self._credentials: Any = None

    def describe(self) -> str:
        """Return where the token is from."""
        return self._environ.get(GOOGLE_FILE_VARIABLE, "").strip() or "the login of gcloud"

    async def get_key(self) -> Key:
        """Return a token; raises AuthenticationError."""
        return await asyncio.to_thread(self._get_token, renew=False)

    async def replace_key(self, refused: AnyKey) -> Key | None:
        """Return a new token; None if it is the same."""
        key = await asyncio.to_thread(self._get_token, renew=True)
        return None if is_same_key(key, refused) else key

    def _get_token(self, *, renew: bool) -> Key:
        """Return a token; it blocks, as it may ask a server."""
        if not has_google_auth():
            raise self._build_missing_error()
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.requests

        try:
            if self._credentials is None:
                self._credentials, _ = google.auth.default(scopes=[_SCOPE])
            if renew or not self._credentials.valid:
                self._credentials.refresh(google.auth.transport.requests.Request())
        except google.auth.exceptions.DefaultCredentialsError as error:
            if "were not found" in str(error):
                raise self._build_missing_error() from None
            raise self._build_error(error) from None
        except google.auth.exceptions.TransportError:
            raise AuthenticationError(
                f"no token for {self._provider}: its server cannot be reached from here",
                provider=self._provider,
            ) from None
        except (
            *(google.auth.exceptions.GoogleAuthError, OSError, ValueError),
            *(AttributeError, KeyError, TypeError),  # a file that holds other JSON
        ) as error:
            raise self._build_error(error) from None
        ends = self._credentials.expiry
        return Key(
            str(self._credentials.token),
            self.describe(),
            ends.replace(tzinfo=UTC).timestamp() if ends is not None else None,
        )

    def _build_error(self, error: Exception) -> AuthenticationError:
        """Return the error without google-auth's words, which may be a file's or a server's."""
        is_over = "invalid_grant" in str(error) or "reauth" in str(error).lower()
        what = "has expired or was revoked" if is_over else f"is of no use ({type(error).__name__})"
        return AuthenticationError(
            f"{self.describe()} {what}: run {_LOGIN}", provider=self._provider
        )

    def _build_missing_error(self) -> AuthenticationError:
        install = "" if has_google_auth() else "pip install 'gong[vertex]' and "
        return AuthenticationError(
            f"no token for {self._provider}: {install}run {_LOGIN}, or set key_command in "
            f'[providers.{self._provider}] to "gcloud auth print-access-token"',
            provider=self._provider,
        )
