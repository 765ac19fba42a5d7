"""Proves to a host who calls: the headers of a key, or a signature.

The key is got before the first call and used until it expires, or until a host refuses it: then
the call is made once more with another, if there is one.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..keys import Key, SigningKey, is_fresh
from .aws_signature import build_signature_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..keys import AnyKey, KeySource
    from ..models import Preset

_REFUSED = 401
_FORBIDDEN = 403
_EXPIRED = "expired"


class Access:
    """The key of one endpoint, and what it makes of a call."""

    def __init__(self, preset: Preset, source: KeySource) -> None:
        self._preset, self._source = preset, source
        self._key: AnyKey | None = None

    @property
    def secret(self) -> str:
        """What is sent and may be shown nowhere; "" before the first call."""
        return self._key.value if self._key is not None else ""

    def describe_source(self) -> str:
        """Return where the key is from; "" if that is not known."""
        return (self._key.source if self._key is not None else "") or self._source.describe()

    async def prepare(self) -> None:
        """Get a key that holds for a while; raises AuthenticationError."""
        if self._key is None or not is_fresh(self._key, time.time()):
            self._key = await self._source.get_key()

    async def renew(self, status: int, text: str) -> bool:
        """Return whether there is another key after an answer that may be about this one."""
        # AWS has no 401
        is_refused = status == _REFUSED or (status == _FORBIDDEN and _EXPIRED in text.lower())
        if not is_refused or self._key is None:
            return False
        key = await self._source.replace_key(self._key)
        if key is None:
            return False
        self._key = key
        return True

    def build_headers(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return `headers` with those of the key; one that is in them already has the last word.

        Their names are in small letters.
        """
        key = self._key
        assert key is not None, "the key is got first"
        if isinstance(key, SigningKey):
            if "authorization" in headers:
                return dict(headers)
            scope = (self._preset.region, self._preset.aws_service)
            return {
                **headers,
                **build_signature_headers(key, scope, url, headers, body, datetime.now(UTC)),
            }
        return {**_encode_key(self._preset, key), **headers}


def _encode_key(preset: Preset, key: Key) -> dict[str, str]:
    """Return the headers of a key that is sent."""
    is_header = preset.auth in {"api-key", "x-api-key", "x-goog-api-key"}
    if not is_header or (preset.auth == "api-key" and key.is_web_token):
        return {"authorization": f"Bearer {key.value}"}
    # Azure's name for it, and that of the API
    also = {"x-api-key": key.value} if preset.api == "anthropic-messages" else {}
    return {**also, preset.auth: key.value}
