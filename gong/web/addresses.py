"""Addresses of the web as tools may use them; pure.

One parser serves rules and requests, so that a rule is about the host that is connected to. Its
host is in small letters, in ASCII, without a dot at its end, and a number in any spelling is the IP
address that it means: `0x7f.1` is `127.0.0.1`.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    from ..ip_addresses import IPAddress

_PORTS = {"http": 80, "https": 443}
_MAX_ADDRESS = 8192
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9a-fx.]*\d[0-9a-fx.]*")
"""A host that `inet_aton` may read as a number."""


class InvalidAddress(ValueError):
    """Text that is no address of the web, or none that may be fetched; the text says why."""


class WebAddress(NamedTuple):
    """An address of the web."""

    scheme: str
    """http or https."""
    host: str
    """A name in ASCII, or an IP address, without brackets."""
    port: int
    target: str
    """Path and query."""

    @property
    def origin(self) -> str:
        """Scheme, host and port, as an address has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def url(self) -> str:
        """The whole address."""
        return f"{self.origin}{self.target}"


def parse_address(text: str) -> WebAddress:
    """Return the address that a text is; raises InvalidAddress."""
    text = text.strip()
    if len(text) > _MAX_ADDRESS:
        raise InvalidAddress(f"the address is longer than {_MAX_ADDRESS} characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidAddress(f"{text} is not an address: {error}") from None
    if parts.scheme not in _PORTS or not parts.netloc:
        raise InvalidAddress(f"{text or 'nothing'} is not an address that begins with https://")
    if "@" in parts.netloc:
        raise InvalidAddress("an address with a name or password in it is not fetched")
    host = normalize_host(parts.hostname or "")
    target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    # two slashes at its start would be a host
    target = target if target.startswith("/") else f"/{target}"
    return WebAddress(parts.scheme, host, port or _PORTS[parts.scheme], target)


def normalize_host(host: str) -> str:
    """Return a host in its one spelling; raises InvalidAddress for one that is none."""
    if ":" in host:
        try:
            return str(IPv6Address(host))
        except ValueError:
            raise InvalidAddress(f"{host} is not an IPv6 address") from None
    try:
        name = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise InvalidAddress(f"{host} is not a host name") from None
    name = name.lower().removesuffix(".")
    if not _HOST.fullmatch(name) or ".." in name:
        raise InvalidAddress(f"{host or 'nothing'} is not a host name")
    if _NUMBER.fullmatch(name):
        try:
            return str(IPv4Address(socket.inet_aton(name)))
        except OSError:  # a name of such letters, as `face.dead`
            pass
    return name


def parse_ip(host: str) -> IPAddress | None:
    """Return the IP address that a host of `normalize_host` is; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
