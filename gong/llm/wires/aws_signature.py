"""Signs calls to AWS: Signature Version 4, as its documentation describes it; pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ..keys import SigningKey

_ALGORITHM = "AWS4-HMAC-SHA256"
_UNSIGNED = frozenset({
    "connection", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id",
    "accept", "accept-encoding", "content-length",
})  # fmt: skip
"""Headers that a proxy may change on the way."""


def build_signature_headers(
    key: SigningKey,
    scope: tuple[str, str],
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
) -> dict[str, str]:
    """Return the headers that sign a POST: `scope` is region and service, `now` is in UTC.

    The address is as it is sent, encoded. All other headers that are sent must be in `headers`,
    with names in small letters; the host is that of the address unless they say another.
    """
    parts, stamp = urlsplit(url), now.strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-date": stamp}
    if key.session_token:
        added["x-amz-security-token"] = key.session_token
    signed = {"host": parts.netloc.rpartition("@")[2], **headers, **added}
    signed = {name: signed[name] for name in sorted(signed) if name not in _UNSIGNED}
    names = ";".join(signed)
    path = re.sub(r"/(?:\./|/)+", "/", parts.path or "/")
    canonical = "\n".join(
        (
            "POST",
            quote(path, safe="/-_.~"),
            "&".join(sorted(filter(None, parts.query.split("&")))),
            *(f"{name}:{' '.join(value.split())}" for name, value in signed.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    region, service = scope
    day = stamp[:8]
    where = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join((_ALGORITHM, stamp, where, hashlib.sha256(canonical.encode()).hexdigest()))
    secret = f"AWS4{key.secret}".encode()
    for step in (day, region, service, "aws4_request", text):
        secret = hmac.digest(secret, step.encode(), "sha256")
    return {
        **added,
        "authorization": (
            f"{_ALGORITHM} Credential={key.id}/{where}, SignedHeaders={names}, "
            f"Signature={secret.hex()}"
        ),
    }
