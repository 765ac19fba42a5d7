"""Addresses of the web as tools may use them, and which IP addresses are public; pure.

One parser serves rules and requests, so that a rule is about the host that is connected to. Its
host is in small letters, in ASCII, without a dot at its end, and a number in any spelling is the IP
address that it means: `0x7f.1` is `127.0.0.1`.

An IP address is public if it is in none of the networks of the IANA registries for special
purposes, and if the IPv4 address inside it (mapped, NAT64, 6to4, ISATAP) is public, too.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

IPAddress = IPv4Address | IPv6Address

_PORTS = {"http": 80, "https": 443}
_MAX_ADDRESS = 8192
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9a-fx.]*\d[0-9a-fx.]*")
"""A host that `inet_aton` may read as a number."""

_SPECIAL_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
            "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
            "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
            "168.63.129.16/32",  # the metadata of Azure, a public address
        ),
    )
)  # fmt: skip
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_NAT64, _SIX_TO_FOUR = IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")
_ISATAP = {0x00005EFE, 0x02005EFE}
_LOW_32 = 0xFFFFFFFF


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


def is_public(address: IPAddress) -> bool:
    """Whether an IP address is one of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    if address.scope_id is not None:
        return False
    number = int(address)
    if address in _NAT64 or address.ipv4_mapped is not None:
        return is_public(IPv4Address(number & _LOW_32))
    if address in _SIX_TO_FOUR:
        return is_public(IPv4Address((number >> 80) & _LOW_32))
    if address not in _GLOBAL_IPV6 or any(address in network for network in _SPECIAL_IPV6):
        return False
    is_isatap = (number >> 32) & _LOW_32 in _ISATAP
    return not is_isatap or is_public(IPv4Address(number & _LOW_32))
