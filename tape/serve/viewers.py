"""Who looks, where a proxy logs people in, and which tapes that lets them see; pure.

    [TEAM]                                       the file of teams: one table for each
    repositories = ["github.com/acme/*"]
    people = ["ada@example.org"]

Invariant: a header counts only if the other end of the connection is one of the listed addresses,
and it is there once and says something; every other request is refused. A team that the file does
not have sees nothing.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..errors import UsageError
from ..index.scope import TapeScope
from .access import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from starlette.datastructures import Headers

_STRANGER = Refusal(403, "this address is asked through a proxy")
_NOBODY = Refusal(401, "the proxy does not say who this is")
_MAX_NAME = 200


class Viewer(NamedTuple):
    """Who looks at pages."""

    name: str
    """As the proxy says; "" for who has the token."""
    scope: TapeScope | None
    """What they may see; None for everything."""


current_viewer: ContextVar[Viewer] = ContextVar("current_viewer")
"""Whose request is being answered; set for each by the gate."""


class Team(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a team sees: the tapes of these repositories, and of these people."""

    repositories: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProxyLogin:
    """How a proxy says who looks."""

    header: str
    peers: tuple[IPv4Network | IPv6Network, ...]
    """Where the proxy asks from."""
    team_header: str = ""
    """"" if everybody who is logged in may see everything."""
    teams: Mapping[str, Team] | None = None

    def find_viewer(self, peer: str, headers: Headers) -> Viewer | Refusal:
        """Return who looks; `peer` is the address of the other end of the connection."""
        if not self._is_proxy(peer):
            return _STRANGER
        name = _read_single(headers, self.header)
        if not name:
            return _NOBODY
        if not self.team_header:
            return Viewer(name, None)
        names = [part.strip() for part in _read_single(headers, self.team_header).split(",")]
        teams = [team for part in names if (team := (self.teams or {}).get(part))]
        return Viewer(
            name,
            TapeScope(
                tuple(pattern for team in teams for pattern in team.repositories),
                (name, *(person for team in teams for person in team.people)),
            ),
        )

    def _is_proxy(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:  # such as a socket without addresses
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self.peers)


def _read_single(headers: Headers, name: str) -> str:
    """Return what a header says that is there once, in one line of text; else ""."""
    values = headers.getlist(name)
    if len(values) != 1:
        return ""
    text = values[0].strip()
    return text if text.isprintable() and len(text) <= _MAX_NAME else ""


def parse_peers(texts: Iterable[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return addresses and networks; raise UsageError."""
    try:
        return tuple(ip_network(text, strict=False) for text in texts)
    except ValueError as error:
        raise UsageError(f"--login-from takes an IP address or a network: {error}") from error


def read_teams(file: Path) -> dict[str, Team]:
    """Return what a file says of teams; raise UsageError."""
    try:
        return msgspec.toml.decode(file.read_bytes(), type=dict[str, Team])
    except (OSError, ValueError, msgspec.DecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the teams cannot be read from {file}: {reason}") from error


def make_proxy_login(
    header: str | None, peers: Sequence[str], team_header: str | None, teams: Path | None
) -> ProxyLogin | None:
    """Return how people are logged in; None without a header. Raises UsageError for a part of it.

    Whoever leaves out where the proxy asks from would trust everybody.
    """
    if header is None:
        if peers or team_header or teams:
            raise UsageError("--login-from, --team-header and --teams belong to --login-header")
        return None
    if not peers:
        raise UsageError("--login-header needs --login-from ADDRESS: where the proxy asks from")
    if (team_header is None) != (teams is None):
        raise UsageError("--team-header and --teams FILE belong together")
    known = read_teams(teams) if teams else None
    return ProxyLogin(header, parse_peers(peers), team_header or "", known)
