"""Which IP addresses are of the public internet; pure.

An IP address is public if it is in none of the networks of the IANA registries for special
purposes, and if the IPv4 address inside it (mapped, NAT64, 6to4, ISATAP) is public, too.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

IPAddress = IPv4Address | IPv6Address

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


def find_inner_ipv4(address: IPAddress) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address leads to; None where there is none."""
    if isinstance(address, IPv4Address):
        return None
    number = int(address)
    is_isatap = (number >> 32) & _LOW_32 in _ISATAP
    if address in _NAT64 or address.ipv4_mapped is not None or is_isatap:
        return IPv4Address(number & _LOW_32)
    return IPv4Address((number >> 80) & _LOW_32) if address in _SIX_TO_FOUR else None


def is_public(address: IPAddress) -> bool:
    """Whether an IP address is one of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    inner = find_inner_ipv4(address)
    if address.scope_id is not None or (inner is not None and not is_public(inner)):
        return False
    if address in _NAT64 or address.ipv4_mapped is not None:
        return True
    return address in _GLOBAL_IPV6 and not any(address in network for network in _SPECIAL_IPV6)
