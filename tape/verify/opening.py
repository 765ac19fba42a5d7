"""Opening what can be opened: a tape whose tape.json is lost is told by its start entry.

All that stands in tape.json stands in that entry too, vouched for by its hash; so nothing else of
such a tape has to stay in the dark.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..clock import stamp
from ..disk import Folder
from ..entries import Start
from ..errors import Damaged, TapeError
from ..line import FORMAT, decode, verify
from ..phase import Phases
from ..tape import INFO, Info, Tape, read_info
from .finding import Kind, damage

if TYPE_CHECKING:
    from ..store import Store
    from .finding import Finding

NOBODY = "0" * 32
"""Id of a tape of which neither tape.json nor the start entry can be read."""


class Opened(NamedTuple):
    """A tape, and what was wrong with its tape.json."""

    tape: Tape
    found: tuple[Finding, ...]


def opened(store: Store, name: str) -> Opened:
    """Open the tape of a folder of a store.

    Where its tape.json cannot be read that is found, and the tape's id and origin are those its
    start entry tells; where none can be read either, the id is `NOBODY`. Raises NewerFormat,
    NotFound, and Damaged where there is no folder `phases`.
    """
    try:
        return Opened(store.open_folder(name), ())
    except Damaged:
        with Folder.open(store.tapes, durable=store.durable) as tapes:
            folder = _Told(tapes.sub(name))
        why = _unreadable(folder)
        if not why:
            raise
    return Opened(folder.tape(store), (damage(Kind.INFO_UNREADABLE, INFO, why),))


def _unreadable(folder: Folder) -> str:
    """Return why the tape.json of a folder cannot be read; empty where it can."""
    try:
        read_info(folder)
    except Damaged as error:
        return f"cannot be read: {error.__cause__}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


class _Told(Folder):
    """The folder of a tape, in whose tape.json can be read what the start entry tells."""

    __slots__ = ("_info",)

    def __init__(self, folder: Folder) -> None:
        super().__init__(folder.fd, folder.name, durable=folder.durable)
        self._info: Info | None = None

    def read(self, name: str) -> bytes:
        """Return the bytes of the file `name`, or what was told in its place."""
        if name == INFO and self._info is not None:
            return msgspec.json.encode(self._info)
        return super().read(name)

    def tape(self, store: Store) -> Tape:
        """Return the tape in this folder; raise Damaged where it has no phases."""
        try:
            self._info = told_by_start(self)
        except Damaged:
            self._info = Info(FORMAT, NOBODY, stamp(0), "")
        try:
            return Tape(self, store.open, clock=store.clock, projection=store.projection)
        except OSError as error:
            self.close()
            what = f"{error.filename}: {error.strerror}"
            raise Damaged(f"{self.name} is not a whole tape: {what}") from error


def told_by_start(folder: Folder) -> Info:
    """Return what tape.json should say; raise Damaged where no start entry verifies."""
    with suppress(OSError), folder.sub("phases") as inner:
        phases = Phases(inner)
        for name in phases.names():
            with suppress(TapeError, OSError):
                return _info(phases, name)
    raise Damaged(
        f"{folder.name}: neither {INFO} nor a start entry can be read: nothing "
        "tells which tape it is; bring the folder back from a copy",
        file=INFO,
    )


def _info(phases: Phases, name: str) -> Info:
    """Return what the start entry of a phase says; raise Damaged where another begins it."""
    with phases.open(name) as file:
        line = file.line_at(0)
    verify(line)
    entry = decode(line)
    match entry.data:
        case Start(tape=tape, program=by, origin=origin):
            return Info(FORMAT, tape, entry.time, by, origin)
    raise Damaged(f"{name} begins with {entry.type}", file=name, offset=0)
