"""The union of two stores: every tape of the one comes to the other, or is united with its copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import TapeError
from ..store.recorded_tape import ImportTarget, create_scratch_folder, place_tape
from ..store.refs import JOURNAL_NAME
from ..store.replica import read_replica
from ..store.tape import INFO_NAME, Tape, make_tape_folder
from .tapes import TapeUnion, unite_tapes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store.replica import Replica
    from ..store.store import Store


class TapeOutcome(NamedTuple):
    """What became of one tape of the other store."""

    tape: str
    """Its id."""
    folder: str
    """The name of its folder here."""
    is_new: bool
    union: TapeUnion | None
    """None if nothing was done: it is in the trash here, or an error is named."""
    error: str | None = None
    is_trashed: bool = False
    """Whether all that is wrong is that it is in the trash here."""


def unite_stores(
    here: Store, there: Store, folders: Sequence[str] | None = None
) -> Iterator[TapeOutcome]:
    """Bring the tapes of another store here, all or those in `folders`, and yield what was done.

    A tape in the trash here stays there. An error of one tape is part of its outcome, and the
    others are united.
    """
    known = {here.read_tape_id(name): name for name in here.folders()}
    other = read_replica(there.path)
    for name in there.folders() if folders is None else folders:
        try:
            with there.open_folder(name) as source:
                yield add_tape_copy(here, source, known.get(source.id), other)
        except TapeError as error:
            yield TapeOutcome(there.read_tape_id(name), name, False, None, str(error))


def add_tape_copy(
    here: Store,
    source: Tape,
    folder: str | None,
    other: Replica | None = None,
    *,
    keeps_theirs: bool = False,
) -> TapeOutcome:
    """Bring a tape of another store here; `folder` is that of the copy here, None without one.

    Takes and raises what `unite_tapes` does.
    """
    if folder is not None:
        with here.open_folder(folder) as ours:
            union = unite_tapes(ours, source, other, keeps_theirs=keeps_theirs)
            return TapeOutcome(source.id, folder, False, union)
    trashed = next((tape.folder for tape in here.trash() if tape.id == source.id), None)
    if trashed is not None:
        error = f"it is in the trash here: `tape restore {source.id[:8]}` brings it back"
        return TapeOutcome(source.id, trashed, False, None, error, is_trashed=True)
    name, union = copy_tape(here, source, other)
    return TapeOutcome(source.id, name, True, union)


def copy_tape(here: Store, source: Tape, other: Replica | None) -> tuple[str, TapeUnion]:
    """Bring a tape that a store does not have into it; return its folder and what came.

    It is there whole or not at all: built under a name that readers ignore, and renamed.
    """
    with create_scratch_folder(here, source.id) as (tapes, name):
        with tapes.sub(name) as folder:
            make_tape_folder(folder, source.folder.read(INFO_NAME).removesuffix(b"\n"))
            folder.create(JOURNAL_NAME, b"")
            folder.sync()
        with Tape(tapes.sub(name), here.open, clock=here.clock, replica=here.replica) as empty:
            union = unite_tapes(empty, source, other)
        target = ImportTarget(source.id, source.folder.name, is_path=False)
        return place_tape(here, tapes, tapes, name, target), union
