"""What a store holds and no list tells of: folders that cannot be read, and why; reads only."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..errors import TapeError
from . import tables

if TYPE_CHECKING:
    from ..store import Store
    from .follower import Index

LINK = "a symbolic link in the place of a tape: links are not followed, move the tape itself here"
"""What is said of a link in `tapes/`."""


class LeftOut(NamedTuple):
    """A folder in `tapes/` whose tape is in no list."""

    folder: str
    why: str
    is_unread: bool
    """The system did not let it be read: the tape itself may be whole."""


def left_out(store: Store, index: Index | None) -> list[LeftOut]:
    """Return the folders that lists leave out, by name; those the index holds are not read.

    Raises NewerFormat or Damaged of the store itself, OSError where `tapes/` cannot be read.
    """
    known: dict[str, tables.Location] = {}
    if index is not None:
        with suppress(OSError, sqlite3.Error):  # no index: every tape is looked at
            if index.is_complete():
                return []
            known = index.answer(tables.locations)
    folders = {place.folder for place in known.values()}
    ids = {tape: place.folder for tape, place in known.items() if place.folder}
    found = [LeftOut(name, LINK, is_unread=False) for name in store.links()]
    for name in store.folders():
        if name not in folders:
            found += _looked_at(store, name, ids)
    return sorted(found)


def _looked_at(store: Store, name: str, ids: dict[str, str]) -> list[LeftOut]:
    """Return why a tape is in no list, nothing where it should be; note it in `ids`."""
    from .reading import read  # noqa: PLC0415 (most stores leave nothing out)

    try:
        with store.open_folder(name) as tape:
            if ids.setdefault(tape.id, name) != name:
                why = f"the same tape as {ids[tape.id]}, which stands for both"
                return [LeftOut(name, why, is_unread=False)]
            read(tape, name)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return [LeftOut(name, f"cannot be read: {where}{error.strerror}", is_unread=True)]
    except TapeError as error:
        why = str(error).removeprefix(f"{name} is ")
        return [LeftOut(name, why, _is_of_disk(error.__cause__))]
    return []


def _is_of_disk(error: BaseException | None) -> bool:
    """Tell whether an error is one of the disk, not of what stands on it."""
    return isinstance(error, OSError) and not isinstance(
        error, FileNotFoundError | NotADirectoryError | IsADirectoryError
    )
