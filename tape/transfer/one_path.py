"""The entry lines of one path, as `tape log --json` and `tape cat --json` print them → a tape.

What stands before the tape's own start entry is the past it was forked from. The journal is made
of what the entries say, with their times, so that the same lines make the same tape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from ..blocks import text_of
from ..entries import Anchor, Branch, Start, User
from ..errors import Damaged, UsageError
from ..line import FORMAT, Entry, decode, read_header, verify
from ..phase import ORIGIN
from ..refs import encode
from ..tape import Info
from .reading import at_line, items
from .survey import BLOB

if TYPE_CHECKING:
    from .building import Building

_BEGINS = frozenset({"start", "branch", "anchor"})


class PathOf(NamedTuple):
    """What the lines say of their tape."""

    info: Info
    past: int
    """How many entries stand before its start entry."""
    prompt: str
    """The first prompt."""


def path_of(source: BinaryIO) -> PathOf:
    """Look at all lines, and go back to the beginning.

    Raises UsageError where they do not begin at the root, Damaged where one does not hold or does
    not follow from the one before it.
    """
    info, past, prompt, before = None, 0, "", None
    for count, (number, raw) in enumerate(items(source)):
        with at_line(number):
            header = verify(raw)
            if before is None and header.n != 0:
                break
            if before is not None and header.parent_id != before:
                raise Damaged("its parent is not the entry before it: entries are left out")
            before = header.id
            if header.type == Start.entry_type:
                info, past = _info(decode(raw)), count
            elif header.type == User.entry_type and not prompt:
                prompt = _words(decode(raw))
    source.seek(0)
    if info is None:
        raise UsageError(
            "these entries do not begin with the start of their tape: give the whole path, as "
            "`tape export` or `tape log --json` prints it"
        )
    return PathOf(info, past, prompt)


def _info(entry: Entry) -> Info:
    """Return tape.json as it is beside this start entry."""
    start = entry.data
    if not isinstance(start, Start):
        raise Damaged("a start entry that cannot be read")
    info = Info(FORMAT, start.tape, entry.time, start.program, start.origin)
    return msgspec.convert(msgspec.to_builtins(info), Info)


def _words(entry: Entry) -> str:
    return text_of(entry.data.content) if isinstance(entry.data, User) else ""


def read_path(source: BinaryIO, path: PathOf, building: Building) -> None:
    """Read the lines into phases, and end with the journal that leads to the last entry."""
    building.info(msgspec.json.encode(path.info))
    moves: list[dict[str, object]] = []
    for count, (number, raw) in enumerate(items(source)):
        with at_line(number):
            if count == 0 and path.past:
                building.phase(ORIGIN, number)
            if count >= path.past and read_header(raw).type in _BEGINS:
                moves.append(_opened(decode(raw)))
                building.phase(str(moves[-1]["phase"]), number)
            building.entry(raw)
            building.lost.update(digest.decode() for digest in BLOB.findall(raw))
    last = moves[-1]
    for move in (*moves, {"current": last["branch"], "why": "import", "time": last["time"]}):
        building.ref(encode(move), 0)


def _opened(entry: Entry) -> dict[str, object]:
    """Return the journal's line of the phase that an entry begins."""
    data = entry.data
    if not isinstance(data, Start | Branch | Anchor):
        raise Damaged(f"a phase begins with {entry.type}, which cannot be read")
    said = {"why": "import", "time": entry.time}
    return {"branch": data.branch, "phase": data.phase, "pin": None, **said}
