"""Opening a tape whose tape.json is lost: its start entry gives the same facts.

That entry, protected by its hash, has all the content of tape.json, so the rest of such a tape can
still be checked.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..clock import format_timestamp
from ..errors import Damaged, TapeError
from ..model.entries import Start
from ..model.line import FORMAT, decode_line, verify_line
from ..store.phase import Phases
from ..store.tape import INFO_NAME, Tape, TapeInfo, read_tape_info
from ..store.tape_folder import TapeFolder
from .finding import FindingKind, build_damage

if TYPE_CHECKING:
    from ..store.disk import Folder
    from ..store.store import Store
    from .finding import Finding

UNKNOWN_TAPE_ID = "0" * 32
"""Id used for a tape if neither tape.json nor the start entry can be read."""


class OpenedTape(NamedTuple):
    """A tape, and the findings about its tape.json."""

    tape: Tape
    found: tuple[Finding, ...]


def open_for_check(store: Store, name: str) -> OpenedTape:
    """Open the tape of a folder of a store.

    If its tape.json cannot be read, that is a finding, and the tape's id and origin come from its
    start entry; if that cannot be read either, the id is `UNKNOWN_TAPE_ID`. Raises NewerFormat,
    NotFound, and Damaged if there is no folder `phases`.
    """
    try:
        return OpenedTape(store.open_folder(name), ())
    except Damaged:
        folder = _FolderWithInfo.open_in(
            f"{store.home}/tapes", name, durable=store.durable, note=store.note_change
        )
        try:
            read_tape_info(folder)
        except Damaged as error:
            why = f"cannot be read: {error.__cause__ or error}"
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
        else:
            raise
    damage = build_damage(FindingKind.INFO_UNREADABLE, INFO_NAME, why)
    return OpenedTape(folder.open_tape(store), (damage,))


class _FolderWithInfo(TapeFolder):
    """The folder of a tape; its tape.json reads as the start entry says."""

    __slots__ = ("_start",)

    def __init__(self, fd: int, name: str, *, durable: bool = True) -> None:
        super().__init__(fd, name, durable=durable)
        self._start: TapeInfo | None = None

    def read(self, name: str) -> bytes:
        """Return the bytes of the file `name`; for tape.json those built from the start entry."""
        if name == INFO_NAME and self._start is not None:
            return msgspec.json.encode(self._start)
        return super().read(name)

    def open_tape(self, store: Store) -> Tape:
        """Return the tape in this folder; raise Damaged if it has no phases."""
        try:
            self._start = read_start_info(self)
        except Damaged:
            self._start = TapeInfo(FORMAT, UNKNOWN_TAPE_ID, format_timestamp(0), "")
        try:
            return Tape(self, store.open, clock=store.clock, projection=store.projection)
        except OSError as error:
            self.close()
            what = f"{error.filename}: {error.strerror}"
            raise Damaged(f"{self.name} is not a complete tape: {what}") from error


def read_start_info(folder: Folder) -> TapeInfo:
    """Return the content of tape.json by the start entry; raise Damaged if none verifies."""
    with suppress(OSError), folder.sub("phases") as inner:
        phases = Phases(inner)
        for name in phases.names():
            with suppress(TapeError, OSError), phases.open(name) as file:
                line = file.line_at(0)
                verify_line(line)
                entry = decode_line(line)
                match entry.data:
                    case Start(tape=tape, program=by, origin=origin):
                        return TapeInfo(FORMAT, tape, entry.time, by, origin)
    raise Damaged(
        f"{folder.name}: neither {INFO_NAME} nor a start entry can be read: "
        "its id is unknown; restore the folder from a copy",
        file=INFO_NAME,
    )
