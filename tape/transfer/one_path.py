"""The entry lines of one path, as `tape log --json` and `tape cat --json` print them → a tape.

What stands before the tape's own start entry is the past it was forked from. The journal is made
of what the entries say, with their times, so that the same lines make the same tape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from ..blocks import join_texts
from ..entries import Anchor, Branch, Start, User
from ..errors import Damaged, UsageError
from ..line import FORMAT, Entry, decode_line, read_header, verify_line
from ..phase import ORIGIN
from ..refs import encode_ref_line
from ..tape import TapeInfo
from .reading import add_error_line, read_items
from .survey import BLOB_IN_DATA

if TYPE_CHECKING:
    from .building import TapeBuilder

_PHASE_OPENERS = frozenset({"start", "branch", "anchor"})


class PathInfo(NamedTuple):
    """What the lines say of their tape."""

    info: TapeInfo
    past: int
    """How many entries stand before its start entry."""
    prompt: str
    """The first prompt."""


def inspect_path(source: BinaryIO) -> PathInfo:
    """Look at all lines, and go back to the beginning.

    Raises UsageError where they do not begin at the root, Damaged where one does not hold or does
    not follow from the one before it.
    """
    info, past, prompt, before = None, 0, "", None
    for count, (number, raw) in enumerate(read_items(source)):
        with add_error_line(number):
            header = verify_line(raw)
            if before is None and header.n != 0:
                break
            if before is not None and header.parent_id != before:
                raise Damaged("its parent is not the entry before it: entries are left out")
            before = header.id
            if header.type == Start.entry_type:
                info, past = _build_info(decode_line(raw)), count
            elif header.type == User.entry_type and not prompt:
                prompt = _get_prompt_text(decode_line(raw))
    source.seek(0)
    if info is None:
        raise UsageError(
            "these entries do not begin with the start of their tape: give the whole path, as "
            "`tape export` or `tape log --json` prints it"
        )
    return PathInfo(info, past, prompt)


def _build_info(entry: Entry) -> TapeInfo:
    """Return tape.json as it is beside this start entry."""
    start = entry.data
    if not isinstance(start, Start):
        raise Damaged("a start entry that cannot be read")
    info = TapeInfo(FORMAT, start.tape, entry.time, start.program, start.origin)
    return msgspec.convert(msgspec.to_builtins(info), TapeInfo)


def _get_prompt_text(entry: Entry) -> str:
    return join_texts(entry.data.content) if isinstance(entry.data, User) else ""


def read_path_lines(source: BinaryIO, path: PathInfo, building: TapeBuilder) -> None:
    """Read the lines into phases, and end with the journal that leads to the last entry."""
    building.write_info(msgspec.json.encode(path.info))
    moves: list[dict[str, object]] = []
    for count, (number, raw) in enumerate(read_items(source)):
        with add_error_line(number):
            if count == 0 and path.past:
                building.begin_phase(ORIGIN, number)
            if count >= path.past and read_header(raw).type in _PHASE_OPENERS:
                moves.append(_build_phase_move(decode_line(raw)))
                building.begin_phase(str(moves[-1]["phase"]), number)
            building.add_entry(raw)
            building.lost.update(digest.decode() for digest in BLOB_IN_DATA.findall(raw))
    last = moves[-1]
    for move in (*moves, {"current": last["branch"], "why": "import", "time": last["time"]}):
        building.add_ref(encode_ref_line(move), 0)


def _build_phase_move(entry: Entry) -> dict[str, object]:
    """Return the journal's line of the phase that an entry begins."""
    data = entry.data
    if not isinstance(data, Start | Branch | Anchor):
        raise Damaged(f"a phase begins with {entry.type}, which cannot be read")
    said = {"why": "import", "time": entry.time}
    return {"branch": data.branch, "phase": data.phase, "pin": None, **said}
