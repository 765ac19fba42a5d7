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

LINK_REASON = (
    "a symbolic link in the place of a tape: links are not followed, move the tape itself here"
)
"""What is said of a link in `tapes/`."""


class UnlistedFolder(NamedTuple):
    """A folder in `tapes/` whose tape is in no list."""

    folder: str
    why: str
    is_unread: bool
    """The system did not let it be read: the tape itself may be whole."""


def find_unlisted(store: Store, index: Index | None) -> list[UnlistedFolder]:
    """Return the folders that lists leave out, by name; those the index holds are not read.

    Raises NewerFormat or Damaged of the store itself, OSError where `tapes/` cannot be read.
    """
    known: dict[str, tables.TapeLocation] = {}
    if index is not None:
        with suppress(OSError, sqlite3.Error):  # no index: every tape is looked at
            if index.is_complete():
                return []
            known = index.answer(tables.select_locations)
    folders = {place.folder for place in known.values()}
    ids = {tape: place.folder for tape, place in known.items() if place.folder}
    found = [UnlistedFolder(name, LINK_REASON, is_unread=False) for name in store.links()]
    for name in store.folders():
        if name not in folders:
            found += _explain_unlisted(store, name, ids)
    return sorted(found)


def _explain_unlisted(store: Store, name: str, ids: dict[str, str]) -> list[UnlistedFolder]:
    """Return why a tape is in no list, nothing where it should be; note it in `ids`."""
    from .reading import read_tape_record  # noqa: PLC0415 (most stores leave nothing out)

    try:
        with store.open_folder(name) as tape:
            if ids.setdefault(tape.id, name) != name:
                why = f"the same tape as {ids[tape.id]}, which stands for both"
                return [UnlistedFolder(name, why, is_unread=False)]
            read_tape_record(tape, name)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return [UnlistedFolder(name, f"cannot be read: {where}{error.strerror}", is_unread=True)]
    except TapeError as error:
        why = str(error).removeprefix(f"{name} is ")
        return [UnlistedFolder(name, why, _is_disk_error(error.__cause__))]
    return []


def _is_disk_error(error: BaseException | None) -> bool:
    """Tell whether an error is one of the disk, not of what stands on it."""
    return isinstance(error, OSError) and not isinstance(
        error, FileNotFoundError | NotADirectoryError | IsADirectoryError
    )
