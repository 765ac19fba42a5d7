"""Which hosts programs inside the sandbox may reach, by name and by where the name leads; pure.

A name is refused by any pattern that denies, else it has to be among those that are allowed. Then
it is resolved once, and every address it leads to is judged: none may be of this machine, of a
network around it, or of the services that clouds keep at fixed addresses, as a name may lead
anywhere.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...ip_addresses import find_inner_ipv4, is_public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...ip_addresses import IPAddress

_PATTERN = re.compile(r"(?:\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?)", re.IGNORECASE)
_METADATA = {
    ipaddress.ip_address("169.254.169.254"),
    ipaddress.ip_address("169.254.170.2"),
    ipaddress.ip_address("100.100.100.200"),
    ipaddress.ip_address("192.0.0.192"),
    ipaddress.ip_address("fd00:ec2::254"),
}


def check_patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return patterns of hosts as they are compared; raises ConfigurationError for another text."""
    for pattern in patterns:
        if _PATTERN.fullmatch(pattern) is None:
            raise ConfigurationError(
                f"sandbox: {pattern!r} is not a host: write example.org, *.example.org or *"
            )
    return tuple(pattern.lower().rstrip(".") for pattern in patterns)


def refuse_host(host: str, allowed: Sequence[str], denied: Sequence[str]) -> str:
    """Return why a host may not be reached by its name; empty where it may."""
    name = host.lower().rstrip(".")
    if any(is_host_covered(pattern, name) for pattern in denied):
        return "a rule denies it"
    if not any(is_host_covered(pattern, name) for pattern in allowed):
        return "it is not among the allowed domains"
    return ""


def is_host_covered(pattern: str, name: str) -> bool:
    """Return whether a pattern is about a host; `*.example.org` is not about example.org itself."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return name.endswith(pattern[1:]) and len(name) > len(pattern) - 1
    return name == pattern


def refuse_address(text: str, own: Sequence[str] = ()) -> str:
    """Return why an address may not be reached; empty where it may.

    `own` are the addresses of this machine.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return f"{text} is not an address"
    kind = _classify_address(find_inner_ipv4(address) or address, own)
    if not kind and not is_public(address):
        kind = "a private address"
    return f"it leads to {text}, {kind}" if kind else ""


def _classify_address(address: IPAddress, own: Sequence[str]) -> str:
    """Return what a special address is for; empty for any other."""
    kinds = (
        (address in _METADATA, "where a cloud keeps its metadata"),
        (address.is_loopback or address.is_unspecified or str(address) in own, "this machine"),
        (address.is_link_local, "a link-local address"),
        (address.is_multicast, "a group of machines"),
    )
    return next((kind for is_such, kind in kinds if is_such), "")
