"""Holds: tapes that may not be taken from a remote, whatever a rule of retention says.

Each hold and each release is an object of its own, `hold/<tape>/<n:04>`, and the newest counts: so
who held a tape, who released it and why stays known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ..errors import Damaged
from ..model.line import JSON_ERRORS

if TYPE_CHECKING:
    from .remote import Remote

_PREFIX = "hold/"
_KEY = re.compile(r"hold/(?P<tape>[0-9a-f]{32})/(?P<number>[0-9]{4,})\Z")


class Hold(Struct, omit_defaults=True):
    """That a tape is held, or is so no more."""

    held: bool
    time: str = ""
    person: str = ""
    machine: str = ""
    why: str = ""


def read_holds(remote: Remote, tape: str = "") -> dict[str, Hold]:
    """Return the tapes that are held, or `tape` alone if it is."""
    newest = {
        match["tape"]: match.string
        for listed in remote.list(f"{_PREFIX}{tape}/" if tape else _PREFIX)
        if (match := _KEY.match(listed.key)) is not None
    }
    holds = {}
    for identity, data in zip(newest, remote.read_many([*newest.values()]), strict=True):
        try:
            hold = msgspec.json.decode(data or b"", type=Hold)
        except JSON_ERRORS as error:
            raise Damaged(f"{newest[identity]} cannot be read: {error}") from error
        if hold.held:
            holds[identity] = hold
    return holds


def set_hold(remote: Remote, tape: str, hold: Hold) -> None:
    """Hold or release a tape from now on; whoever comes later counts."""
    matches = [_KEY.match(listed.key) for listed in remote.list(f"{_PREFIX}{tape}/")]
    number = max((int(match["number"]) for match in matches if match), default=0)
    data = msgspec.json.encode(hold)
    while not remote.create(f"{_PREFIX}{tape}/{(number := number + 1):04d}", data):
        pass
