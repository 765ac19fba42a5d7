"""Who may ask a server on this machine: names in `Host` and `Origin`, and a token; pure.

Every server of ours asks these questions, in this order: a name that only this machine has, so that
no page of a browser gets in by a name that leads here; then the secret, compared in constant time.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names that only this machine has."""


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    reason: str


WRONG_NAME = Refusal(403, "this address is only for this machine")
WRONG_TOKEN = Refusal(401, "the token is missing or wrong")
READ_ONLY = Refusal(405, "this server changes nothing: it was started without --write")


def find_foreign_name(headers: Mapping[str, str], names: frozenset[str]) -> Refusal | None:
    """Return why a request is refused whose `Host` or `Origin` names another host than `names`."""
    hosts = [_read_host_name(headers.get("host", ""))]
    if origin := headers.get("origin"):
        hosts.append(_read_host_name(origin.partition("://")[2]))
    return None if names.issuperset(hosts) else WRONG_NAME


def _read_host_name(authority: str) -> str | None:
    try:
        return urlsplit(f"//{authority}").hostname
    except ValueError:  # brackets that are no address
        return None


def find_foreign_page(headers: Mapping[str, str]) -> Refusal | None:
    """Return why a request is refused that a page of another site, or of another port, made.

    A browser sends cookies along with such requests, to all ports of a host. A link is followed
    wherever it stands.
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is not None and origin.partition("://")[2] != host:
        return WRONG_NAME
    is_link = headers.get("sec-fetch-mode") == "navigate" and not origin
    if headers.get("sec-fetch-site") in {"cross-site", "same-site"} and not (
        is_link and headers.get("sec-fetch-dest") == "document"
    ):
        return WRONG_NAME
    return None


def is_token(secret: str, token: str) -> bool:
    """Return whether this is the token, in a time that says nothing about it."""
    return hmac.compare_digest(secret.encode("utf-8", "surrogatepass"), token.encode())


def read_bearer(headers: Mapping[str, str]) -> str:
    """Return the secret of `Authorization: Bearer SECRET`, or ""."""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    return secret if kind.lower() == "bearer" else ""
