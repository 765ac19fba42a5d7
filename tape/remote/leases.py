"""Leases: who works on a branch of a tape right now, so that others leave it where it is.

Each epoch of a lease is an object, `lease/<tape>/<branch>/<epoch>`, and whoever creates the next
one first has the branch. The holder creates one more from time to time while it writes, and an
empty one when it ends.

| the newest epoch | the branch |
|---|---|
| none, or empty | is free |
| of this copy of the store | is ours |
| of another copy, at most 15 minutes old | is theirs: what is written here goes beside it |
| of another copy, older | is free: the next epoch beats it |

Ages are counted by the clock of the remote. A lease decides who is first, not what is true: a chunk
still counts by its number, and who loses that keeps what it wrote on a branch of its own.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from ..clock import format_timestamp, parse_timestamp
from ..model.line import JSON_ERRORS
from ..store.refs import is_ref_name
from ..text import to_single_line

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from ..store.replica import Replica
    from .remote import Listed, Remote

LEASE_SECONDS = 900
"""Age after which a lease is beaten."""
RENEWAL_SECONDS = 300
"""Age after which its holder takes the next epoch."""
_PREFIX = "lease/"
_KEY = re.compile(r"lease/(?P<tape>[0-9a-f]{32})/(?P<branch>[^/]+)/(?P<epoch>[0-9]{8})\Z")
_MAX_EPOCH = 99_999_999
_TRIES = 20
_MAX_HOLDER = 120


def read_uptime() -> float:
    """Return seconds that pass also while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease(Struct, omit_defaults=True):
    """Who works on a branch."""

    time: str
    """When the epoch was created, by the clock of the remote."""
    replica: str
    machine: str = ""
    person: str = ""

    @property
    def holder(self) -> str:
        """Who that is, on one line."""
        who = " on ".join(part for part in (self.person, self.machine) if part)
        return to_single_line(who)[:_MAX_HOLDER] or "another machine"

    def measure_age(self, now: int) -> float:
        """Return how many seconds old it is at a time of the remote's clock."""
        return (now - parse_timestamp(self.time)) / 1_000_000


class LeasedBranch(NamedTuple):
    """The newest epoch of the lease of a branch."""

    tape: str
    branch: str
    epoch: int
    lease: Lease | None
    """None for one that was ended, or that cannot be read: it keeps nobody away."""


def find_leases(remote: Remote, tape: str = "") -> list[LeasedBranch]:
    """Return the newest epochs of the branches of one tape, or of all, ended ones too."""
    return read_leases(remote, remote.list(f"{_PREFIX}{tape}/" if tape else _PREFIX))


def find_fresh_leases(remote: Remote) -> list[tuple[LeasedBranch, Lease]]:
    """Return the leases that count now."""
    leases = [(at, at.lease) for at in find_leases(remote) if at.lease]
    now = remote.now() if leases else 0
    return [(at, lease) for at, lease in leases if abs(lease.measure_age(now)) <= LEASE_SECONDS]


def read_leases(remote: Remote, objects: Iterable[Listed]) -> list[LeasedBranch]:
    """Return what `find_leases` does of the leases among objects that were listed."""
    newest: dict[tuple[str, str], tuple[str, int]] = {}
    for listed in objects:
        match = _KEY.match(listed.key)
        if match is not None and is_ref_name(match["branch"].replace("..", "_")):
            newest[match["tape"], match["branch"]] = listed.key, listed.size
    held = [key for key, size in newest.values() if size]
    leases = dict(zip(held, remote.read_many(held) if held else (), strict=True))
    return [
        LeasedBranch(name, branch.replace("..", "_"), int(key[-8:]), _decode_lease(leases.get(key)))
        for (name, branch), (key, _) in newest.items()
    ]


def _decode_lease(data: bytes | None) -> Lease | None:
    try:
        return msgspec.json.decode(data or b"", type=Lease)
    except JSON_ERRORS:
        return None


def make_lease_key(tape: str, branch: str, epoch: int) -> str:
    """Return the key of an epoch; keys have no underscore, and branches no two dots in a row."""
    return f"{_PREFIX}{tape}/{branch.replace('_', '..')}/{epoch:08d}"


class LeaseKeeper:
    """The leases that one copy of a store, `replica`, holds at a remote; for one thread.

    `uptime` returns seconds: see `read_uptime`.
    """

    def __init__(
        self,
        remote: Remote,
        replica: Replica | None,
        person: str,
        uptime: Callable[[], float] = read_uptime,
    ) -> None:
        self._remote, self._replica, self._person = remote, replica, person
        self._uptime = uptime
        self._epochs: dict[tuple[str, str], int] = {}
        """The newest epoch that is known of a branch of a tape."""
        self._listed: set[str] = set()
        """Tapes that nobody else works on, and of which other branches have no epoch."""
        self._taken: dict[tuple[str, str], float] = {}
        """When the epochs that are ours were created."""

    def find_holders(self, tape: str) -> dict[str, Lease]:
        """Return the branches of a tape that other copies of the store work on."""
        leased = find_leases(self._remote, tape)
        now = self._remote.now() if any(one.lease for one in leased) else 0
        holders = {}
        for _, branch, epoch, lease in leased:
            self._epochs[tape, branch] = epoch
            self._taken.pop((tape, branch), None)
            if lease is None:
                continue
            age = lease.measure_age(now)
            if self._replica is not None and lease.replica == self._replica.id:
                self._taken[tape, branch] = self._uptime() - age
            elif abs(age) <= LEASE_SECONDS:
                holders[branch] = lease
        if holders:
            self._listed.discard(tape)
        else:
            self._listed.add(tape)
        return holders

    def keep(self, tape: str, branch: str) -> Lease | None:
        """Take the lease of a branch, or renew it; return that of another copy that holds it."""
        place = tape, branch
        taken = self._taken.get(place)
        if taken is not None and 0 <= self._uptime() - taken < RENEWAL_SECONDS:
            return None
        if self._replica is None:
            return None
        for _ in range(_TRIES):
            holder = None if tape in self._listed else self.find_holders(tape).get(branch)
            if holder is not None:
                return holder
            epoch = self._epochs.get(place, 0) + 1
            if epoch > _MAX_EPOCH or self._create(place, epoch):
                break
            self._listed.discard(tape)  # somebody created it: look again
        return None

    def _create(self, place: tuple[str, str], epoch: int) -> bool:
        assert self._replica is not None
        now = format_timestamp(self._remote.now())
        lease = Lease(now, self._replica.id, self._replica.machine, self._person)
        if not self._remote.create(make_lease_key(*place, epoch), msgspec.json.encode(lease)):
            return False
        self._epochs[place], self._taken[place] = epoch, self._uptime()
        return True

    def end(self, tape: str, but: Container[str] = ()) -> None:
        """End the leases of a tape that are ours, but for those of some branches."""
        for place in [place for place in self._taken if place[0] == tape and place[1] not in but]:
            del self._taken[place]
            epoch = self._epochs[place] = self._epochs[place] + 1
            if epoch <= _MAX_EPOCH and not self._remote.create(make_lease_key(*place, epoch), b""):
                self._listed.discard(tape)
