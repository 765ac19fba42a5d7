"""tape.json, told again by the start entry: all that stands in it is vouched for by that hash."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ..entries import Start
from ..errors import Damaged, TapeError
from ..line import FORMAT, decode, verify
from ..phase import Phases
from ..refs import set_aside
from ..tape import INFO, Info
from .place import put_in_place

if TYPE_CHECKING:
    from ..disk import Folder


def told_by_start(folder: Folder) -> Info:
    """Return what tape.json should say; raise Damaged where no start entry verifies."""
    with suppress(OSError), folder.sub("phases") as inner:
        phases = Phases(inner)
        for name in phases.names():
            with suppress(TapeError, OSError):
                return _told(phases, name)
    raise Damaged(
        f"{folder.name}: neither {INFO} nor a start entry can be read: nothing tells which tape "
        "it is; bring the folder back from a copy",
        file=INFO,
    )


def _told(phases: Phases, name: str) -> Info:
    """Return what the start entry of a phase says; raise Damaged where another begins it."""
    with phases.open(name) as file:
        line = file.line_at(0)
    verify(line)
    entry = decode(line)
    match entry.data:
        case Start(tape=tape, program=by, origin=origin):
            return Info(FORMAT, tape, entry.time, by, origin)
    raise Damaged(f"{name} begins with {entry.type}", file=name, offset=0)


def mend_info(folder: Folder, info: Info) -> str:
    """Write tape.json anew and return the name the old one got in quarantine."""
    old = folder.read(INFO) if folder.has(INFO) else b""
    kept = set_aside(folder, INFO, old)
    put_in_place(folder, INFO, msgspec.json.encode(info) + b"\n")
    return kept
